"""What changed in upstream for a workspace between two releases: the Feature Diff."""

from __future__ import annotations

from collections import Counter

from kunlun_adapt.documents import Catalog
from kunlun_adapt.evolve.diff import platform
from kunlun_adapt.evolve.diff.checklist import checklist, findings_at, weighed
from kunlun_adapt.evolve.diff.offers import (
    environment_changes,
    feature_changes,
    server_argument_changes,
)
from kunlun_adapt.evolve.diff.platform import platform_changes
from kunlun_adapt.evolve.diff.processes import process_changes
from kunlun_adapt.evolve.diff.records import (
    LANDINGS,
    Change,
    Fact,
    FeatureDiff,
    Item,
    Place,
    Risk,
)
from kunlun_adapt.evolve.diff.sides import Side, Sides
from kunlun_adapt.evolve.diff.symbols import symbol_changes
from kunlun_adapt.upstream import Lock
from kunlun_adapt.upstream.following import FollowingResolver

__all__ = [
    "LANDINGS",
    "Change",
    "Fact",
    "FeatureDiff",
    "Item",
    "Place",
    "Risk",
    "feature_diff",
]


def feature_diff(
    catalog: Catalog,
    lock: Lock,
    old: FollowingResolver,
    new: FollowingResolver,
    *,
    source: str | None = None,
    workspace: str | None = None,
) -> FeatureDiff:
    """Compare two releases for a workspace whose map loads.

    `source` and `workspace` are how the user named the new release and the workspace.
    """
    for resolver in (old, new):
        resolver.use_cache()
    before, after = Side.of(catalog, lock, old), Side.of(catalog, lock, new, source, workspace)
    sides = Sides(before, after, findings_at(after.context))
    found = [
        *platform_changes(sides),
        *symbol_changes(sides),
        *process_changes(sides),
        *server_argument_changes(sides),
        *environment_changes(sides),
        *feature_changes(sides),
    ]
    changes = weighed(sides, found)
    diff = FeatureDiff(
        old.version, new.version, changes, checklist(sides, changes), _compared(sides)
    )
    for resolver in (old, new):
        resolver.keep_answers()
    return diff


def _compared(sides: Sides) -> dict[str, int]:
    """Count what was looked at, so that few changes can be told from little looked at."""
    tables = ("server_args", "environment", "attention_backends", "models", "fused_ops")
    counts = Counter(sides.new.subjects[key].role for key in sides.new.subjects)
    return {
        "platform members": platform.compared(sides),
        "bound symbols": sum(n for role, n in counts.items() if role != "watch"),
        "watched symbols": counts["watch"],
        **{name.replace("_", " "): len(sides.new.table(name)) for name in tables},
    }

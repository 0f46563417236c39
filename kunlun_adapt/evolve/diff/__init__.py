"""What changed in upstream for a workspace between two releases: the Feature Diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

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
from kunlun_adapt.upstream.fetch import Progress
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


_PARTS: tuple[tuple[str, Callable[[Sides], Iterator[Change]]], ...] = (
    ("the platform", platform_changes),
    ("the bound symbols", symbol_changes),
    ("the processes", process_changes),
    ("the server arguments", server_argument_changes),
    ("the environment", environment_changes),
    ("what is new", feature_changes),
)


def feature_diff(
    catalog: Catalog,
    lock: Lock,
    old: FollowingResolver,
    new: FollowingResolver,
    *,
    source: str | None = None,
    workspace: str | None = None,
    progress: Progress | None = None,
) -> FeatureDiff:
    """Compare two releases for a workspace whose map loads.

    `source` and `workspace` are how the user named the new release and the workspace. `progress` is
    told what is being read: that takes long the first time, and is kept for the next.
    """
    for resolver in (old, new):
        resolver.progress = progress
        resolver.use_cache()
    say = progress or (lambda what, fraction: None)
    say("checking the new release", 0.1)
    before, after = Side.of(catalog, lock, old), Side.of(catalog, lock, new, source, workspace)
    sides = Sides(before, after, findings_at(after.context))
    found: list[Change] = []
    for number, (what, compare) in enumerate(_PARTS):
        say(what, (number + 3) / (len(_PARTS) + 3))
        found += compare(sides)
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

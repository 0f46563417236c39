"""What changed for a workspace between two releases, as plain data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal

from kunlun_adapt.diagnostics import Finding

Landing = Literal[
    "platform", "hook", "operator", "neighbour", "server_args", "environment", "process", "feature"
]
Aspect = Literal[
    "gone",
    "moved",
    "renamed",
    "left out",
    "appeared",
    "added",
    "removed",
    "kind",
    "signature",
    "async",
    "decorators",
    "guard",
    "variants",
    "bases",
    "inherited",
    "value",
    "type",
    "default",
    "choices",
    "body",
    "calls",
    "callers",
    "readers",
    "spelling",
    "used",
    "plugins",
]

LANDINGS: dict[Landing, str] = {
    "platform": "Platform interface",
    "hook": "Hooks",
    "operator": "Operators",
    "neighbour": "Watched neighbours",
    "process": "Processes that load plugins",
    "server_args": "Server arguments",
    "environment": "Environment variables",
    "feature": "New upstream, without a binding",
}
"""Where a change meets the workspace, in the order in which reports have it."""


class Risk(Enum):
    """How much a change can harm; `rank` sorts the gravest first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        return list(Risk).index(self)


@dataclass(frozen=True, slots=True)
class Place:
    """A dotted path and the line where it is defined."""

    path: str
    file: str
    line: int

    def to_json(self) -> dict[str, object]:
        return {"path": self.path, "file": self.file, "line": self.line}


@dataclass(frozen=True, slots=True)
class Fact:
    """One respect in which something changed, in words."""

    aspect: Aspect
    text: str

    def to_json(self) -> dict[str, object]:
        return {"aspect": self.aspect, "text": self.text}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed: `subject` is an upstream path, an argument, a variable or a name.

    `bindings` are those that it is about, `features` the map's landing points that name one of
    them. `status` is that of the bindings in the new release, `unbound` without any. `followed`
    tells that the documents already name the new place. `code` is a unified diff. `stated` is the
    document and line that says of something what no binding does, "" where none does.
    """

    id: str
    landing: Landing
    subject: str
    risk: Risk
    facts: tuple[Fact, ...]
    old: Place | None = None
    new: Place | None = None
    family: str = ""
    status: str = "unbound"
    bindings: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    followed: bool = False
    code: str = ""
    stated: str = ""

    @property
    def aspects(self) -> frozenset[Aspect]:
        return frozenset(fact.aspect for fact in self.facts)

    @property
    def lines(self) -> tuple[int, int]:
        """The lines that the code's diff adds and takes away."""
        rows = self.code.split("\n")[2:]
        return sum(r.startswith("+") for r in rows), sum(r.startswith("-") for r in rows)

    @property
    def sort_key(self) -> tuple[object, ...]:
        landing = list(LANDINGS).index(self.landing)
        unbound = ("bound", "planned").index(self.status) if self.status in _STATED else 2
        return (landing, self.risk.rank, unbound, not self.bindings, self.family, self.subject)

    def to_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "landing": self.landing,
            "subject": self.subject,
            "risk": self.risk.value,
            "family": self.family,
            "status": self.status,
            "bindings": list(self.bindings),
            "roles": list(self.roles),
            "landing_points": list(self.features),
            "followed": self.followed,
            "stated": self.stated or None,
            "facts": [fact.to_json() for fact in self.facts],
            "old": None if self.old is None else self.old.to_json(),
            "new": None if self.new is None else self.new.to_json(),
            "code": self.code,
        }


_STATED = ("bound", "planned")


@dataclass(frozen=True, slots=True)
class Item:
    """One step of the migration: open while `findings` are, or while the lock owes the symbol.

    `codes` are those whose findings, about one of `bindings` or `targets` in the new release, open
    it again. `unlocked` are the paths that wait to be looked at and locked.
    """

    id: str
    title: str
    risk: Risk
    done: bool
    todo: str
    codes: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    unlocked: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    family: str = ""
    status: str = "unbound"

    @property
    def sort_key(self) -> tuple[bool, int, bool]:
        return (self.done, self.risk.rank, self.status != "bound")

    def to_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "title": self.title,
            "risk": self.risk.value,
            "done": self.done,
            "todo": self.todo,
            "codes": list(self.codes),
            "bindings": list(self.bindings),
            "targets": list(self.targets),
            "findings": [finding.to_json() for finding in self.findings],
            "unlocked": list(self.unlocked),
            "changes": list(self.changes),
            "family": self.family,
            "status": self.status,
        }


@dataclass(frozen=True, slots=True)
class FeatureDiff:
    """All that changed for a workspace from `old` to `new`, and what is left to do."""

    old: str
    new: str
    changes: tuple[Change, ...]
    checklist: tuple[Item, ...]
    compared: dict[str, int] = field(default_factory=dict)
    """How many things of each landing were compared, changed or not."""

    def of_families(self, families: Collection[str]) -> FeatureDiff:
        """Return what is about some families of bindings only."""
        return replace(
            self,
            changes=tuple(change for change in self.changes if change.family in families),
            checklist=tuple(item for item in self.checklist if item.family in families),
        )

    @property
    def families(self) -> tuple[str, ...]:
        """The families that anything is about, sorted."""
        found = {change.family for change in self.changes}
        return tuple(sorted((found | {item.family for item in self.checklist}) - {""}))

    def grouped(self) -> dict[Landing, tuple[Change, ...]]:
        """The changes by landing, in the order of reports; landings without any are left out."""
        found = {key: tuple(c for c in self.changes if c.landing == key) for key in LANDINGS}
        return {key: changes for key, changes in found.items() if changes}

    @property
    def open_items(self) -> tuple[Item, ...]:
        return tuple(item for item in self.checklist if not item.done)

    def count(self, risk: Risk) -> int:
        return sum(change.risk is risk for change in self.changes)

    def to_json(self) -> dict[str, object]:
        return {
            "old": self.old,
            "new": self.new,
            "summary": {
                "risks": {risk.value: self.count(risk) for risk in Risk},
                "checklist": {
                    "open": len(self.open_items),
                    "done": len(self.checklist) - len(self.open_items),
                },
                "compared": dict(self.compared),
            },
            "changes": [change.to_json() for change in self.changes],
            "checklist": [item.to_json() for item in self.checklist],
        }

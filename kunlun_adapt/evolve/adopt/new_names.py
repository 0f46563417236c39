"""Names that an assignment gives upstream although its release has none of that name."""

from __future__ import annotations

from dataclasses import dataclass

from kunlun_adapt.check.keys import closest_slip
from kunlun_adapt.evolve.adopt.values import External, Value
from kunlun_adapt.upstream import Resolver, Symbol

_CLOSE = 75
_VERY_CLOSE = 90


@dataclass(frozen=True, slots=True)
class NewName:
    """A name that upstream does not have; `near` is one that it has, `slip` that it may be it."""

    text: str
    near: str | None = None
    slip: bool = False

    def told(self) -> str:
        """Return what a person has to know of it."""
        question = f"; did you mean {self.near}?" if self.near else ""
        done = "it is planned, not bound" if self.slip else "it is added"
        return f"{self.text}; {done}{question}"


def new_name(target: str, value: Value | None, resolver: Resolver) -> NewName:
    """Say of a target that this release does not have what is near it in the same owner.

    Upstream's own under a second name, such as what a plugin keeps to call it later, is no slip.
    """
    owner, _, name = target.rpartition(".")
    text = f"upstream's {owner} has no {name}"
    near, slip = _near(name, _names(owner, resolver))
    if isinstance(value, External) and value.name.rpartition(".")[2] == near:
        return NewName(text)
    return NewName(text, near, slip)


def _names(owner: str, resolver: Resolver) -> list[str]:
    """Return the names that a module or a class of upstream's has, imported ones included."""
    found = resolver.resolve(owner)
    if not isinstance(found, Symbol):
        return []
    if found.kind == "class":
        return list(resolver.members(found.path))
    table = resolver.table(found.path)
    return list(table.scope.bindings) if table is not None else []


def _near(name: str, names: list[str]) -> tuple[str | None, bool]:
    """Return the name that is most like another, and whether so like that it may be meant."""
    from rapidfuzz import fuzz, process

    slip = closest_slip(name, names)
    if slip is not None:
        return slip, True
    found = process.extractOne(name, sorted(names), scorer=fuzz.ratio, score_cutoff=_CLOSE)
    return (str(found[0]), found[1] >= _VERY_CLOSE) if found else (None, False)

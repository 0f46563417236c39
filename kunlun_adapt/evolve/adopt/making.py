"""The parts that every kind of binding is made of: ids, places, what is left, hooks."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from kunlun_adapt.evolve.adopt.events import Condition, Event, Place
from kunlun_adapt.evolve.adopt.left import Left, Reason
from kunlun_adapt.evolve.adopt.names import (
    Ids,
    implementation,
    kebab,
)
from kunlun_adapt.evolve.adopt.reading import Reading
from kunlun_adapt.evolve.adopt.values import (
    Const,
    Function,
    Made,
    Unknown,
    Value,
)
from kunlun_adapt.upstream import Resolver, Symbol

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """One binding that was taken over: its id, its target, and where the plugin states it."""

    id: str
    kind: str
    target: str
    file: str
    line: int
    status: str = "active"


@dataclass(slots=True)
class Bound:
    """The parts of the documents that come from what the plugin does."""

    hooks: list[Entry] = field(default_factory=list)
    shims: list[Entry] = field(default_factory=list)
    models: list[Entry] = field(default_factory=list)
    environment: list[Entry] = field(default_factory=list)
    operators: list[Entry] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


class Maker:
    """Keeps what has been made so far."""

    def __init__(self, reading: Reading, resolver: Resolver, claim: str) -> None:
        self._reading = reading
        self._resolver = resolver
        self._claim = claim
        self._ids = Ids()
        self._operators: set[str] = set()
        self._standins: dict[str, Entry] = {}
        self._hooked: dict[tuple[str, str], Entry] = {}
        self._said: set[Left] = set()
        self._temporary: dict[int, Event] = {}
        self._assigned_to: set[str] = set()
        self._under: dict[Condition, list[str]] = {}
        self.bound = Bound()

    def conditions(self) -> None:
        """Say once of each condition what hangs on it."""
        for condition, ids in self._under.items():
            what = f"holds only where `{condition.text}`"
            place = condition.place
            self.bound.left.append(
                Left("condition", place.file, place.line, what, tuple(dict.fromkeys(ids)))
            )

    def _leave(self, reason: Reason, event: Event, what: str, *ids: str) -> None:
        found = Left(reason, event.place.file, event.place.line, what, ids)
        if found not in self._said:
            self._said.add(found)
            self.bound.left.append(found)

    def _unnamed(self, event: Event) -> None:
        shown = event.target or event.shown
        if event.via:
            shown += f", for {event.via[0]}"
        self._leave("name", event, f"the target is made at run time: {shown}")

    def _with_implementation(self, entry: Entry, event: Event) -> None:
        impl = implementation(event.value, self._resolver)
        if impl is not None:
            entry["impl"] = impl
        else:
            entry["status"] = "planned"

    def _add_hook(self, target: str, entry: Entry, event: Event) -> str | None:
        """Add a hook and return its id; None where the same one is there already."""
        at: Entry = {"sglang": self._claim, "target": target}
        root = target.partition(".")[0]
        if root != "sglang":
            standin = next((m for m in self._standins if target.startswith(f"{m}.")), None)
            at |= {"provided_by": standin} if standin else {"package": root}
            if standin and self._standins[standin].get("status") == "planned":
                entry["status"] = "planned"  # a part of what is not put in yet
        if "readback" in entry:
            at["readback"] = entry.pop("readback")
        key = self._key(target, entry["type"])
        twin = self._hooked.get(key)
        first = twin["at"][0]["target"] if twin is not None else ""
        same = twin is not None and "impl" in entry and twin.get("impl") == entry["impl"]
        if twin is not None and same and first == target and "value" not in entry:
            self._note_conditions(event, twin["id"])
            return None
        if twin is not None and twin.get("status") == "planned":
            twin = None  # nothing is bound there yet
        id = self._ids.take(kebab(target) if root == "sglang" else f"{root}-{kebab(target)}")
        again = entry["type"] in ("replace", "set") and twin is not None
        if again or not event.called:
            entry["status"] = "planned"
        whole: Entry = {
            "id": id,
            "why": self._why(event),
            "family": slug_of(target),
        }
        whole |= {
            k: entry[k] for k in ("status", "type", "impl", "key", "value", "takes") if k in entry
        }
        whole["at"] = [at]
        if twin is None:
            self._hooked[key] = whole
        self.bound.hooks.append(whole)
        self._took(id, "hook", target, event, whole.get("status", "active"))
        if "impl" not in entry and "value" not in entry:
            self._leave("implementation", event, unnamed_why(event.value), id)
        if again and twin is not None:
            what = f"{target} is bound twice, by {twin['id']} too; this one is planned"
            if same and first != target:
                what = f"{target} is another name of what {twin['id']} binds; this one is planned"
            self._leave("condition", event, what, id)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)
        return id

    def _key(self, target: str, kind: str) -> tuple[str, str]:
        """Return what two hooks of one type on the same object have in common.

        A name that a condition gives another meaning, and what a class inherits, is not the same.
        """
        held = self._resolver.resolve(target) if target.startswith("sglang.") else None
        if not isinstance(held, Symbol) or held.inherited_from or held.guard or held.variants:
            return target, kind
        return held.resolved, kind

    def _took(self, id: str, kind: str, target: str, event: Event, status: str = "active") -> None:
        place = event.place
        self.bound.taken.append(Taken(id, kind, target, place.file, place.line, status))

    def _note_conditions(self, event: Event, id: str) -> None:
        for condition in event.conditions:
            self._under.setdefault(condition, []).append(id)

    def _why(self, event: Event) -> str:
        """Return the first line of what the implementation says of itself, and where it stands."""
        return why(event.value, event.place, event.via)

    def _names(self, value: Value | None) -> bool:
        return implementation(value, self._resolver) is not None


def unnamed_why(value: Value | None) -> str:
    if isinstance(value, Function) and value.bound is not None:
        return f"{value.label} is a method of an object that no module names"
    if isinstance(value, Function) and value.scope.qualname is not None:
        return f"no name of its module leads to this {value.label} any more; give it one of its own"
    if isinstance(value, Function):
        return f"{value.label} stands inside a function; move it to its module, and name it in impl"
    if isinstance(value, Made):
        return f"it is made at run time, by {value.callee}"
    if isinstance(value, Unknown):
        return f"it is not known: {value.why}"
    if isinstance(value, Const):
        return f"it is the value {value.value!r}"[:120]
    return "it is a value made at run time, which nothing outside can name"


def slug_of(target: str) -> str:
    """Return the family of a target: the part of upstream that it belongs to."""
    parts = target.split(".")
    inner = [p for p in parts[:-1] if p not in ("sglang", "srt", "layers", "kernels", "ops")]
    plain_names = [p for p in inner if p.islower() or "_" in p]
    return (plain_names[0] if plain_names else parts[0]).replace("_", "-").strip("-") or "hook"


def why(value: Value | None, place: Place, via: tuple[Place, ...] = ()) -> str:
    """Return the reason for a binding as the plugin tells it."""
    node = getattr(value, "node", None)
    text = None
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        text = ast.get_docstring(node)
    first = (text or "").strip().partition("\n")[0].strip()
    printable = "".join(c for c in first if c.isprintable())[:120]
    where = f"{place}, for {via[0]}" if via else str(place)
    return f"{printable} ({where})" if len(printable) > 4 else f"stated in {where}"

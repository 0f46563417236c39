"""Where in the plugin the reading stands: the calls that lead there and their conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kunlun_adapt.evolve.adopt.events import Condition, Event, Place
from kunlun_adapt.evolve.adopt.left import Left, Reason
from kunlun_adapt.evolve.adopt.values import Const, External, Function, Scope, Value

if TYPE_CHECKING:
    from kunlun_adapt.evolve.adopt.sources import Sources

MOST_STEPS = 500_000
"""Statements that are read for one module, or one function that nothing calls."""
MOST_IN_ALL = 5_000_000
MOST_DEPTH = 60


class TooLong(Exception):
    """More of the plugin would have to be followed than is worth it."""


@dataclass(slots=True)
class Frame:
    """One call that is being followed.

    `guards` hold for what is left of it: `if x: return` makes the rest depend on x. `branches` hold
    inside the statement that is being read. `called_at` is where it got arguments.
    """

    node: ast.AST | None = None
    guards: list[Condition] = field(default_factory=list)
    branches: list[Condition] = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)
    yielded: list[Value] | None = None
    called_at: Place | None = None
    left_under: set[Condition] = field(default_factory=set)
    """Those of `guards` under which it would have returned."""

    def guard(self, condition: Condition, ended: str) -> None:
        """Let what comes next depend on a condition: on the other side the flow has ended."""
        self.guards.append(condition)
        if ended == "return":
            self.left_under.add(condition)

    def forget(self, held: int) -> None:
        """Leave a round of a loop: only what would have left the function itself still holds."""
        kept = [g for g in self.guards[held:] if g in self.left_under]
        self.guards[held:] = [g for g in dict.fromkeys(kept) if g not in self.guards[:held]]


class Track:
    """Collects what is found, and knows under which conditions it is reached."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.events: list[Event] = []
        self.left: list[Left] = []
        self._left: set[Left] = set()
        self.frames: list[Frame] = [Frame()]
        self.scopes: dict[str, Scope] = {}
        self.seen: set[int] = set()
        self.called = True
        self.probing = False
        self.probed: list[str] = []
        """What the platform's entry point has looked for, while `probing`."""
        self.sweeping = False
        """Whether what is read is what nothing has called."""
        self.changes = 0
        self.put: dict[str, tuple[int, Value, tuple[Condition, ...]]] = {}
        """What the plugin has assigned outside: as which change, and under which conditions."""
        self.steps_in_all = 0
        self._steps = 0
        self._said: set[object] = set()

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def step(self) -> None:
        """Count a statement. Raises TooLong."""
        self._steps += 1
        self.steps_in_all += 1
        if self._steps > MOST_STEPS or self.steps_in_all > MOST_IN_ALL:
            raise TooLong

    def fresh(self) -> None:
        """Start to count anew: what comes next is looked at by itself."""
        self._steps = 0

    def place(self, scope: Scope, node: ast.AST) -> Place:
        module = self.sources.modules.get(scope.module)
        return Place(module.file if module else scope.module, getattr(node, "lineno", 1))

    def probe(self, module: str | None) -> None:
        """Note what is looked for while it is decided whether the device is there."""
        if self.probing and module and module not in self.probed:
            self.probed.append(module)

    def conditions(self) -> tuple[Condition, ...]:
        """Return every condition under which the statement at hand runs, each once."""
        found = [c for f in self.frames for c in (*f.guards, *f.branches)]
        return tuple(dict.fromkeys(found))

    def condition(self, text: str, node: ast.AST, scope: Scope) -> Condition:
        return Condition(text, self.place(scope, node))

    @contextmanager
    def under(self, condition: Condition | None) -> Iterator[None]:
        """Read what stands below a condition."""
        held = len(self.frame.branches)
        if condition is not None:
            self.frame.branches.append(condition)
        try:
            yield
        finally:
            del self.frame.branches[held:]

    def emit(self, event: Event) -> None:
        """Keep a change of upstream; the same statement may be reached in several ways."""
        named = (event.target, event.shown if event.target is None else "")
        values = tuple(_identity(v) for v in (event.value, *event.values))
        event = replace(event, via=self.via())
        where = event.via if event.target is None else ()
        key = (event.how, event.kind, *named, event.place, values, where)
        if key not in self._said:
            self._said.add(key)
            self.events.append(event)

    def via(self) -> tuple[Place, ...]:
        """Return the calls that gave what is being read its arguments, the nearest first."""
        found = []
        for frame in reversed(self.frames):
            if frame.called_at is None:
                break
            found.append(frame.called_at)
        return tuple(found)

    def leave(self, reason: Reason, place: Place, what: str) -> None:
        """Keep something that a person has to look at."""
        if self.called or reason != "unsupported":
            found = Left(reason, place.file, place.line, what)
            if found not in self._left:
                self._left.add(found)
                self.left.append(found)


def _identity(value: Value | None) -> object:
    """Return what tells a value from another one when the same statement is read again."""
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, External):
        return value.name
    if value is not None and value.path is not None:
        return value.path
    return id(value.node) if isinstance(value, Function) else type(value).__name__

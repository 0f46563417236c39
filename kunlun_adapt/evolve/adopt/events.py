"""What a plugin does to upstream, as it was found in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kunlun_adapt.evolve.adopt.values import Value

How = Literal[
    "hook", "assign", "module", "oot", "register", "extend", "environment", "model", "models"
]
"""How upstream is changed.

- `hook`: through upstream's HookRegistry; `kind` is its type.
- `assign`: an attribute of an upstream object is assigned.
- `module`: an entry of sys.modules.
- `oot`: an out-of-tree forward of a layer class.
- `register`: one of upstream's registration functions is called.
- `extend`: an upstream list, set or dict gets entries.
- `environment`: an environment variable is set.
- `model`: a model class is put into upstream's table.
- `models`: a package of model classes is.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the plugin."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition under which a statement runs, and where it stands."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Event:
    """One change of upstream.

    `target` is the upstream path, None where the name is made at run time; `shown` is the text of
    the target in the plugin. `values` are the other arguments. `weak` marks what is only done where
    nothing is there yet. `via` are the calls that handed helpers of the plugin their arguments, the
    nearest first. `called` is false where nothing that starts the plugin runs it.
    """

    how: How
    target: str | None
    value: Value | None
    place: Place
    shown: str = ""
    kind: str = ""
    values: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    weak: bool = False
    via: tuple[Place, ...] = ()
    called: bool = True

"""What could not be taken over, with the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "file", "name", "new", "implementation", "condition", "unreached", "unsupported", "platform"
]
"""Why something is left to a person.

- `file`: a file that could not be read.
- `name`: what is bound has a name that is made at run time.
- `new`: upstream has no such name; the plugin adds it, or has misspelt one.
- `implementation`: what implements it cannot be named, such as a function inside a function.
- `condition`: it is taken over, and the plugin makes it depend on a condition.
- `unreached`: it is taken over as planned; nothing that starts the plugin calls it by what is read.
- `unsupported`: the documents have no way to say it.
- `platform`: a part of the platform class that the map must state, and the text does not settle.
"""


@dataclass(frozen=True, slots=True, order=True)
class Left:
    """One thing that a person has to look at; `bindings` are those that it is about."""

    reason: Reason
    file: str
    line: int
    what: str
    bindings: tuple[str, ...] = ()

    def __str__(self) -> str:
        about = f" ({', '.join(self.bindings)})" if self.bindings else ""
        return f"{self.file}:{self.line}: {self.reason}: {self.what}{about}"

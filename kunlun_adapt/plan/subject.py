"""What a condition reads: properties of arguments, derived names, and settings read once."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from functools import lru_cache

DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64",
    "bool", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip

COUNTS = ("ndim", "shape", "stride")
"""Properties that are whole numbers."""

INDEXED = ("shape", "stride")
PROPERTIES = ("dtype", *COUNTS, "contiguous", "device")

_SUBJECT = re.compile(
    r"(?P<root>[A-Za-z_][A-Za-z0-9_]*)"
    rf"(?:\.(?P<prop>{'|'.join(PROPERTIES)})"
    r"(?:\[(?P<index>0|-?[1-9][0-9]?)\])?)?\Z"
)
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_GLOBAL = re.compile(rf"(?P<root>env|server|op)\.(?P<name>{_NAME}(\.{_NAME})*)\Z")


class ConditionError(ValueError):
    """A condition that cannot be read; the message says what is wrong.

    `tier` and `subject` name the place in the recipe's `kernels`, where that is known.
    """

    def __init__(self, message: str, tier: str | None = None, subject: str | None = None) -> None:
        super().__init__(message)
        self.tier = tier
        self.subject = subject


@dataclass(frozen=True, slots=True)
class Subject:
    """What a condition reads: `x.dtype`, `x.shape[0]`, `rows`, `residual`, `env.NAME`, …

    `scope` is "call" for what is read per call, else "env", "server" or "op" (read once). `kind` is
    the declared kind of a bare name ("int", "float", "bool", "str", "object", "Tensor"), once a
    tier table knows it; `optional` says that the bare name may be None.
    """

    text: str
    scope: str
    root: str
    prop: str | None = None
    index: int | None = None
    kind: str | None = None
    optional: bool = False

    @property
    def never_bool(self) -> bool:
        """Tell whether the value is a number for sure, so that 1 needs no guard against True."""
        return self.prop in COUNTS or self.kind in ("int", "float")

    def expression(self) -> str:
        """Return the Python text that reads the subject inside a dispatch function."""
        if self.scope != "call":
            return f"_{self.scope}_{self.root.replace('.', '_')}"
        if self.prop is None:
            return self.root
        if self.prop == "contiguous":
            return f"{self.root}.is_contiguous()"
        if self.prop == "device":
            return f"{self.root}.device.type"
        if self.prop == "stride":
            return f"{self.root}.stride({self.index})"
        if self.prop == "shape":
            return f"{self.root}.shape[{self.index}]"
        return f"{self.root}.{self.prop}"


# An operator's conditions read the same few subjects again and again.
@lru_cache(maxsize=4096)
def parse_subject(text: str) -> Subject:
    """Read the left side of a condition. Raises ConditionError."""
    outer = _GLOBAL.match(text)
    if outer:
        scope, name = outer["root"], outer["name"]
        if scope != "op" and "." in name:
            what = "an environment variable" if scope == "env" else "a server argument"
            raise ConditionError(f"{text!r} reads more than a name: {what} has no parts")
        if scope == "server" and keyword.iskeyword(name):
            raise ConditionError(f"{text!r} names no server argument: {name} is a word of Python")
        return Subject(text, scope, name)
    inner = _SUBJECT.match(text)
    if not inner or keyword.iskeyword(inner["root"]):
        raise ConditionError(
            f"{text!r} cannot be read: write a parameter, a derived name, "
            "PARAM.dtype|ndim|shape[i]|stride[i]|contiguous|device, env.NAME, server.ARG or op.NAME"
        )
    prop, index = inner["prop"], inner["index"]
    if prop in INDEXED and index is None:
        raise ConditionError(f"{text!r} needs an index, such as {text}[0]")
    if prop not in INDEXED and index is not None:
        raise ConditionError(f"{text!r} takes no index")
    return Subject(text, "call", inner["root"], prop, None if index is None else int(index))

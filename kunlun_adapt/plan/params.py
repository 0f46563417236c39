"""The declared parameters of an operator: `Tensor[rows, 2*d] | None`, `float`, `int | None`, …"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kunlun_adapt.plan.subject import DTYPES, ConditionError

KINDS = ("Tensor", "int", "float", "bool", "str", "object")
_DECLARATION = re.compile(
    r"(?P<kind>[A-Za-z]+)(?P<shape>\[[^\[\]]*\])?(?:\s+(?P<dtype>[a-z0-9_]+))?"
    r"(?P<host>\s*,\s*host)?\Z"
)
_DIMENSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ +*/()-]*\Z")
_FIXED = re.compile(r"[0-9]{1,12}\Z")


@dataclass(frozen=True, slots=True)
class Param:
    """One declared parameter.

    `shape` holds the dimensions as written; `open_rank` is true for a leading `...` or where no
    shape is declared, that is where the rank is not fixed. `dtype` is a fixed dtype, `host` says
    that the tensor lies in host memory.
    """

    name: str
    kind: str
    shape: tuple[str, ...]
    open_rank: bool
    optional: bool
    dtype: str | None = None
    host: bool = False

    @property
    def ndim(self) -> int | None:
        return None if self.kind != "Tensor" or self.open_rank else len(self.shape)

    def dimension(self, index: int) -> int | None:
        """Return the size of a dimension where the declaration fixes it."""
        if self.open_rank and index >= 0:
            return None
        try:
            text = self.shape[index]
        except IndexError:
            return None
        return int(text) if _FIXED.match(text) else None


@lru_cache(maxsize=4096)
def parse_param(name: str, text: str) -> Param:
    """Read one declaration. Raises ConditionError."""
    parts = [p.strip() for p in text.split("|")]
    kinds = [p for p in parts if p != "None"]
    found = _DECLARATION.match(kinds[0]) if len(kinds) == 1 else None
    if not found or found["kind"] not in KINDS:
        raise _not_a_declaration(text)
    tensor = found["kind"] == "Tensor"
    if not tensor and (found["shape"] is not None or found["dtype"] or found["host"]):
        raise _not_a_declaration(text)
    inside = (found["shape"] or "[]")[1:-1].strip()
    shape = tuple(d.strip() for d in inside.split(",")) if inside else ()
    open_rank = found["shape"] is None or shape[:1] == ("...",)
    if shape[:1] == ("...",):
        shape = shape[1:]
    for dimension in shape:
        if not _DIMENSION.match(dimension):
            raise ConditionError(
                f"{text!r}: {dimension!r} is not a dimension: write a name, a number or a formula "
                "such as 2*d; `...` stands first"
            )
    if found["dtype"] and found["dtype"] not in DTYPES:
        raise ConditionError(
            f"{text!r}: {found['dtype']!r} is not a dtype (one of {', '.join(DTYPES)})"
        )
    return Param(
        name=name,
        kind=found["kind"],
        shape=shape,
        open_rank=open_rank,
        optional="None" in parts,
        dtype=found["dtype"],
        host=found["host"] is not None,
    )


def _not_a_declaration(text: str) -> ConditionError:
    return ConditionError(
        f"{text!r} is not a declaration: write Tensor[rows, 2*d], "
        f"{', '.join(KINDS[1:])}; a tensor may add a dtype and ', host'; '| None' if optional"
    )

"""What the operator template shows of an operator that torch.compile takes as one op."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from kunlun_adapt.documents import OperatorRecipe
from kunlun_adapt.plan import Param
from kunlun_adapt.source.text import WIDTH, SourceError, identifier

_TYPES = {"Tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "str": "str"}


@dataclass(frozen=True, slots=True)
class TracedText:
    """The op of one operator.

    `carried` are the parameters that it has; the others are None in every call that becomes the op:
    what no schema can carry (`unless`: a call with one of them is traced into), and a parameter for
    the result, into which a traced call copies (`copied`). `returned` is "None" or the parameter
    that the op writes into and a call hands back; else the op makes a list of tensors, of which
    `fake` is what a call without data makes.
    """

    schema: str
    carried: tuple[str, ...]
    absent: tuple[str, ...]
    unless: tuple[str, ...]
    copied: str | None
    returned: str | None
    fake: str
    fake_arguments: tuple[str, ...]

    @property
    def schema_lines(self) -> tuple[str, ...]:
        """The schema in parts that fit a line; they make one text."""
        lines = textwrap.wrap(self.schema, WIDTH - 8)
        return tuple([f"{line} " for line in lines[:-1]] + lines[-1:])


def traced_text(model: OperatorRecipe, params: dict[str, Param], fake: str) -> TracedText | None:
    """Return the op of an operator, None where it is not traced. Raises SourceError."""
    if not model.traced:
        return None
    unless = tuple(identifier(n) for n, p in params.items() if p.kind == "object")
    for name in unless:
        if not params[name].optional:
            raise SourceError(
                f"{model.name}: an op cannot carry {name}, which is no tensor, number or text"
            )
    returned = model.returned
    copied = next((identifier(n) for n in model.mutates if params[n].optional), None)
    absent = {*unless, *((copied,) if copied else ())}
    carried = [p for n, p in params.items() if n not in absent]
    parts = [_declared(p, i if p.name in model.mutates else None) for i, p in enumerate(carried)]
    return TracedText(
        schema=f"({', '.join(parts)}) -> {'Tensor[]' if returned is None else '()'}",
        carried=tuple(identifier(p.name) for p in carried),
        absent=tuple(n for n in params if n in absent),
        unless=unless,
        copied=copied,
        returned=returned if returned in (None, "None") else identifier(str(returned)),
        fake=fake,
        fake_arguments=tuple("None" if n in absent else identifier(n) for n in params),
    )


def _declared(param: Param, alias: int | None) -> str:
    kind = _TYPES[param.kind]
    if alias is not None:
        if param.kind != "Tensor":
            raise SourceError(f"{param.name} is written into, and is no tensor")
        kind = f"Tensor(a{alias}!)"
    return f"{kind}{'?' if param.optional else ''} {identifier(param.name)}"

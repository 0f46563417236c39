"""One call of an operator, as `explain --call` describes it, and which tier serves it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import resolve_scalar
from kunlun_adapt.plan import DTYPES, Param, TierTable, call_values, parse_subject

_TENSOR = re.compile(r"(?P<dtype>[a-z0-9_]+)\[(?P<shape>\s*\d+(\s*,\s*\d+)*\s*)?\]\Z")
_SETTING = re.compile(r"(env|server|op)\.[A-Za-z_][A-Za-z0-9_.]*\Z")
_EXAMPLES = {"Tensor": "DTYPE[SIZES]", "int": "NUMBER", "float": "NUMBER", "bool": "true"}


@dataclass(slots=True)
class Call:
    """The arguments that are given: the tensors' shapes, and the values of all other subjects."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The tier that serves a call (None: no tier does), unless `depends_on` names what is open.

    `assumed` says what was taken for granted of what the tiers read and the call does not say.
    """

    tier: str | None
    depends_on: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the answer in words."""
        if self.depends_on:
            return f"depends on {', '.join(self.depends_on)}"
        return self.tier or "none: an error"


def parse_call(texts: Iterable[str], table: TierTable) -> Call:
    """Read ARG=VALUE texts. Raises AdaptError for what the operator cannot be called with."""
    call = Call()
    seen: set[str] = set()
    declared = {**table.params, **table.reads}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not (name in declared or _SETTING.match(name)):
            raise _fault(text, f"write one of {', '.join(declared)} as ARG=VALUE")
        if name in seen:
            raise _fault(text, f"{name} is given twice")
        seen.add(name)
        if name not in declared:
            call.given[name] = _setting(value)
        elif value == "none":
            if not declared[name].optional:
                raise _fault(text, f"{name} is required", _example(declared[name]))
            call.given[name] = None
        elif declared[name].kind == "Tensor":
            shape, dtype = _tensor(text, declared[name], value)
            call.shapes[name] = shape
            call.given[f"{name}.dtype"] = dtype
        else:
            call.given[name] = _scalar(text, declared[name], value)
    required = [p.name for p in table.params.values() if p.kind == "Tensor" and not p.optional]
    if required and not call.shapes:
        raise AdaptError("the call has no tensor", f"--call {_example(table.params[required[0]])}")
    return call


def answer(table: TierTable, call: Call, dtype: str = "") -> Answer:
    """Find the tier that serves a call; tensors without a dtype of their own have `dtype`.

    Optional arguments that are not given are absent and flags false; vendor ops are there and
    environment variables unset. What else is not given is open.
    """
    given = dict(call.given)
    assumed: list[str] = []
    for subject in table.subjects():
        if subject.scope in ("op", "env") and subject.text not in given:
            given[subject.text] = True if subject.scope == "op" else None
            assumed.append(f"{subject.text} {'present' if subject.scope == 'op' else 'unset'}")
    values = call_values(table, call.shapes, dtype, given)
    for subject in table.subjects():
        if subject.scope == "server" and subject.text not in given:
            del values[subject.text]
    flags = {s.root for s in table.subjects() if s.kind == "bool" and s.root in table.params}
    assumed += [f"{name} false" for name in table.params if name in flags - given.keys()]
    missing: dict[str, None] = {}
    for name, conditions in table.tiers:
        if not all(c.holds(values) for c in conditions if c.subject.text in values):
            continue
        unknown = [c.subject.text for c in conditions if c.subject.text not in values]
        if not unknown:
            return Answer(None if missing else name, tuple(missing), tuple(assumed))
        missing.update((a, None) for text in unknown for a in _arguments(table, text, values))
    return Answer(None, tuple(missing), tuple(assumed))


def to_give(table: TierTable, names: Iterable[str]) -> str:
    """Return the options that would give these arguments."""
    declared = {**table.params, **table.reads}
    shown = [_example(declared[n]) if n in declared else f"{n}=VALUE" for n in names]
    return " ".join(f"--call {text}" for text in shown)


def _arguments(table: TierTable, text: str, values: Mapping[str, Any]) -> list[str]:
    """Return the arguments that a subject without a value is made of and that are not given."""
    subject = parse_subject(text)
    if subject.scope != "call":
        return [text]
    if subject.root not in table.derived:
        return [subject.root]
    read = [s for s in table.derived[subject.root].subjects if s not in values]
    return [name for part in read for name in _arguments(table, part, values)]


def _tensor(text: str, param: Param, value: str) -> tuple[tuple[int, ...], str]:
    found = _TENSOR.match(value)
    if not found:
        fault = f"{param.name} is a tensor{_what_is_wrong(value)}"
        raise _fault(text, fault, f"{param.name}=bfloat16[7,512]")
    if found["dtype"] not in DTYPES:
        raise _fault(text, f"{found['dtype']} is no dtype", f"one of {', '.join(DTYPES)}")
    shape = tuple(int(n) for n in re.findall(r"\d+", found["shape"] or ""))
    if param.ndim is not None and len(shape) != param.ndim:
        raise _fault(text, f"{param.name} has {param.ndim} dimensions: {', '.join(param.shape)}")
    return shape, found["dtype"]


def _what_is_wrong(value: str) -> str:
    """Return, as the end of a sentence, why a text that has a bracket is no tensor."""
    _, bracket, rest = value.partition("[")
    sizes, closed, after = rest.partition("]")
    if not bracket:
        return ""
    if not closed:
        return ", and its bracket is not closed"
    if after:
        return f", and {after!r} follows its bracket"
    wrong = [size.strip() for size in sizes.split(",") if not re.fullmatch(r"\s*\d+\s*", size)]
    return f", and {wrong[0]!r} is no size" if wrong else ", and its dtype is missing"


def _scalar(text: str, param: Param, value: str) -> Any:
    if param.kind in ("str", "object"):
        if not value:
            raise _fault(text, f"{param.name} is empty", _example(param))
        return value
    read = resolve_scalar(value)
    kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,)}
    if not isinstance(read, kinds[param.kind]) or isinstance(read, bool) != (param.kind == "bool"):
        raise _fault(text, f"{param.name} is declared {param.kind}", _example(param))
    return read


def _setting(value: str) -> Any:
    """Return a setting's value; `none` stands for one that is unset, `present` for any other."""
    return {"none": None, "present": True}.get(value, resolve_scalar(value))


def _example(param: Param) -> str:
    return f"{param.name}={_EXAMPLES.get(param.kind, 'TEXT')}"


def _fault(text: str, message: str, hint: str | None = None) -> AdaptError:
    return AdaptError(f"--call {text!r}: {message}", hint)

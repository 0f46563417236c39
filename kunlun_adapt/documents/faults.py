"""Say what a model rejects in the words of the document: one finding per fault, at its place.

pydantic reports a value that fits no member of a union once per member. Here only the member that
the value was meant for speaks: the mapping form for a mapping, the plain form for a plain value.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents.fields import Range
from kunlun_adapt.documents.loader import RawDocument, resolve_scalar

_KEY = "[key]"
_KIND_TYPES = frozenset(
    {
        "string_type", "bool_type", "int_type", "float_type", "dict_type", "list_type",
        "model_type", "none_required", "finite_number",
    }
)  # fmt: skip
_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error stands: its path, what belongs there, what is there, and which branch erred.

    `speaks` is false where another branch of a union is the one that the value was meant for.
    """

    path: tuple[int | str, ...]
    annotation: Any
    data: Any
    of_key: bool
    speaks: bool
    misfit: bool


def findings(
    raw: RawDocument, model: type[BaseModel], errors: Iterable[ErrorDetails]
) -> list[Finding]:
    """Return the findings for a document that `model` rejected, in the order of its lines."""
    found: dict[tuple[Position, str], Finding] = {}
    for error in errors:
        place = _locate(model, raw.data, error)
        if place.speaks:
            finding = _finding(raw, place, error)
            found.setdefault((finding.position, finding.message), finding)
    return sorted(found.values(), key=lambda f: f.sort_key)


def closest(word: str, choices: Iterable[str]) -> str | None:
    """Return the suggestion `did you mean 'x'?` where a choice is near enough."""
    from rapidfuzz import fuzz, process

    found = process.extractOne(word, list(choices), scorer=fuzz.ratio, score_cutoff=55)
    return f"did you mean {found[0]!r}?" if found else None


def shown(value: Any) -> str:
    """Return how a message names a value of a document."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return "a list" if isinstance(value, list) else "a mapping"


def _locate(model: type[BaseModel], data: Any, error: ErrorDetails) -> _Place:
    """Walk the types along pydantic's location, which names union members between the keys."""
    annotation: Any = model
    path: tuple[int | str, ...] = ()
    of_key = misfit = False
    loc = list(error["loc"])
    while True:
        members = _members(annotation)
        if len(members) > 1 and loc:
            form = _form_of_label(str(loc.pop(0)), members)
            wanted = _form(data)
            misfit = all(_form_of_type(m) != wanted for m in members)
            if form != wanted and not misfit:
                return _Place(path, annotation, data, of_key, False, misfit)
            if misfit:
                break
            members = [m for m in members if _form_of_type(m) == wanted]
            if len(members) == 1:
                annotation = members[0]
        if not loc or (error["type"] == "missing" and len(loc) == 1):
            break
        part = loc.pop(0)
        if part == _KEY and path and not (isinstance(data, dict) and _KEY in data):
            of_key = True
            break
        path = (*path, part)
        key_follows = loc[:1] == [_KEY]
        annotation = _below(members[0] if members else Any, part, key_follows)
        data = _child(data, part)
    return _Place(path, annotation, data, of_key, True, misfit)


def _finding(raw: RawDocument, place: _Place, error: ErrorDetails) -> Finding:
    kind = error["type"]
    where = spell_path(place.path)
    if kind == "missing":
        key = str(error["loc"][-1])
        given = f" in {where}" if place.path else ""
        tip = f"add {key}: {_takes(_below(_members(place.annotation)[0], key, False))}"
        message = f"key {key!r} is missing{given}"
        return Finding.of("KA002", message, raw.at(*place.path), suggestion=tip)
    if kind == "extra_forbidden":
        parent = spell_path(place.path[:-1])
        key = str(place.path[-1])
        message = f"unknown key {key!r}{f' in {parent}' if parent else ''}"
        other = _other_key(raw, place, key)
        return Finding.of("KA003", message, raw.key_at(*place.path), suggestion=other)
    position = raw.key_at(*place.path) if place.of_key else raw.at(*place.path)
    if kind == "literal_error":
        choices = _choices(place.annotation)
        value = str(place.path[-1]) if place.of_key else place.data
        message = f"{where}: must be {_either(choices)}, not {shown(value)}"
        near = closest(str(value), choices)
        return Finding.of("KA002", message, position, suggestion=near)
    if place.misfit or kind in _KIND_TYPES:
        message = f"{where}: must be {_takes(place.annotation)}, not {shown(place.data)}"
        return Finding.of("KA002", message, position, suggestion=_quoting(place))
    code = "KA006" if kind == "range" else "KA002"
    return Finding.of(
        code, position=position, message=f"{where or 'the document'}: {_words(error)}"
    )


def _words(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "string_too_short":
        return "must not be empty"
    if error["type"] == "too_short":
        return "needs at least one entry"
    if error["type"] == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if error["type"] == "less_than_equal":
        return f"must be at most {context['le']}"
    return error["msg"]


def _quoting(place: _Place) -> str | None:
    """YAML reads `0.5` as a number and `true` as a flag; only quotes make text of them."""
    plain = isinstance(place.data, (bool, int, float))
    if plain and place.annotation == Range:
        return _as_range(place.data)
    if plain and _takes(place.annotation) == _NAMES[str]:
        text = str(place.data).lower() if isinstance(place.data, bool) else str(place.data)
        return f'put it in quotes: "{text}"'
    if isinstance(place.data, str):
        unquoted = type(resolve_scalar(place.data))
        if unquoted is not str and unquoted in _members(place.annotation):
            return f"remove the quotes: {place.data}"
    return None


def _as_range(data: bool | int | float) -> str:
    """In quotes a bare release is no range yet: `0.5` most likely means all of 0.5."""
    if isinstance(data, bool) or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(data)):
        return 'write a range in quotes, such as ">=0.5.17,<0.5.24"'
    return f'write a range in quotes: "=={data}.*"'


def _other_key(raw: RawDocument, place: _Place, key: str) -> str | None:
    """Suggest a key that the mapping may have and does not have yet."""
    parent: Any = raw.data
    for part in place.path[:-1]:
        parent = _child(parent, part)
    known = place.annotation if isinstance(place.annotation, list) else []
    return closest(key, (k for k in known if k not in parent)) or (
        f"known keys: {', '.join(known)}" if known else None
    )


def spell_path(path: tuple[int | str, ...]) -> str:
    """Return how messages call a place in a document: `kernels[0].when`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _members(annotation: Any) -> list[Any]:
    """Return the members of a union without None, or the type itself."""
    bare = _bare(annotation)
    if isinstance(bare, list):
        return []
    if get_origin(bare) in (Union, types.UnionType):
        return [m for arg in get_args(bare) for m in _members(arg)]
    return [] if bare is type(None) else [bare]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _form_of_type(annotation: Any) -> str:
    if _is_model(annotation) or get_origin(annotation) is dict:
        return "mapping"
    return "list" if get_origin(annotation) is list else "plain"


def _form_of_label(label: str, members: list[Any]) -> str:
    if label.startswith("list["):
        return "list"
    models = [m.__name__ for m in members if _is_model(m)]
    return "mapping" if label.startswith("dict[") or any(n in label for n in models) else "plain"


def _form(data: Any) -> str:
    return "mapping" if isinstance(data, Mapping) else "list" if isinstance(data, list) else "plain"


def _below(annotation: Any, part: int | str, of_key: bool) -> Any:
    """Return the type of an entry; for a key that a model does not have, the list of its keys."""
    if _is_model(annotation):
        fields = {info.alias or name: info for name, info in annotation.model_fields.items()}
        # As it was declared: pydantic keeps what a type is annotated with apart.
        return fields[str(part)].rebuild_annotation() if part in fields else list(fields)
    args = get_args(annotation)
    if get_origin(annotation) is dict:
        return args[0] if of_key else args[1]
    return args[0] if get_origin(annotation) is list else Any


def _child(data: Any, part: int | str) -> Any:
    try:
        return data[part]
    except (KeyError, IndexError, TypeError):
        return None


def _takes(annotation: Any) -> str:
    """Return what belongs in a place, in words."""
    members = _members(annotation)
    if {bool, int, float, str} <= set(members):
        words = ["a plain value"]
        members = [m for m in members if _form_of_type(m) != "plain"]
    elif {int, float} <= set(members):
        words = ["a number"]
        members = [m for m in members if m not in (int, float)]
    else:
        words = []
    return _either([*words, *(_one(m) for m in members)])


def _one(annotation: Any) -> str:
    if annotation in _NAMES:
        return _NAMES[annotation]
    if get_origin(annotation) is Literal:
        return _either([str(v) for v in get_args(annotation)])
    form = _form_of_type(annotation)
    return "a value" if form == "plain" else f"a {form}"


def _choices(annotation: Any) -> list[str]:
    return [
        str(value)
        for member in _members(annotation)
        if get_origin(member) is Literal
        for value in get_args(member)
    ]


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"

"""Turn a raw document into its typed model; every fault becomes a finding at its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from rapidfuzz import process

from kunlun_adapt.diagnostics import CODES, Finding, Position
from kunlun_adapt.documents.adaptation_recipe import AdaptationRecipe
from kunlun_adapt.documents.fields import API_VERSION
from kunlun_adapt.documents.loader import RawDocument
from kunlun_adapt.documents.operator_recipe import OperatorRecipe
from kunlun_adapt.documents.platform_map import PlatformMap

M = TypeVar("M", bound=BaseModel, covariant=True)

KINDS: dict[str, type[BaseModel]] = {
    "PlatformMap": PlatformMap,
    "OperatorRecipe": OperatorRecipe,
    "AdaptationRecipe": AdaptationRecipe,
}


@dataclass(frozen=True, slots=True)
class Document(Generic[M]):
    """A typed document together with where its parts stand."""

    model: M
    raw: RawDocument

    @property
    def file(self) -> str:
        return self.raw.file

    def at(self, *path: str | int) -> Position:
        return self.raw.at(*path)

    def key_at(self, *path: str | int) -> Position:
        return self.raw.key_at(*path)


def parse(
    raw: RawDocument, expected: str | None = None
) -> tuple[Document[Any] | None, list[Finding]]:
    """Return the typed document, or None and the findings that say why it is not one."""
    if not isinstance(raw.data, dict):
        found = "a list" if isinstance(raw.data, list) else "a plain value"
        return None, [_finding("KA002", raw.at(), f"{found} stands where a mapping belongs")]
    kind, fault = _kind(raw, expected)
    if kind is None:
        return None, fault
    try:
        return Document(KINDS[kind].model_validate(raw.data), raw), []
    except ValidationError as error:
        return None, list(_findings(raw, KINDS[kind], error.errors()))


def _kind(raw: RawDocument, expected: str | None) -> tuple[str | None, list[Finding]]:
    version = raw.data.get("apiVersion")
    if version != API_VERSION:
        newer = isinstance(version, str) and version.startswith("kunlun-adapt/")
        message = (
            f"apiVersion {version!r} is not known to this version of kunlun-adapt"
            if newer
            else f"apiVersion must be {API_VERSION!r}"
        )
        tip = "upgrade kunlun-adapt, or" if newer else ""
        return None, [
            _finding("KA002", raw.at("apiVersion"), message, f"{tip} write {API_VERSION}".strip())
        ]
    kind = raw.data.get("kind")
    if kind not in KINDS:
        tip = _closest(str(kind), KINDS)
        return None, [
            _finding("KA002", raw.at("kind"), f"kind must be one of {', '.join(KINDS)}", tip)
        ]
    if expected is not None and kind != expected:
        message = f"a document of kind {kind} stands where a {expected} belongs"
        return None, [_finding("KA002", raw.at("kind"), message)]
    return str(kind), []


def _findings(
    raw: RawDocument, model: type[BaseModel], errors: Iterable[ErrorDetails]
) -> Iterable[Finding]:
    seen: set[tuple[Position, str]] = set()
    for error in errors:
        path = _real_path(raw, error["loc"])
        if error["type"] == "extra_forbidden":
            key = str(error["loc"][-1])
            message = f"unknown key {key!r}"
            finding = _finding(
                "KA003", raw.key_at(*path), message, _closest(key, _siblings(model, path[:-1]))
            )
        else:
            code = "KA006" if error["type"] == "range" else "KA002"
            finding = _finding(code, raw.at(*path), _message(raw, path, error))
        if (finding.position, finding.message) not in seen:
            seen.add((finding.position, finding.message))
            yield finding


def _real_path(raw: RawDocument, loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Drop what pydantic adds to a location (names of union members) and what is not there."""
    path: tuple[int | str, ...] = ()
    for part in loc:
        if (*path, part) in raw.positions or (*path, part) in raw.keys:
            path = (*path, part)
    return path


def _message(raw: RawDocument, path: tuple[int | str, ...], error: ErrorDetails) -> str:
    where = ".".join(str(p) for p in path) or "the document"
    if error["type"] == "missing":
        return f"{where}: key {error['loc'][-1]!r} is missing"
    return f"{where}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _siblings(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the mapping at `path` may have, as far as the model tells."""
    current: Any = model
    for part in path:
        current = _step(current, part)
        if current is None:
            return []
    return _keys(current)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in get_args(annotation) for m in _models(arg)]


def _step(current: Any, part: int | str) -> Any:
    if isinstance(part, int):
        return current
    for model in _models(current):
        for name, info in model.model_fields.items():
            if part in (name, info.alias):
                return info.annotation
    return current


def _keys(annotation: Any) -> list[str]:
    return [
        info.alias or name
        for model in _models(annotation)
        for name, info in model.model_fields.items()
    ]


def _closest(word: str, choices: Iterable[str]) -> str | None:
    found = process.extractOne(word, list(choices), score_cutoff=60)
    return f"did you mean {found[0]!r}?" if found else None


def _finding(code: str, position: Position, message: str, suggestion: str | None = None) -> Finding:
    return Finding(code, CODES[code].severity, message, position, suggestion=suggestion)

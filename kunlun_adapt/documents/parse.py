"""Turn a raw document into its typed model; every fault becomes a finding at its place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents.adaptation_recipe import AdaptationRecipe
from kunlun_adapt.documents.faults import closest, findings, shown, spell_path
from kunlun_adapt.documents.fields import API_VERSION
from kunlun_adapt.documents.loader import Key, RawDocument
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
        message = f"the document must be a mapping, not {shown(raw.data)}"
        tip = f"start it with apiVersion: {API_VERSION} and kind: {expected or '…'}"
        return None, [Finding.of("KA002", message, raw.at(), suggestion=tip)]
    unfit = list(_not_finite(raw, raw.data, ()))
    if unfit:
        return None, unfit
    kind, fault = _kind(raw, raw.data, expected)
    if kind is None:
        return None, fault
    try:
        return Document(KINDS[kind].model_validate(raw.data), raw), []
    except ValidationError as error:
        return None, findings(raw, KINDS[kind], error.errors())


def _not_finite(raw: RawDocument, value: Any, path: Key) -> Iterator[Finding]:
    """YAML has numbers that are none: nothing here can be compared with them or rendered."""
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{spell_path(path)}: must be a finite number, not {value}"
        text = f"{'-' if value < 0 else ''}.{abs(value)}"
        tip = f'put it in quotes if it is text: "{text}"'
        yield Finding.of("KA002", message, raw.at(*path), suggestion=tip)
    elif isinstance(value, (dict, list)):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _not_finite(raw, child, (*path, key))


def _kind(
    raw: RawDocument, data: dict[str, Any], expected: str | None
) -> tuple[str | None, list[Finding]]:
    version, kind = data.get("apiVersion"), data.get("kind")
    if "apiVersion" not in data:
        tip = f"add apiVersion: {API_VERSION}"
        return None, [Finding.of("KA002", "key 'apiVersion' is missing", raw.at(), suggestion=tip)]
    if version != API_VERSION:
        message = f"apiVersion: must be {API_VERSION}, not {shown(version)}"
        newer = isinstance(version, str) and version.startswith("kunlun-adapt/")
        tip = f"{'upgrade kunlun-adapt, or ' if newer else ''}write {API_VERSION}"
        return None, [Finding.of("KA002", message, raw.at("apiVersion"), suggestion=tip)]
    if "kind" not in data:
        tip = f"add kind: {expected or ', '.join(KINDS)}"
        return None, [Finding.of("KA002", "key 'kind' is missing", raw.at(), suggestion=tip)]
    if not isinstance(kind, str) or kind not in KINDS:
        message = f"kind: must be one of {', '.join(KINDS)}, not {shown(kind)}"
        return None, [
            Finding.of("KA002", message, raw.at("kind"), suggestion=closest(str(kind), KINDS))
        ]
    if expected is not None and kind != expected:
        message = f"kind: must be {expected} in this place, not {kind}"
        return None, [
            Finding.of(
                "KA002", message, raw.at("kind"), suggestion="move the document, or change its kind"
            )
        ]
    return kind, []

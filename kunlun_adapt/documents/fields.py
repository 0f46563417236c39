"""Field types that all documents share: version ranges, dotted paths, implementation paths."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

API_VERSION = "kunlun-adapt/v1"

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DOTTED = re.compile(rf"{_NAME}(\.{_NAME})*\Z")
_IMPL = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}(\.{_NAME})*\Z")
_IDENTIFIER = re.compile(rf"{_NAME}\Z")
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_PATH = re.compile(rf"{_NAME}(\.{_NAME})*\Z|\$grid\Z")


class Strict(BaseModel):
    """Base of every model: unknown keys are rejected, values are never coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


def _range(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise PydanticCustomError(
            "range", "{text} is not a PEP 440 version range", {"text": repr(text)}
        ) from error
    return text


def _matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.match(text):
            raise PydanticCustomError(
                "format", "{text} is not {what}", {"text": repr(text), "what": what}
            )
        return text

    return AfterValidator(check)


Range = Annotated[str, AfterValidator(_range)]
Target = Annotated[str, _matching(_DOTTED, "a dotted path such as package.module.Class.method")]
Impl = Annotated[str, _matching(_IMPL, "an implementation path such as package.module:name")]
Identifier = Annotated[str, _matching(_IDENTIFIER, "a Python identifier")]
ArgPath = Annotated[str, _matching(_PATH, "a parameter or a path into one, such as layer.weight")]
Slug = Annotated[str, _matching(_SLUG, "a name of letters, digits, '_', '-' and '.'")]
Why = Annotated[str, Field(min_length=1)]
ProfileName = Literal["card", "simulator"]
Process = Literal["main", "scheduler", "detokenizer", "tokenizer", "dp_controller"]
Scalar = bool | int | float | str | None

ANY = ">=0"


def in_range(specifier: str, release: str) -> bool:
    """Tell whether `release` lies in a PEP 440 range; pre- and post-releases count."""
    return SpecifierSet(specifier).contains(Version(release), prereleases=True)


class Served(Strict):
    """Whether the simulator's server really runs the binding, and why not where it does not."""

    simulator: bool
    why: str | None = None

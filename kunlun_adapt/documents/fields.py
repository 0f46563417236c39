"""Field types that all documents share: version ranges, dotted paths, implementation paths."""

from __future__ import annotations

import datetime
import keyword
import re
from functools import lru_cache
from typing import Annotated, Literal, get_args

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
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

    # What a document is checked with is built once for the whole, not for each part of it.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


_parsed = lru_cache(maxsize=1024)(SpecifierSet)
_version = lru_cache(maxsize=1024)(Version)


# A few ranges and releases are written and asked for again and again.
@lru_cache(maxsize=1024)
def _range(text: str) -> str:
    try:
        specifiers = _parsed(text)
    except InvalidSpecifier as error:
        raise PydanticCustomError(
            "range",
            "{text} is not a PEP 440 version range, such as >=0.5.17,<0.5.24",
            {"text": repr(text)},
        ) from error
    if not text.strip():
        raise PydanticCustomError("range", "the range is empty; write >=0 for every release")
    arbitrary = any(s.operator == "===" for s in specifiers)
    candidates = _candidates(specifiers)
    if not arbitrary and not any(specifiers.contains(v, prereleases=True) for v in candidates):
        raise PydanticCustomError("range", "{text} holds for no release", {"text": repr(text)})
    return text


def _candidates(specifiers: SpecifierSet) -> list[Version]:
    """Return versions at and just above every bound: where none of them holds, none does."""
    found = [Version("0")]
    for specifier in specifiers:
        try:
            bound = Version(specifier.version.removesuffix(".*"))
        except InvalidVersion as error:  # `===` takes any text, and holds for no release then
            raise PydanticCustomError(
                "range",
                "{text} compares with {version}, which is no release",
                {"text": repr(str(specifiers)), "version": repr(specifier.version)},
            ) from error
        base = bound.base_version
        found += [bound, Version(f"{base}.0.1"), Version(f"{base}.post{(bound.post or 0) + 1}")]
        if bound.pre is not None:
            found.append(Version(f"{base}{bound.pre[0]}{bound.pre[1] + 1}"))
    return found


def _matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    """Return a check that the whole text has this form."""

    def check(text: str) -> str:
        if not pattern.match(text):
            raise PydanticCustomError(
                "format", "{text} is not {what}", {"text": repr(text), "what": what}
            )
        return text

    return AfterValidator(check)


def _like(pattern: re.Pattern[str]) -> WithJsonSchema:
    """Return what an editor is told of a text of this form."""
    return WithJsonSchema(
        {"type": "string", "pattern": f"^({pattern.pattern})$".replace("\\Z", "")}
    )


def _no_keyword(text: str) -> str:
    for part in re.split("[.:]", text):
        if keyword.iskeyword(part):
            raise PydanticCustomError(
                "format", "{part} is a Python keyword and names nothing", {"part": repr(part)}
            )
    return text


def _date(text: str) -> str:
    try:
        datetime.datetime.strptime(text, "%Y-%m-%d")
    except ValueError as error:
        raise PydanticCustomError(
            "format", "{text} is not a date written YYYY-MM-DD", {"text": repr(text)}
        ) from error
    return text


Range = Annotated[str, AfterValidator(_range)]
Target = Annotated[
    str,
    _matching(_DOTTED, "a dotted path such as package.module.Class.method"),
    AfterValidator(_no_keyword),
    _like(_DOTTED),
]
Impl = Annotated[
    str,
    _matching(_IMPL, "an implementation path such as package.module:name"),
    AfterValidator(_no_keyword),
    _like(_IMPL),
]
Identifier = Annotated[
    str,
    _matching(_IDENTIFIER, "a Python identifier"),
    AfterValidator(_no_keyword),
    _like(_IDENTIFIER),
]
ArgPath = Annotated[
    str,
    _matching(_PATH, "a parameter or a path into one, such as layer.weight"),
    AfterValidator(_no_keyword),
    _like(_PATH),
]
Slug = Annotated[str, _matching(_SLUG, "a name of letters, digits, '_', '-' and '.'"), _like(_SLUG)]
Date = Annotated[str, AfterValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]
Why = Annotated[str, Field(min_length=1)]
Folder = Annotated[str, Field(min_length=1)]
ProfileName = Literal["card", "simulator", "simulator_cuda"]
PROFILES: tuple[ProfileName, ...] = get_args(ProfileName)
Standing = Literal["active", "planned"]
Process = Literal[
    "main",
    "scheduler",
    "detokenizer",
    "detokenizer_router",
    "tokenizer",
    "dp_controller",
    "encoder",
    "encoder_dp",
]
Scalar = bool | int | float | str | None

ANY = ">=0"


@lru_cache(maxsize=16384)
def in_range(specifier: str, release: str) -> bool:
    """Tell whether `release` lies in a PEP 440 range; pre- and post-releases count."""
    return _parsed(specifier).contains(_version(release), prereleases=True)


class Served(Strict):
    """Whether the simulator's server really runs the binding, and why not where it does not."""

    simulator: bool
    why: str | None = None

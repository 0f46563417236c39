"""What is known about one upstream symbol, as plain data.

Everything here is frozen, hashable and free of imports beyond the standard library, so that a
process that only reads the lock pays for nothing else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

ParameterKind = Literal[
    "positional_only", "positional", "var_positional", "keyword_only", "var_keyword"
]
SymbolKind = Literal[
    "module",
    "function",
    "async_function",
    "class",
    "method",
    "classmethod",
    "staticmethod",
    "property",
    "constant",
    "attribute",
    "triton_kernel",
    "custom_op",
    "cached_function",
    "lazy",
    "external",
]
MissingReason = Literal[
    "module_missing",
    "symbol_missing",
    "dangling_reexport",
    "type_checking_only",
    "unparsable",
]

SYMBOL_KINDS: frozenset[str] = frozenset(get_args(SymbolKind))


@dataclass(frozen=True, slots=True)
class Location:
    """A line of an upstream file; `file` is relative to the folder that holds `sglang/`."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @classmethod
    def parse(cls, text: str) -> Location:
        """Read `file:line` back; raises ValueError where the text is not one."""
        file, colon, line = text.rpartition(":")
        if not colon or not file:
            raise ValueError(f"not a location: {text!r}")
        return cls(file, int(line))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `default` is the default's source text, None where there is no default."""

    name: str
    kind: ParameterKind
    has_default: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function in order, `self` and `cls` included for methods."""

    parameters: tuple[Parameter, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter names in order, without stars."""
        return tuple(parameter.name for parameter in self.parameters)

    def required(self) -> tuple[str, ...]:
        """The names that a caller must give a value for."""
        return tuple(
            parameter.name
            for parameter in self.parameters
            if not parameter.has_default and not parameter.kind.startswith("var_")
        )

    def parameter(self, name: str) -> Parameter | None:
        """The parameter called `name`, or None."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        return None

    def without_first(self) -> Signature:
        """The signature as a bound method shows it."""
        return Signature(self.parameters[1:])

    def text(self) -> str:
        """The signature as Python spells it, for example `(a, /, b=1, *args, c, **kw)`."""
        parts: list[str] = []
        previous: str | None = None
        starred = False
        for parameter in self.parameters:
            if previous == "positional_only" and parameter.kind != "positional_only":
                parts.append("/")
            if parameter.kind == "keyword_only" and not starred:
                parts.append("*")
                starred = True
            if parameter.kind == "var_positional":
                starred = True
                parts.append(f"*{parameter.name}")
            elif parameter.kind == "var_keyword":
                parts.append(f"**{parameter.name}")
            elif parameter.has_default:
                parts.append(f"{parameter.name}={parameter.default or '...'}")
            else:
                parts.append(parameter.name)
            previous = parameter.kind
        if previous == "positional_only":
            parts.append("/")
        return f"({', '.join(parts)})"

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read `text()` back; raises ValueError where the text is not a signature."""
        try:
            tree = ast.parse(f"def _{text}: ...")
        except SyntaxError as error:
            raise ValueError(f"not a signature: {text!r}") from error
        if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
            raise ValueError(f"not a signature: {text!r}")
        return cls.from_ast(tree.body[0].args)

    @classmethod
    def from_ast(cls, arguments: ast.arguments) -> Signature:
        """The signature that a parsed argument list declares."""
        found: list[Parameter] = []
        plain = [(item, "positional_only") for item in arguments.posonlyargs]
        plain += [(item, "positional") for item in arguments.args]
        first_default = len(plain) - len(arguments.defaults)
        for index, (item, kind) in enumerate(plain):
            default = (
                _expression(arguments.defaults[index - first_default])
                if index >= first_default
                else None
            )
            found.append(
                Parameter(item.arg, cast(ParameterKind, kind), default is not None, default)
            )
        if arguments.vararg is not None:
            found.append(Parameter(arguments.vararg.arg, "var_positional"))
        for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            default = None if value is None else _expression(value)
            found.append(Parameter(item.arg, "keyword_only", default is not None, default))
        if arguments.kwarg is not None:
            found.append(Parameter(arguments.kwarg.arg, "var_keyword"))
        return cls(tuple(found))


@dataclass(frozen=True, slots=True)
class Variant:
    """Another definition that the same name has under another guard."""

    location: Location
    guard: str | None = None
    signature: Signature | None = None
    kind: SymbolKind = "attribute"
    resolved: str = ""
    fingerprint: str = ""

    def to_json(self) -> dict[str, Any]:
        """A JSON object without empty fields."""
        return _compact(
            {
                "at": str(self.location),
                "guard": self.guard,
                "signature": _signature_text(self.signature),
                "kind": self.kind,
                "resolved": self.resolved,
                "fingerprint": self.fingerprint,
            }
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Variant:
        """Read `to_json()` back; raises ValueError where the object is not one."""
        return cls(
            location=Location.parse(_text(data, "at")),
            guard=_optional(data, "guard"),
            signature=_signature(data),
            kind=_kind(data),
            resolved=_text(data, "resolved", ""),
            fingerprint=_text(data, "fingerprint", ""),
        )


@dataclass(frozen=True, slots=True)
class Symbol:
    """One upstream symbol, followed to its definition.

    `path` is the dotted path that was asked for and `resolved` the path of the definition.
    `external` is the kind of a name that upstream imports from another distribution.
    `signature` of a class is that of its constructor, where it can be read off the text.
    `fingerprint` covers the definition's body without comments, formatting and docstrings.
    """

    path: str
    resolved: str
    kind: SymbolKind
    location: Location
    module: str
    qualname: str
    signature: Signature | None = None
    decorators: tuple[str, ...] = ()
    guard: str | None = None
    variants: tuple[Variant, ...] = ()
    via: tuple[Location, ...] = ()
    inherited_from: str | None = None
    bases: tuple[str, ...] = ()
    fingerprint: str = ""
    value: str | None = None
    is_async: bool = False

    @property
    def name(self) -> str:
        """The last part of the path that was asked for."""
        return self.path.rpartition(".")[2]

    def to_json(self) -> dict[str, Any]:
        """A JSON object without empty fields; `path` and `resolved` are merged when equal."""
        return _compact(
            {
                "path": self.path,
                "resolved": self.resolved if self.resolved != self.path else None,
                "kind": self.kind,
                "at": str(self.location),
                "module": self.module,
                "qualname": self.qualname,
                "signature": _signature_text(self.signature),
                "decorators": list(self.decorators),
                "guard": self.guard,
                "variants": [variant.to_json() for variant in self.variants],
                "via": [str(location) for location in self.via],
                "inherited_from": self.inherited_from,
                "bases": list(self.bases),
                "fingerprint": self.fingerprint,
                "value": self.value,
                "is_async": self.is_async or None,
            }
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Symbol:
        """Read `to_json()` back; raises ValueError where the object is not one."""
        path = _text(data, "path")
        return cls(
            path=path,
            resolved=_text(data, "resolved", path),
            kind=_kind(data),
            location=Location.parse(_text(data, "at")),
            module=_text(data, "module"),
            qualname=_text(data, "qualname", ""),
            signature=_signature(data),
            decorators=_texts(data, "decorators"),
            guard=_optional(data, "guard"),
            variants=tuple(Variant.from_json(item) for item in _list(data, "variants")),
            via=tuple(Location.parse(item) for item in _texts(data, "via")),
            inherited_from=_optional(data, "inherited_from"),
            bases=_texts(data, "bases"),
            fingerprint=_text(data, "fingerprint", ""),
            value=_optional(data, "value"),
            is_async=data.get("is_async") is True,
        )


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Where a missing symbol may be now; `score` runs from 0 to 1."""

    path: str
    location: Location
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a path does not resolve, how far it does, and what is near.

    `at` is the upstream line that is to blame, for example the dangling import.
    `deepest` is the longest prefix of `path` that does resolve, empty where none does.
    """

    path: str
    reason: MissingReason
    at: Location | None = None
    detail: str = ""
    deepest: str = ""
    suggestions: tuple[Suggestion, ...] = ()


def _expression(node: ast.expr) -> str:
    """The source text of an expression; the commonest defaults need no unparser."""
    if isinstance(node, ast.Constant) and node.kind is None:
        if node.value is None or isinstance(node.value, bool | int | str):
            return repr(node.value)
    elif isinstance(node, ast.Name):
        return node.id
    return ast.unparse(node)


def _compact(data: dict[str, Any]) -> dict[str, Any]:
    # An empty qualname (a module) and an empty signature "()" are told apart by the text.
    return {key: value for key, value in data.items() if value not in (None, "", [])}


def _signature_text(signature: Signature | None) -> str | None:
    return None if signature is None else signature.text()


def _signature(data: dict[str, Any]) -> Signature | None:
    text = _optional(data, "signature")
    return None if text is None else Signature.parse(text)


def _kind(data: dict[str, Any]) -> SymbolKind:
    kind = _text(data, "kind")
    if kind not in SYMBOL_KINDS:
        raise ValueError(f"unknown kind of symbol: {kind!r}")
    return cast(SymbolKind, kind)


def _text(data: dict[str, Any], key: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is missing or is not a string")
    return value


def _optional(data: dict[str, Any], key: str) -> str | None:
    return _text(data, key) if data.get(key) is not None else None


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key!r} is not a list")
    return value


def _texts(data: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _list(data, key)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"{key!r} holds something that is not a string")
    return tuple(values)

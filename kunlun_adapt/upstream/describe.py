"""Turn a found definition into a symbol: its kind, signature, decorators and body hash."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.found import CLASS_FACTORIES, Found, class_body, own_scopes
from kunlun_adapt.upstream.lookup import Lookup
from kunlun_adapt.upstream.module import Binding
from kunlun_adapt.upstream.symbols import (
    Parameter,
    ParameterKind,
    Signature,
    Symbol,
    SymbolKind,
    Variant,
)

#: Longer values (tables of kernels, prompts) are told apart by their fingerprint alone.
MAX_VALUE_CHARACTERS = 400

_CACHES = frozenset({"lru_cache", "cache", "cache_once"})
_PROPERTIES = frozenset({"property", "cached_property", "abstractproperty"})
_CUSTOM_OPS = frozenset({"register_custom_op", "custom_op"})
STRUCT = "msgspec.Struct"
_JITS = frozenset({"triton.jit", "gluon.jit", "triton.experimental.gluon.jit"})


@dataclass(frozen=True, slots=True)
class _Details:
    """What the text of a definition says, whoever asks for it."""

    signature: Signature | None = None
    decorators: tuple[str, ...] = ()
    fingerprint: str = ""
    value: str | None = None
    is_async: bool = False


class Describer:
    """Makes symbols of definitions; the text of each definition is read once."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._known: dict[tuple[str, syntax.Span], _Details] = {}

    def describe(self, found: Found, path: str) -> Symbol:
        """The symbol of a definition, as `path` asked for it."""
        details = self._details(found)
        decorators = details.decorators
        if found.wrapper is not None:
            decorators = (found.wrapper, *decorators)
        module, qualname = found.module, found.qualname
        if found.external:
            module, _, qualname = found.module.rpartition(".")
        body = class_body(found)
        return Symbol(
            path=path,
            resolved=found.dotted,
            kind="lazy" if found.lazy else kind_of(found, details.is_async),
            location=found.location,
            module=module or qualname,
            qualname=qualname if module else "",
            signature=details.signature,
            decorators=decorators,
            guard=found.guard,
            variants=tuple(self._variant(other) for other in found.others),
            via=found.via[:-1] if found.external else found.via,
            inherited_from=found.inherited_from,
            bases=_bases(self._lookup, body) if body is not None else (),
            fingerprint=details.fingerprint,
            value=details.value,
            is_async=details.is_async,
        )

    def _variant(self, found: Found) -> Variant:
        details = self._details(found)
        return Variant(
            location=found.location,
            guard=found.guard,
            signature=details.signature,
            kind=kind_of(found, details.is_async),
            resolved=found.dotted,
            fingerprint=details.fingerprint,
        )

    def _details(self, found: Found) -> _Details:
        if found.table is None or found.binding is None or found.binding.kind == "served":
            return _Details()
        key = (found.table.file, found.binding.span)
        if key not in self._known:
            node = found.table.node(found.binding)
            self._known[key] = _Details(
                signature=_signature(self._lookup, found, node),
                decorators=decorators_of(node),
                fingerprint=syntax.fingerprint(node),
                value=_value(node),
                is_async=isinstance(node, ast.AsyncFunctionDef),
            )
        return self._known[key]


def decorators_of(node: ast.stmt) -> tuple[str, ...]:
    """The source text of a definition's decorators."""
    if not isinstance(node, syntax.DefinitionNode):
        return ()
    return tuple(ast.unparse(item) for item in node.decorator_list)


def kind_of(found: Found, is_async: bool) -> SymbolKind:
    """What sort of symbol a definition makes."""
    if found.external:
        return "external"
    binding = found.binding
    if binding is None:
        return "module"
    if binding.kind == "class":
        return "class"
    if binding.kind == "function":
        return _function_kind(found, binding, is_async)
    called = binding.call or ""
    if called.rpartition(".")[2] in CLASS_FACTORIES:
        return "class"
    if called in _JITS:
        return "triton_kernel"
    return "attribute" if found.owners else "constant"


def _function_kind(found: Found, binding: Binding, is_async: bool) -> SymbolKind:
    names = [found.wrapper, *binding.decorators] if found.wrapper else list(binding.decorators)
    last = [name.rpartition(".")[2] for name in names]
    if found.owners:
        if any(name in _PROPERTIES for name in last):
            return "property"
        if "classmethod" in last or binding.name in ("__init_subclass__", "__class_getitem__"):
            return "classmethod"
        if "staticmethod" in last or binding.name == "__new__":
            return "staticmethod"
        return "method"
    if any(_is_jit(found, name) for name in names):
        return "triton_kernel"
    if any(name in _CUSTOM_OPS for name in last):
        return "custom_op"
    if any(name in _CACHES for name in last):
        return "cached_function"
    return "async_function" if is_async else "function"


def _is_jit(found: Found, name: str) -> bool:
    if name in _JITS:
        return True
    if found.table is None or "." in name:
        return False
    # `from triton import jit`, perhaps under another name.
    return any(
        item.kind == "import"
        and item.attribute == "jit"
        and item.source.partition(".")[0] == "triton"
        for item in found.table.scope.bindings.get(name, [])
    )


def _signature(lookup: Lookup, found: Found, node: ast.stmt) -> Signature | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return Signature.from_ast(node.args)
    return _constructor(lookup, found) if found.is_class else None


def _constructor(lookup: Lookup, found: Found) -> Signature | None:
    """How a class is called, None where the text does not tell."""
    classes, foreign = lookup.mro(found)
    for klass in classes:
        assert klass.binding is not None and klass.table is not None
        for name in ("__init__", "__new__"):
            for scope in own_scopes(klass):
                for binding in reversed(scope.bindings.get(name, [])):
                    if binding.kind == "function" and not binding.overload:
                        init = klass.table.node(binding)
                        assert isinstance(init, ast.FunctionDef | ast.AsyncFunctionDef)
                        return Signature.from_ast(init.args).without_first()
        if _is_dataclass(klass):
            return _dataclass_signature(klass, classes)
        if "NamedTuple" in {base.rpartition(".")[2] for base in klass.binding.bases}:
            return Signature(tuple(_own_fields(klass, False).values()))
    if STRUCT in foreign:
        return _struct_signature(classes)
    return Signature() if classes and not set(foreign) - {"ABC", "abc.ABC"} else None


def _is_dataclass(klass: Found) -> bool:
    assert klass.binding is not None
    return any(name.rpartition(".")[2] == "dataclass" for name in klass.binding.decorators)


def _struct_signature(classes: tuple[Found, ...]) -> Signature:
    """How a `msgspec.Struct` is called: all fields of its classes, those by keyword last."""
    fields: dict[str, Parameter] = {}
    for klass in reversed(classes):
        node = _class_node(klass)
        only = any(item.arg == "kw_only" and _true(item.value) for item in node.keywords)
        # A field that a subclass states again keeps its place.
        fields.update(_own_fields(klass, only))
    return _ordered(fields)


def _ordered(fields: dict[str, Parameter]) -> Signature:
    ordered = [item for item in fields.values() if item.kind == "positional"]
    ordered += [item for item in fields.values() if item.kind == "keyword_only"]
    return Signature(tuple(ordered))


def _dataclass_signature(klass: Found, classes: tuple[Found, ...]) -> Signature:
    fields: dict[str, Parameter] = {}
    for base in reversed(classes):
        if not _is_dataclass(base) or not _is_in_mro_of(klass, base, classes):
            continue
        for name, parameter in _own_fields(base, _keyword(_class_node(base), "kw_only")).items():
            # A field that a subclass states again keeps its place.
            fields[name] = parameter
    fields = {name: item for name, item in fields.items() if item.default != _NOT_IN_INIT}
    return _ordered(fields)


def _is_in_mro_of(klass: Found, base: Found, classes: tuple[Found, ...]) -> bool:
    return classes.index(base) >= classes.index(klass)


_NOT_IN_INIT = "<not in __init__>"


def _class_node(klass: Found) -> ast.ClassDef:
    assert klass.table is not None and klass.binding is not None
    node = klass.table.node(klass.binding)
    assert isinstance(node, ast.ClassDef)
    return node


def _keyword(node: ast.ClassDef, name: str) -> bool:
    """Whether the dataclass decorator sets a flag."""
    for item in node.decorator_list:
        if isinstance(item, ast.Call):
            for keyword in item.keywords:
                if keyword.arg == name and isinstance(keyword.value, ast.Constant):
                    return bool(keyword.value.value)
    return False


def _own_fields(klass: Found, keyword_only: bool) -> dict[str, Parameter]:
    """The fields that a class body annotates, in order."""
    found: dict[str, Parameter] = {}
    for node in _class_node(klass).body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        annotation = ast.unparse(node.annotation)
        if annotation.rpartition(".")[2].startswith("KW_ONLY"):
            keyword_only = True
            continue
        if "ClassVar" in annotation:
            continue
        name, only, default = node.target.id, keyword_only, None
        if node.value is not None:
            default = ast.unparse(node.value)
        if isinstance(node.value, ast.Call) and syntax.decorator_name(node.value).endswith("field"):
            options = {item.arg: item.value for item in node.value.keywords if item.arg}
            default = None
            for key in ("default", "default_factory"):
                if key in options:
                    text = ast.unparse(options[key])
                    default = text if key == "default" else f"{text}()"
            only = only if "kw_only" not in options else _true(options["kw_only"])
            if "init" in options and not _true(options["init"]):
                found[name] = Parameter(name, "positional", True, _NOT_IN_INIT)
                continue
        kind: ParameterKind = "keyword_only" if only else "positional"
        found[name] = Parameter(name, kind, default is not None, default)
    return found


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _bases(lookup: Lookup, klass: Found) -> tuple[str, ...]:
    assert klass.binding is not None and klass.table is not None
    found: list[str] = []
    for text in klass.binding.bases:
        base = lookup.dotted_name(klass.table, klass.owners, text)
        found.append(base.dotted if isinstance(base, Found) else text)
    return tuple(found)


def _value(node: ast.stmt) -> str | None:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return None
    text = ast.unparse(node.value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else None

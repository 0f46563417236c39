"""One module of the index as plain lists, and back: what a cache file holds of it.

A row has the module's whole table, so that a name can be followed without the module's text, and
beside each definition what its text says: the body hash, the signature, the decorators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from kunlun_adapt.upstream.index.records import Definition, Import
from kunlun_adapt.upstream.index.walk import LocalImport
from kunlun_adapt.upstream.lazy import LazyName, LazyNames
from kunlun_adapt.upstream.module import Binding, BindingKind, ModuleTable, Scope, Wildcard
from kunlun_adapt.upstream.symbols import Location, SymbolKind
from kunlun_adapt.upstream.syntax import Span

_BINDING_KINDS: tuple[BindingKind, ...] = get_args(BindingKind)
_SYMBOL_KINDS: tuple[SymbolKind, ...] = get_args(SymbolKind)
_FLAGS = ("type_checking", "placeholder", "annotated", "overload", "conditional")

Row = list[Any]


@dataclass(frozen=True, slots=True)
class Details:
    """What the text of one binding says; `kind` is None for imports and bare annotations."""

    kind: SymbolKind | None = None
    fingerprint: str = ""
    signature: str | None = None
    decorators: tuple[str, ...] = ()


#: Tells of a binding, inside the classes around it, what its text says.
Detailing = Callable[[Binding, tuple[Binding, ...]], Details]


def module_row(
    table: ModuleTable,
    detail: Detailing,
    imports: list[LocalImport],
    loads: list[tuple[str, str | None]],
) -> Row:
    """The row of a module."""
    lazy = table.lazy
    return [
        table.name,
        table.file,
        table.is_package,
        table.exported,
        _scope_row(table.scope, (), detail),
        [[name, _scope_row(scope, (), detail)] for name, scope in table.attached.items()],
        None
        if lazy is None
        else [
            lazy.line,
            [[n, e.line, e.modules, e.attribute] for n, e in lazy.names.items()],
        ],
        [[i.scope, i.name, i.source, i.attribute, i.line, i.guard, i.hidden] for i in imports],
        loads,
    ]


def _scope_row(scope: Scope, owners: tuple[Binding, ...], detail: Detailing) -> Row:
    return [
        [_binding_row(item, owners, detail) for bound in scope.bindings.values() for item in bound],
        [[wildcard.source, wildcard.line, wildcard.guard] for wildcard in scope.wildcards],
    ]


def _binding_row(binding: Binding, owners: tuple[Binding, ...], detail: Detailing) -> Row:
    details = detail(binding, owners)
    extra: Row
    if binding.kind == "import":
        extra = [binding.source, binding.attribute]
    elif binding.kind in ("function", "class"):
        extra = [binding.decorators, details.decorators]
        if binding.kind == "function":
            extra.append(details.signature)
        else:
            inner = None
            if binding.scope is not None:
                inner = _scope_row(binding.scope, (*owners, binding), detail)
            extra += [binding.bases, inner]
    else:
        extra = [binding.alias, binding.call, binding.call_strings, binding.call_names]
        while extra and not extra[-1]:
            extra.pop()
    span = binding.span
    return [
        binding.name,
        _BINDING_KINDS.index(binding.kind),
        binding.line,
        [span.line, span.column, span.end_line, span.end_column],
        binding.guard,
        sum(1 << i for i, name in enumerate(_FLAGS) if getattr(binding, name)),
        None if details.kind is None else _SYMBOL_KINDS.index(details.kind),
        bytes.fromhex(details.fingerprint),
        extra,
    ]


def table_of(row: Row, source: str | Callable[[], str]) -> ModuleTable:
    """The table that a row was made from; `source` is the module's text where it is at hand."""
    name, file, is_package, exported, scope, attached, lazy = row[:7]
    return ModuleTable(
        name=name,
        file=file,
        is_package=is_package,
        source=source,
        scope=_scope(scope),
        exported=None if exported is None else tuple(exported),
        attached={owner: _scope(inner) for owner, inner in attached},
        lazy=None if lazy is None else _lazy(lazy),
    )


def _lazy(row: Row) -> LazyNames:
    names = {n: LazyName(line, tuple(modules), attr) for n, line, modules, attr in row[1]}
    return LazyNames(row[0], names)


def _scope(row: Row) -> Scope:
    scope = Scope(wildcards=[Wildcard(*item) for item in row[1]])
    for item in row[0]:
        scope.add(_binding(item))
    return scope


def _binding(row: Row) -> Binding:
    name, kind_index, line, span, guard, flags, _, _, extra = row
    kind = _BINDING_KINDS[kind_index]
    given: dict[str, Any] = {flag: True for i, flag in enumerate(_FLAGS) if flags >> i & 1}
    if kind == "import":
        given["source"], given["attribute"] = extra
    elif kind == "function":
        given["decorators"] = tuple(extra[0])
    elif kind == "class":
        given["decorators"], given["bases"] = tuple(extra[0]), tuple(extra[2])
        given["scope"] = None if extra[3] is None else _scope(extra[3])
    else:
        for key, value in zip(("alias", "call"), extra, strict=False):
            given[key] = value
        for key, value in zip(("call_strings", "call_names"), extra[2:], strict=False):
            given[key] = tuple(value)
    return Binding(name, kind, line, Span(*span), guard, **given)


def definitions_in(row: Row) -> Iterator[Definition]:
    """Every definition of a module and its classes; what only the type checker sees is left out."""
    module, file = row[0], row[1]
    pending = [("", row[4]), *((f"{owner}.", inner) for owner, inner in row[5])]
    while pending:
        prefix, scope = pending.pop(0)
        for name, kind_index, line, _, guard, flags, symbol_kind, fingerprint, extra in scope[0]:
            if symbol_kind is None or flags & 1:
                continue
            kind = _BINDING_KINDS[kind_index]
            qualname = prefix + name
            yield Definition(
                module=module,
                qualname=qualname,
                kind=_SYMBOL_KINDS[symbol_kind],
                location=Location(file, line),
                signature=extra[2] if kind == "function" else None,
                decorators=tuple(extra[1]) if kind in ("function", "class") else (),
                guard=guard,
                fingerprint=fingerprint.hex(),
                bases=tuple(extra[2]) if kind == "class" else (),
            )
            if kind == "class" and extra[3] is not None:
                pending.append((f"{qualname}.", extra[3]))


def imports_in(row: Row) -> Iterator[tuple[Import, str | None]]:
    """Every import of a module, with the attribute that it takes, None for a whole module."""
    module, file = row[0], row[1]
    pending = [("", row[4])]
    while pending:
        prefix, scope = pending.pop(0)
        for name, kind_index, line, _, guard, flags, _, _, extra in scope[0]:
            kind = _BINDING_KINDS[kind_index]
            if kind == "import":
                source, attribute = extra
                path = source if attribute is None else f"{source}.{attribute}"
                place, where = Location(file, line), prefix.rstrip(".")
                yield Import(module, name, path, place, guard, bool(flags & 1), where), attribute
            elif kind == "class" and extra[3] is not None:
                pending.append((f"{prefix}{name}.", extra[3]))
    for where, name, source, attribute, line, guard, hidden in row[7]:
        path = source if attribute is None else f"{source}.{attribute}"
        yield Import(module, name, path, Location(file, line), guard, hidden, where), attribute


def aliases_in(row: Row) -> Iterator[tuple[str, str]]:
    """The names that a module's body gives to something that has a name: (name, dotted name)."""
    for name, kind_index, _, _, _, flags, _, _, extra in row[4][0]:
        if _BINDING_KINDS[kind_index] == "assignment" and extra and extra[0] and not flags & 1:
            yield name, extra[0]


def loads_in(row: Row) -> Iterator[tuple[str, str | None, str | None]]:
    """What a module imports while it is imported: the module, a name in it, and the guard."""
    for _, kind_index, _, _, guard, flags, _, _, extra in row[4][0]:
        if _BINDING_KINDS[kind_index] == "import" and not flags & 1:
            yield extra[0], extra[1], guard
    for source, _, guard in row[4][1]:
        yield source, None, guard
    for module, guard in row[8]:
        yield module, None, guard


def wildcards_in(row: Row) -> Iterator[tuple[str, Location, str | None]]:
    """The modules that a module imports everything from."""
    for source, line, guard in row[4][1]:
        yield source, Location(row[1], line), guard

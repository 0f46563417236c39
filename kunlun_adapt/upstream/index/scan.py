"""Read one module for the index: its row, packed, and the names that lead back to it."""

from __future__ import annotations

import ast
import zlib
from dataclasses import dataclass, field

import msgpack

from kunlun_adapt.upstream.describe import decorators_of, kind_of
from kunlun_adapt.upstream.found import Found
from kunlun_adapt.upstream.index.rows import (
    Details,
    aliases_in,
    definitions_in,
    imports_in,
    module_row,
)
from kunlun_adapt.upstream.index.walk import ModuleWalk
from kunlun_adapt.upstream.module import Binding, ModuleTable, absolute_in, read_tree
from kunlun_adapt.upstream.symbols import Signature

_DEFINED = ("function", "class", "assignment")


@dataclass(slots=True)
class Keys:
    """What a module can be found by, each a set of names (body hashes are bytes)."""

    defined: set[str] = field(default_factory=set)
    prints: set[bytes] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    aliased: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    bases: set[str] = field(default_factory=set)


KEY_NAMES = tuple(Keys.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Scanned:
    """A module's packed and compressed row, empty where it cannot be parsed, and its keys."""

    row: bytes
    keys: Keys

    def packed(self) -> bytes:
        """The bytes that `unpacked` reads."""
        keys = [list(getattr(self.keys, name)) for name in KEY_NAMES]
        packed: bytes = msgpack.packb([self.row, keys])
        return packed

    @classmethod
    def unpacked(cls, data: bytes) -> Scanned:
        row, keys = msgpack.unpackb(data)
        return cls(row, Keys(*(set(names) for names in keys)))


def scan_module(module: str, file: str, source: bytes) -> Scanned:
    """Read a module's bytes; what Python cannot parse gives no row."""
    try:
        tree = ast.parse(source, filename=file)
        table = read_tree(module, file, tree, "")
        walk = ModuleWalk(absolute_in(module, table.is_package))
        walk.text(tree)
        row = module_row(table, _Detailer(table, walk).detail, walk.imports, walk.loads)
        walk.forget()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Scanned(b"", Keys())
    keys = Keys(called=walk.called)
    for definition in definitions_in(row):
        keys.defined.add(definition.name)
        if definition.fingerprint:
            keys.prints.add(bytes.fromhex(definition.fingerprint))
        keys.bases.update(base.rpartition(".")[2] for base in definition.bases)
    for found, attribute in imports_in(row):
        if attribute is None:
            keys.sources.add(found.path)
        else:
            keys.imported.add(attribute)
            keys.sources.add(found.path.rpartition(".")[0])
    keys.sources.update(module for module, _ in walk.loads)
    for wildcard in table.scope.wildcards:
        keys.imported.add("*")
        keys.sources.add(wildcard.source)
    keys.aliased.update(target.rpartition(".")[2] for _, target in aliases_in(row))
    return Scanned(zlib.compress(msgpack.packb(row), 1), keys)


class _Detailer:
    """Knows the tree of each statement that binds a name."""

    def __init__(self, table: ModuleTable, walk: ModuleWalk) -> None:
        self._table = table
        self._prints = walk.prints
        self._nodes = walk.nodes

    def detail(self, binding: Binding, owners: tuple[Binding, ...]) -> Details:
        if binding.kind not in _DEFINED:
            return Details()
        node = self._nodes.get(binding.span)
        is_async = isinstance(node, ast.AsyncFunctionDef)
        found = Found(self._table.name, self._table, binding, owners)
        signature = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            signature = Signature.from_ast(node.args).text()
        return Details(
            kind=kind_of(found, is_async),
            fingerprint=self._prints.get(binding.span, ""),
            signature=signature,
            decorators=() if node is None else decorators_of(node),
        )

"""Who asks the platform for what, and who loads plugins."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.inventory.items import Item, Table
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location

PLATFORMS = "sglang.srt.platforms"
CURRENT = "current_platform"
LOADER = "sglang.srt.plugins.load_plugins"
_NESTED = "capabilities"
_TESTS = ("sglang.test.",)


def platform_readers(resolver: Resolver) -> Table:
    """Each member that upstream reads off the current platform, with the lines that do.

    A capability is named `capabilities.NAME`.
    """
    sites: dict[str, list[Location]] = {}
    index = resolver.index
    modules = (*index.importing(PLATFORMS), *(i.module for i in index.importers(PLATFORMS)))
    for module in dict.fromkeys(modules):
        table = resolver.table(module)
        if table is None or module.startswith(_TESTS):
            continue
        source = resolver.release.read(table.file) or b""
        if CURRENT.encode() not in source:
            continue
        for name, line in _read(syntax.parse_module(source, table.file)):
            sites.setdefault(name, []).append(Location(table.file, line))
    return {
        name: Item(location=places[0], places=tuple(map(str, places)))
        for name, places in sorted(sites.items())
    }


def _read(tree: ast.Module) -> Iterator[tuple[str, int]]:
    names = {CURRENT}
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name for a in node.names if a.name == CURRENT}
        elif isinstance(node, ast.Assign) and _leaf(node.value) == CURRENT:
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and syntax.dotted(node.func) in ("getattr", "hasattr"):
            owner = syntax.dotted(node.args[0]) if len(node.args) > 1 else None
            name = syntax.string_of(node.args[1]) if len(node.args) > 1 else None
            if owner in names and name is not None:
                yield name, node.lineno
        if not isinstance(node, ast.Attribute) or id(node) in inner:
            continue
        parts = (syntax.dotted(node) or "").split(".")
        depth = next((i for i, part in enumerate(parts[:2]) if part in names), None)
        if depth is None and _NESTED in parts[:-1]:
            depth = parts.index(_NESTED) - 1  # whatever the platform is called there
        if depth is None or len(parts) < depth + 2:
            continue
        inner |= {id(below) for below in ast.walk(node) if below is not node}
        wanted = parts[depth + 1 : depth + 3]
        yield ".".join(wanted if wanted[0] == _NESTED else wanted[:1]), node.lineno


def _leaf(node: ast.expr) -> str:
    return (syntax.dotted(node) or "").rpartition(".")[2]


def plugin_loaders(resolver: Resolver) -> Table:
    """Each function that loads plugins, by its dotted path."""
    found: Table = {}
    for use in resolver.index.references(LOADER):
        if use.kind == "call" and not use.module.startswith(_TESTS):
            path = f"{use.module}.{use.scope}" if use.scope else use.module
            found.setdefault(path, Item(location=use.location))
    return found

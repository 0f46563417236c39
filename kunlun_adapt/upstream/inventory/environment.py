"""The environment variables of a release, declared in its registry or asked for in place."""

from __future__ import annotations

import ast
import re

from kunlun_adapt.upstream.inventory.items import Item, Table
from kunlun_adapt.upstream.release import module_of
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location, Symbol

REGISTRY = "sglang.srt.environ.Envs"
LEFT_OUT = ("sglang/test/", "sglang/benchmark/", "sglang/multimodal_gen/test/")
READS = "read in place"
"""What stands for the type of a variable that no registry declares."""

_ASKED = re.compile(
    rb"(?:environ(?:\.get|\.setdefault|\.pop)?|getenv|get_\w*env\w*)\s*[\[(]\s*"
    rb"[\"']([A-Z][A-Z0-9_]{2,})[\"']"
)
_MOST_PLACES = 5


def environment(resolver: Resolver) -> Table:
    """Each variable with its type and default where the registry declares them."""
    found = _declared(resolver)
    places: dict[str, list[Location]] = {}
    release = resolver.release
    for path in release.files():
        if module_of(path) is None or path.startswith(LEFT_OUT):
            continue
        source = release.read(path) or b""
        if b"env" not in source:
            continue
        for match in _ASKED.finditer(source):
            line = source.count(b"\n", 0, match.start()) + 1
            places.setdefault(match[1].decode(), []).append(Location(path, line))
    for name, sites in places.items():
        if name not in found:
            more = tuple(str(site) for site in sites[1 : 1 + _MOST_PLACES])
            found[name] = Item(READS, None, None, sites[0], more)
    return found


def _declared(resolver: Resolver) -> Table:
    """The assignments `NAME = EnvBool(False)` in the body of the registry's class."""
    symbol = resolver.resolve(REGISTRY)
    node = resolver.statement(symbol) if isinstance(symbol, Symbol) else None
    found: Table = {}
    if not isinstance(symbol, Symbol) or not isinstance(node, ast.ClassDef):
        return found
    # The statement is parsed by itself: its first line is the class's.
    first = symbol.location.line - node.lineno
    for item in ast.walk(node):
        if not isinstance(item, ast.Assign) or not isinstance(item.value, ast.Call):
            continue
        target = item.targets[0]
        if not isinstance(target, ast.Name) or not target.id.isupper():
            continue
        kind = ast.unparse(item.value.func)
        given = [ast.unparse(argument) for argument in item.value.args]
        given += [f"{k.arg}={ast.unparse(k.value)}" for k in item.value.keywords]
        at = Location(symbol.location.file, item.lineno + first)
        found[target.id] = Item(kind, ", ".join(given), None, at)
    return found

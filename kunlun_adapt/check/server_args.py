"""Which server arguments a release has, and what each of them takes.

The class lists its fields itself, or is put together from a list of classes (since 0.5.21 from
those in `arg_groups/fields/`). Where neither is found, nothing is said of any argument.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.wording import did_you_mean
from kunlun_adapt.documents import ServerArg, in_range
from kunlun_adapt.upstream import Resolver, Symbol
from kunlun_adapt.upstream.code import code_digest
from kunlun_adapt.upstream.syntax import last_name

CLASS = "sglang.srt.server_args.ServerArgs"
ALWAYS = "model_path"
"""The one argument that every server needs: whatever lists the fields lists this one."""

PLAIN: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
    "None": (type(None),),
}
_WRAPPERS = {"A", "Annotated", "Final", "Required", "ClassVar"}
_NAMES = {"List": "list", "Sequence": "list", "Dict": "dict", "Mapping": "dict"}

_SOURCES: WeakKeyDictionary[Context, tuple[str, ...]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Takes:
    """What an argument takes: the names of its types, and its values where they are listed."""

    text: str
    types: frozenset[str]
    values: tuple[Any, ...] | None = None

    def refuses(self, value: Any) -> bool:
        """Tell whether a value is surely none that the argument takes."""
        if self.values is not None and value is not None:
            listed = value if isinstance(value, list) and "list" in self.types else [value]
            return any(item not in self.values for item in listed)
        accepted = tuple(kind for name in self.types for kind in PLAIN[name])
        # A flag is a number to Python, and surely a slip in a document.
        if isinstance(value, bool):
            return bool not in accepted
        return not isinstance(value, accepted)


def unknown_server_arg(context: Context, arg: ServerArg, name: str) -> bool:
    """Tell whether `name`, of which this entry speaks, is surely no argument in this release."""
    return in_range(arg.sglang, context.release) and lacks_server_arg(context, name)


def lacks_server_arg(context: Context, name: str) -> bool:
    """Tell whether the release surely has no server argument of this name."""
    return bool(_sources(context)) and server_arg(context, name) is None


def server_arg(context: Context, name: str) -> Symbol | None:
    """Return the field behind a server argument."""
    # Asking for single names: to describe all five hundred takes as long as all other checks.
    for source in _sources(context):
        found = context.facts.resolve(f"{source}.{name}")
        # Only what is annotated is a field; a property of the same name is none.
        if isinstance(found, Symbol) and isinstance(_field(context, found), ast.AnnAssign):
            return found
    return None


def nearest_server_arg(context: Context, name: str) -> str | None:
    """Return the question whether another argument was meant, or None."""
    names = {n for source in _sources(context) for n in _listed(context, source)}
    return did_you_mean(name, names)


def takes(context: Context, field: Symbol) -> Takes | None:
    """Return what an argument takes, or None where its annotation does not tell."""
    node = _field(context, field)
    if not isinstance(node, ast.AnnAssign):
        return None
    given, extras = _unwrapped(node.annotation)
    types, values = _types(given)
    if values is None:
        values = next((v for e in extras if (v := _choices(context, field, e)) is not None), None)
    if not types:
        return None
    if isinstance(node.value, ast.Constant) and node.value.value is None:
        types.add("None")
    return Takes(ast.unparse(given), frozenset(types), values)


def _sources(context: Context) -> tuple[str, ...]:
    """The classes that list the arguments; none where the release cannot be read."""
    if not (context.claimed or context.beyond_claims) or context.reader is None:
        return ()
    if context not in _SOURCES:
        reader = context.reader
        # What is kept of the search goes with its code.
        kind = f"server_args-{code_digest(__file__)[:12]}"
        found = reader.recall(kind, CLASS, lambda: list(_find_sources(reader)))
        _SOURCES[context] = tuple(found)
    return _SOURCES[context]


def _find_sources(reader: Resolver) -> Iterator[str]:
    own = reader.resolve(f"{CLASS}.{ALWAYS}")
    if isinstance(own, Symbol) and own.inherited_from is None:
        yield CLASS
        return
    module = CLASS.rpartition(".")[0]
    table = reader.table(module)
    for bound in table.scope.bindings.values() if table is not None else ():
        for binding in bound:
            if table is None or binding.kind != "assignment":
                continue
            node = table.node(binding)
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if not isinstance(value, ast.List | ast.Tuple) or len(value.elts) < 2:
                continue
            names = [item.id for item in value.elts if isinstance(item, ast.Name)]
            paths = [f"{module}.{name}" for name in names]
            if len(names) == len(value.elts) and any(
                isinstance(reader.resolve(f"{path}.{ALWAYS}"), Symbol) for path in paths
            ):
                yield from paths
                return


def _listed(context: Context, source: str) -> Iterator[str]:
    """The names in a class body; what is inherited is not needed to guess at a misspelling."""
    reader, symbol = context.reader, context.facts.resolve(source)
    if reader is None or not isinstance(symbol, Symbol):
        return
    node = reader.statement(symbol)
    for item in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id


def _field(context: Context, field: Symbol) -> ast.stmt | None:
    return context.reader.statement(field) if context.reader is not None else None


def _unwrapped(annotation: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """Split `A[T, extra, …]` into the type and what is said beside it."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return annotation, []
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) in _WRAPPERS:
        inside = annotation.slice
        if isinstance(inside, ast.Tuple) and inside.elts:
            return inside.elts[0], inside.elts[1:]
        return inside, []
    return annotation, []


def _types(node: ast.expr) -> tuple[set[str], tuple[Any, ...] | None]:
    """The plain types of an annotation, and its `Literal` values; no types where one is unknown."""
    if isinstance(node, ast.Constant) and node.value is None:
        return {"None"}, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right])
    if isinstance(node, ast.Subscript):
        head, inside = last_name(node.value), node.slice
        items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if head == "Literal":
            values = tuple(i.value for i in items if isinstance(i, ast.Constant))
            kinds = {type(v).__name__ for v in values if v is not None}
            return (kinds, values) if len(values) == len(items) else (set(), None)
        if head == "Optional":
            types, listed = _types(inside)
            return ({*types, "None"}, listed) if types else (set(), None)
        if head == "Union":
            return _union(items)
        return _types(node.value)
    name = last_name(node)
    name = _NAMES.get(name, name)
    return ({name}, None) if name in PLAIN else (set(), None)


def _union(items: list[ast.expr]) -> tuple[set[str], tuple[Any, ...] | None]:
    found = [_types(item) for item in items]
    if any(not types for types, _ in found):
        return set(), None
    types = set().union(*(types for types, _ in found))
    plain = [t for t, values in found if values is None and t != {"None"}]
    listed = [values for _, values in found if values is not None]
    return types, tuple(v for values in listed for v in values) if listed and not plain else None


def _choices(context: Context, field: Symbol, extra: ast.expr) -> tuple[Any, ...] | None:
    """The values of `Arg(choices=…)`: a list in place, or one that a name stands for."""
    if not isinstance(extra, ast.Call):
        return None
    given = next((k.value for k in extra.keywords if k.arg == "choices"), None)
    own: list[Any] = []
    if isinstance(given, ast.Name) and context.reader is not None:
        symbol = context.facts.resolve(f"{field.module}.{given.id}")
        if not isinstance(symbol, Symbol):
            return None
        node = context.reader.statement(symbol)
        own = _extended(context, symbol)
        given = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(given, ast.List | ast.Tuple):
        return None
    values = [item.value for item in given.elts if isinstance(item, ast.Constant)]
    return (*values, *own) if len(values) == len(given.elts) else None


def _extended(context: Context, choices: Symbol) -> list[Any]:
    """What our own hooks add to a list of upstream's."""
    found: list[Any] = []
    for hook in context.hooks:
        resolved = hook.symbol.resolved if isinstance(hook.symbol, Symbol) else None
        if hook.hook.type == "extend" and resolved == choices.resolved:
            value = hook.hook.value
            found += value if isinstance(value, list) else [value]
    return found

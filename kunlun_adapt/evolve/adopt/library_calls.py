"""Calls of the standard library through which a plugin finds its own parts and upstream's."""

from __future__ import annotations

import ast
import itertools
from abc import abstractmethod

from kunlun_adapt.evolve.adopt.expressions import MOST_ITEMS
from kunlun_adapt.evolve.adopt.plain_calls import PlainCalls
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    Instance,
    ListValue,
    ModuleValue,
    Scope,
    Unknown,
    Value,
    text_of,
    truth,
)

_ON_ITEMS = (
    *("builtins.map", "builtins.filter", "functools.reduce", "itertools.chain"),
    *("itertools.chain.from_iterable", "itertools.product", "itertools.starmap"),
)
_PACKAGE = "\0package:"
"""What `__path__` holds in place of the folder of a package of the plugin."""
_FOUND = "class ModuleInfo:\n    module_finder: object\n    name: str\n    ispkg: bool\n"


class LibraryCalls(PlainCalls):
    """Evaluates what the standard library would answer about the plugin itself."""

    @abstractmethod
    def call(self, callee: Value, args: list[Value], node: ast.AST, scope: Scope) -> Value:
        """Call a value with positional arguments."""

    def library_call(
        self,
        name: str,
        args: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
        scope: Scope,
    ) -> Value | None:
        """Return what a call gives; None where it is none of those that are known here."""
        first = args[0] if args else None
        if name in _ON_ITEMS:
            return self._on_items(name, args, keywords, node, scope)
        if name in ("collections.OrderedDict", "types.MappingProxyType", "copy.copy"):
            held = first if isinstance(first, (ListValue, DictValue)) or keywords else None
            if held is None and name == "collections.OrderedDict":
                return self.builtin("builtins.dict", args, keywords)
            return held
        if name == "collections.defaultdict":
            found = self.builtin("builtins.dict", args[1:], keywords)
            if isinstance(found, DictValue):
                found.factory = first
            return found
        if name == "collections.deque":
            return self.builtin("builtins.list", args, {})
        if name == "builtins.globals":
            return DictValue([(Const(key), value) for key, value in scope.top.names.items()])
        if name == "inspect.getmembers" and isinstance(first, (ModuleValue, ClassValue, Instance)):
            return self._parts_of(first, args[1] if len(args) > 1 else keywords.get("predicate"))
        if name == "inspect.getmodule" and first is not None:
            return self._module_of(first)
        if name in ("collections.namedtuple", "typing.NamedTuple") and len(args) > 1:
            return self._named_tuple(args, scope)
        if name == "types.SimpleNamespace":
            made = Instance(self._class("class SimpleNamespace:\n    pass\n", scope))
            made.attributes |= keywords
            return made
        if name in ("pkgutil.iter_modules", "pkgutil.walk_packages"):
            prefix = keywords.get("prefix") or (args[1] if len(args) > 1 else Const(""))
            below = name.endswith("walk_packages")
            return self._modules_below(keywords.get("path") or first, prefix, below, scope)
        return None

    def _on_items(
        self,
        name: str,
        args: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
        scope: Scope,
    ) -> Value | None:
        """Answer map, reduce, filter and itertools over items that are known."""
        leaf = name.rpartition(".")[2]
        calls = leaf in ("map", "starmap", "filter", "reduce")
        through = args[1:2] if leaf == "reduce" else args[1:] if calls else args
        columns = [self.items_of(a) for a in through]
        known = [c for c in columns if c is not None]
        if not args or len(known) < len(columns):
            if calls and args and leaf != "filter":
                open_ = [Unknown("an item of an open loop", True) for _ in columns or ("",)]
                with self.under(self.condition(f"for each item that {leaf} gets", node, scope)):
                    self.call(args[0], list(open_), node, scope)
            return Unknown("what a loop over unknown items gives", True)
        if leaf == "map":
            rows = list(zip(*known, strict=False))
            return ListValue([self.call(args[0], list(row), node, scope) for row in rows])
        if leaf == "starmap":
            rows_ = [self.items_of(row) or [] for row in known[0]]
            return ListValue([self.call(args[0], row, node, scope) for row in rows_])
        if leaf == "reduce":
            items = [*args[2:3], *known[0]]
            found: Value = items[0] if items else Unknown("nothing")
            for item in items[1:]:
                found = self.call(args[0], [found, item], node, scope)
            return found
        if leaf == "filter":
            kept = [(v, truth(self.call(args[0], [v], node, scope))) for v in known[0]]
            return ListValue(
                [v for v, on in kept if on is not False], any(o is None for _, o in kept)
            )
        if leaf == "product":
            count = 1
            for column in known:
                count *= len(column)
            if count > MOST_ITEMS or keywords:
                return Unknown("a product", True)
            return ListValue([ListValue(list(row)) for row in itertools.product(*known)])
        flat = known[0] if leaf == "from_iterable" else None
        inner = [self.items_of(v) for v in flat] if flat is not None else columns
        items_ = [item for items in inner for item in items or ()]
        return ListValue(items_[:MOST_ITEMS], None in inner or len(items_) > MOST_ITEMS)

    def package_path(self, module: str) -> Value:
        """Return what stands in for the `__path__` of a package of the plugin."""
        return ListValue([Const(f"{_PACKAGE}{module}")])

    def _parts_of(self, held: Value, wanted: Value | None) -> Value | None:
        """List the names and values that an object of the plugin's holds, as inspect does."""
        kinds = {"isfunction": Function, "isclass": ClassValue}
        leaf = wanted.name.rpartition(".")[2] if isinstance(wanted, External) else ""
        parts = self.held_by(held)
        if not isinstance(parts, DictValue) or (wanted is not None and leaf not in kinds):
            return None
        kind = kinds.get(leaf, Value)
        found = [(text_of(k) or "", v) for k, v in parts.items if isinstance(v, kind)]
        found.sort(key=lambda pair: pair[0])
        rows: list[Value] = [ListValue([Const(name), value]) for name, value in found]
        return ListValue(rows, parts.more)

    def _module_of(self, value: Value) -> Value:
        if isinstance(value, External):
            name = text_of(self.upstream_fact(value.name, "__module__"))
            return self.imported(name) if name else Unknown("a module", True)
        if isinstance(value, (Function, ClassValue)):
            return ModuleValue(value.scope.module)
        return Unknown("a module")

    def _named_tuple(self, args: list[Value], scope: Scope) -> Value | None:
        text = text_of(args[1])
        rows = self.items_of(args[1]) if text is None else None
        firsts = [r.items[0] if isinstance(r, ListValue) and r.items else r for r in rows or ()]
        names = text.replace(",", " ").split() if text else [text_of(f) for f in firsts]
        if not names or text_of(args[0]) is None or not all(n and n.isidentifier() for n in names):
            return None
        body = "".join(f"    {name}: object\n" for name in names)
        return self._class(f"class NamedTuple:\n{body}", scope)

    def _class(self, text: str, scope: Scope) -> ClassValue:
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.ClassDef)
        return ClassValue(node, Scope(scope.module, None, scope.top, is_class=True))

    def _modules_below(
        self, path: Value | None, prefix: Value, below: bool, scope: Scope
    ) -> Value | None:
        """List the modules of a package of the plugin, as pkgutil does for its folder."""
        folders = self.items_of(path) if path is not None else None
        start = text_of(prefix)
        texts = [text_of(folder) or "" for folder in folders or ()]
        if start is None or not texts or not all(t.startswith(_PACKAGE) for t in texts):
            return None
        cls = self._class(_FOUND, scope)
        found: list[Value] = []
        for text in texts:
            package = text.removeprefix(_PACKAGE)
            for name, module in sorted(self.sources.modules.items()):
                inner = name.removeprefix(f"{package}.")
                if inner == name or ("." in inner and not below):
                    continue
                made = Instance(cls)
                made.attributes = {
                    "module_finder": Unknown("a finder"),
                    "name": Const(f"{start}{inner}"),
                    "ispkg": Const(module.is_package),
                }
                found.append(made)
        return ListValue(found)

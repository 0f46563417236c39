"""Calls of the standard library through which a plugin finds its own parts and upstream's."""

from __future__ import annotations

import ast

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
)

_PACKAGE = "\0package:"
"""What `__path__` holds in place of the folder of a package of the plugin."""
_FOUND = "class ModuleInfo:\n    module_finder: object\n    name: str\n    ispkg: bool\n"


class LibraryCalls(PlainCalls):
    """Evaluates what the standard library would answer about the plugin itself."""

    def library_call(
        self, name: str, args: list[Value], keywords: dict[str, Value], scope: Scope
    ) -> Value | None:
        """Return what a call gives; None where it is none of those that are known here."""
        first = args[0] if args else None
        if name == "builtins.globals":
            return DictValue([(Const(key), value) for key, value in scope.top.names.items()])
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

    def package_path(self, module: str) -> Value:
        """Return what stands in for the `__path__` of a package of the plugin."""
        return ListValue([Const(f"{_PACKAGE}{module}")])

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

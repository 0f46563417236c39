"""Operators and registrations: what is handed to functions of upstream's that keep it."""

from __future__ import annotations

import ast
from typing import Any

from kunlun_adapt.evolve.adopt.events import Event
from kunlun_adapt.evolve.adopt.making import Entry, Maker, slug_of, unnamed_why
from kunlun_adapt.evolve.adopt.names import (
    identifier,
    implementation,
    is_dotted,
    kebab,
    upstream_impl,
)
from kunlun_adapt.evolve.adopt.registries import Registry, registry_of
from kunlun_adapt.evolve.adopt.values import (
    Function,
    Value,
    plain,
)
from kunlun_adapt.plan import forward_called
from kunlun_adapt.upstream import Symbol

PLAIN = (bool, int, float, str, type(None))


class Registrations(Maker):
    """Makes the entries for what is registered."""

    def _oot(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            self._unnamed(event)
            return
        impl = implementation(event.value, self._resolver)
        leaf = target.rpartition(".")[2]
        name = base = identifier(kebab(leaf).replace("-", "_"))
        number = 2
        while name in self._operators:
            name, number = f"{base}_{number}", number + 1
        self._operators.add(name)
        params, args = self._parameters(event.value, target)
        golden = f"{target}.forward_native"
        native = isinstance(self._resolver.resolve(golden), Symbol)
        planned = impl is None or not event.called or not native
        bind: Entry = {
            "target": target,
            "sglang": self._claim,
            "style": "oot_forward",
            "args": args,
        }
        if not planned:
            accepted = "the plugin's forward takes every call, as it does without these documents"
            bind["accepts"] = [{"code": "KA306", "why": accepted}]
        recipe: Entry = {
            "apiVersion": "kunlun-adapt/v1",
            "kind": "OperatorRecipe",
            "name": name,
            "family": slug_of(target),
            "why": self._why(event),
            **({"status": "planned"} if planned else {}),
            # Upstream's own reference is what the plugin's forward stands for.
            **({"golden": upstream_impl(golden, self._resolver)} if native else {}),
            "params": params,
            "returns": "object",
            "capture": "safe",
            "binds": [bind],
            **({"kernels": [{"name": "plugin", "impl": impl}]} if impl is not None else {}),
            "otherwise": "error",
        }
        self.bound.operators.append(recipe)
        id = f"{name}/{leaf}"
        self._took(id, "kernel", target, event, "planned" if planned else "active")
        if impl is None:
            self._leave("implementation", event, unnamed_why(event.value), id)
        elif self._imports(impl.partition(":")[0], target):
            module = target.rpartition(".")[0]
            what = f"{impl.partition(':')[0]} imports {module}, which waits for it"
            self._leave("implementation", event, f"{what}; move {leaf}'s forward away", id)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)

    def _imports(self, module: str, target: str) -> bool:
        """Tell whether importing a module of the plugin imports the one that a target is in.

        An operator is bound as upstream's module is imported: its kernel must not wait for that.
        """
        source = self._reading.sources.modules.get(module)
        wanted = target.rpartition(".")[0]
        for node in source.tree.body if source is not None else ():
            if isinstance(node, ast.ImportFrom) and node.module == wanted and not node.level:
                return True
            if isinstance(node, ast.Import) and any(a.name == wanted for a in node.names):
                return True
        return False

    def _parameters(
        self, value: Value | None, target: str
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return an operator's parameters, in the order in which the implementation takes them."""
        call = forward_called(self._resolver, target)
        theirs = call.signature.names if isinstance(call, Symbol) and call.signature else ("self",)
        node = value.node if isinstance(value, Function) else None
        ordered = [p.arg for p in (*node.args.posonlyargs, *node.args.args)] if node else []
        required = len(ordered) - len(node.args.defaults) if node else 0
        if node is None or node.args.vararg is not None:
            ordered = [*ordered, *theirs[len(ordered) :]]
        params, args = {"layer": "object"}, {"layer": "self"}
        for index, parameter in enumerate(ordered[1:], 1):
            name = f"{parameter}_" if parameter in ("layer", "self", "cls") else parameter
            params[name] = "object" if index < required else "object | None"
            args[name] = parameter
        return params, args

    def _register(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            self._unnamed(event)
            return
        found = registry_of(target, self._resolver)
        if found is not None and found.spreads and self._spread(found, event):
            return
        values, impl, fault = self._registered(event)
        fault = fault or self._unread_back(target, found)
        entry: Entry = {"type": "register"}
        if values:
            entry["value"] = values
        if impl is not None:
            entry["impl"] = impl
        if found is not None and not fault:
            entry["readback"] = self._readback(target, found, values)
        if impl is None or fault:
            entry["status"] = "planned"
        # Several registrations by one function are several hooks.
        self._hooked.pop(self._key(target, "register"), None)
        id = self._add_hook(target, entry, event)
        if fault:
            self._leave("unsupported", event, fault, *([id] if id else []))

    def _spread(self, found: Registry, event: Event) -> bool:
        """Add what a function adds, entry by entry, to one of upstream's lists."""
        given = [*event.values, *event.keywords.values()]
        known, entries = plain(given[0]) if len(given) == 1 else (False, None)
        listed = known and isinstance(entries, list) and all(isinstance(e, PLAIN) for e in entries)
        if listed:
            self._add_hook(found.table, {"type": "extend", "value": entries}, event)
        return listed

    def _unread_back(self, target: str, found: Registry | None) -> str:
        """Return why it could not be seen whether a registration took effect, "" where it can."""
        if not isinstance(self._resolver.resolve(target), Symbol):
            return ""  # validate says that it is not there
        if found is None:
            return f"{target} fills no table of upstream's that could be read back"
        if found.key is None and not found.is_list:
            return f"{target} fills {found.table} by a key that no value of the hook is"
        return ""

    def _readback(self, target: str, found: Registry, values: list[Any]) -> Entry:
        """Return where a registration must show; the first value is the key unless stated."""
        names = self._names_of(target)
        readback: Entry = {"target": found.table}
        index = names.index(found.key) if found.key in names else 0
        if 0 < index < len(values):
            readback["key"] = values[index]
        return readback

    def _registered(self, event: Event) -> tuple[list[Any], str | None, str]:
        """Return the plain values and the implementation of a call, and what cannot be said."""
        values: list[Any] = []
        impls: list[str] = []
        fault = ""
        given, by_name = self._in_order(event)
        given += [*by_name.values(), *([event.value] if event.value is not None else [])]
        for value in given:
            known, content = plain(value)
            if known and isinstance(content, PLAIN):
                if impls:
                    fault = "passes values after the implementation, which `register` does not do"
                values.append(content)
            elif (impl := implementation(value, self._resolver)) is not None:
                impls.append(impl)
            else:
                fault = unnamed_why(value)
        if by_name:
            fault = f"passes {', '.join(by_name)} by name, which `register` does not do"
        if len(impls) > 1:
            fault = f"registers several objects at once: {', '.join(impls)}"
        return values, impls[0] if impls else None, fault

    def _in_order(self, event: Event) -> tuple[list[Value], dict[str, Value]]:
        """Return a call's arguments by position, as far as they can be, and those left by name."""
        given, named = list(event.values), dict(event.keywords)
        for name in self._names_of(event.target or "")[len(given) :]:
            if name not in named:
                break
            given.append(named.pop(name))
        return given, named

    def _names_of(self, target: str) -> list[str]:
        """Return the parameters of a function of upstream's, without the receiver."""
        symbol = self._resolver.resolve(target)
        if not isinstance(symbol, Symbol) or symbol.signature is None:
            return []
        bound = symbol.kind in ("method", "classmethod")
        return list(symbol.signature.names)[1 if bound else 0 :]

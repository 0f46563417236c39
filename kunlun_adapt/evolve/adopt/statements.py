"""Read a plugin's statements in the order in which they run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kunlun_adapt.evolve.adopt.calls import Calls
from kunlun_adapt.evolve.adopt.events import Condition
from kunlun_adapt.evolve.adopt.expressions import MOST_ITEMS, joined, known_items
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    Instance,
    ListValue,
    Made,
    ModuleValue,
    Scope,
    Unknown,
    Value,
    Wrapped,
    truth,
)

if TYPE_CHECKING:
    from kunlun_adapt.evolve.adopt.sources import Sources

_NO_LONGER = (Const, Instance, ListValue, DictValue)
"""What a decorator may hand back in place of the function or class that it got."""
Block = list[ast.stmt]


class Statements(Calls):
    """Executes statements over what is known; both sides of an open condition are read.

    It keeps the functions that were defined, for whatever nothing calls, and the classes.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self.defined: list[Value] = []

    def block(self, body: Block, scope: Scope) -> str | None:
        """Read statements; return how they end the flow, None where it goes on."""
        for node in body:
            self.step()
            run: Callable[[Any, Scope], str | None] | None
            run = getattr(self, f"_run_{type(node).__name__}", None)
            ended: str | None = run(node, scope) if run is not None else None
            if ended is not None:
                return ended
        return None

    def _run_Expr(self, node: ast.Expr, scope: Scope) -> str | None:
        self.value(node.value, scope)
        return None

    def _run_Assert(self, node: ast.Assert, scope: Scope) -> str | None:
        self.value(node.test, scope)
        return None

    def _run_Assign(self, node: ast.Assign, scope: Scope) -> str | None:
        found = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, found, scope)
        return None

    def _run_AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> str | None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)
        return None

    def _run_AugAssign(self, node: ast.AugAssign, scope: Scope) -> str | None:
        added = self.value(node.value, scope)
        held = self.value(node.target, scope)
        if isinstance(held, ListValue):
            self.method_of_list(held, "extend", [added])
        elif isinstance(held, DictValue):
            self.method_of_dict(held, "update", [added], {})
        elif self.operated(held, node.op, added, "i") is not None:
            pass
        elif (
            isinstance(held, External)
            and isinstance(node.op, (ast.Add, ast.BitOr))
            and not isinstance(added, Const)
        ):
            name = "extend" if isinstance(node.op, ast.Add) else "update"
            call = ast.copy_location(ast.Call(node.target, [node.value], []), node)
            self.external_call(f"{held.name}.{name}", [added], {}, call, scope)
        else:
            whole = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self.assign(node.target, self._BinOp(whole, scope), scope)
        return None

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a value to a name, an attribute, an entry, or to several of them."""
        if isinstance(target, ast.Name):
            scope.bind(target.id, value)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.value(target.value, scope), target.attr, value, target, scope)
        elif isinstance(target, ast.Subscript):
            held, key = self.value(target.value, scope), self.value(target.slice, scope)
            self.set_entry(held, key, value, target, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, scope)

    def _unpack(self, targets: list[ast.expr], value: Value, scope: Scope) -> None:
        """Bind the parts of a value; one target with a star takes what the others leave."""
        items = self.items_of(value)
        upstream = isinstance(value, (External, Made)) or getattr(value, "upstream", False)
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        parts: list[Value] | None = None
        if items is not None and star is not None and len(items) >= len(targets) - 1:
            end = len(items) - (len(targets) - star - 1)
            parts = [*items[:star], ListValue(items[star:end]), *items[end:]]
        elif items is not None and star is None and len(items) == len(targets):
            parts = items
        for index, one in enumerate(targets):
            name = one.value if isinstance(one, ast.Starred) else one
            known = parts[index] if parts is not None else Unknown("a part", bool(upstream))
            self.assign(name, known, scope)

    def _run_Delete(self, node: ast.Delete, scope: Scope) -> str | None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope.holder(target.id).unbind(target.id)
            elif isinstance(target, ast.Attribute):
                held = self.value(target.value, scope)
                self.removed(held, target.attr, self.place(scope, node))
            elif isinstance(target, ast.Subscript):
                held, key = self.value(target.value, scope), self.value(target.slice, scope)
                self.removed_entry(held, key, self.place(scope, node))
        return None

    def _run_Import(self, node: ast.Import, scope: Scope) -> str | None:
        for alias in node.names:
            self.probe(alias.name)
            found = self.imported(alias.name)
            if alias.asname:
                bound = isinstance(found, External)
                scope.bind(alias.asname, External(alias.name, True) if bound else found)
            else:
                top = alias.name.partition(".")[0]
                scope.bind(top, ModuleValue(top) if self.is_plugin(top) else External(top, True))
        return None

    def _run_ImportFrom(self, node: ast.ImportFrom, scope: Scope) -> str | None:
        source = self._source_of(node, scope)
        self.probe(source)
        held = self.imported(source) if source else Unknown("a module above the plugin")
        for alias in node.names:
            if alias.name != "*":
                name = alias.asname or alias.name
                scope.bind(name, self._imported_name(held, alias.name))
            elif isinstance(held, ModuleValue) and held.name in self.scopes:
                for name, value in list(self.scopes[held.name].names.items()):
                    if not name.startswith("_"):
                        scope.names[name] = value
                scope.top.stars += self.scopes[held.name].stars
            elif isinstance(held, External):
                scope.top.stars.append(held.name)
        return None

    def _imported_name(self, held: Value, name: str) -> Value:
        if isinstance(held, (ModuleValue, Unknown)):
            return self.attribute(held, name)
        return self.outside(f"{held.name}.{name}", True) if isinstance(held, External) else held

    def _source_of(self, node: ast.ImportFrom, scope: Scope) -> str:
        if not node.level:
            return node.module or ""
        module = self.sources.modules.get(scope.module)
        parts = (module.package if module else scope.module).split(".")
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, *([node.module] if node.module else [])])

    def _run_Global(self, node: ast.Global, scope: Scope) -> str | None:
        scope.globals |= set(node.names)
        return None

    def _run_Nonlocal(self, node: ast.Nonlocal, scope: Scope) -> str | None:
        scope.outer |= set(node.names)
        return None

    def _run_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope
    ) -> str | None:
        made: Value = Function(node, scope)
        scope.bind(node.name, made)
        self.defined.append(made)
        for decorator in reversed(node.decorator_list):
            applied = self.call(self.value(decorator, scope), [made], decorator, scope)
            if isinstance(applied, Wrapped):
                applied.path = made.path
                made = applied
            elif isinstance(applied, _NO_LONGER):  # the name leads to something else
                applied.path = applied.path or made.path
                made.path = None
                made = applied
        scope.holder(node.name).names[node.name] = made
        return None

    _run_AsyncFunctionDef = _run_FunctionDef

    def _run_ClassDef(self, node: ast.ClassDef, scope: Scope) -> str | None:
        bases = tuple(self.value(base, scope) for base in node.bases)
        holder = scope.holder(node.name)
        outside = holder.qualname is not None
        inner = Scope(
            scope.module,
            f"{holder.qualname}{node.name}." if outside else None,
            scope,
            is_class=True,
        )
        made = ClassValue(node, inner, bases)
        scope.bind(node.name, made)
        self.classes.append(made)
        self.block(node.body, inner)
        self._made_by(node, made, scope)
        self._tell_bases(node, made, scope)
        for decorator in reversed(node.decorator_list):
            applied = self.call(self.value(decorator, scope), [made], decorator, scope)
            if isinstance(applied, _NO_LONGER):
                made.path = None
        return None

    def _made_by(self, node: ast.ClassDef, made: ClassValue, scope: Scope) -> None:
        """Follow a metaclass of the plugin's, stated here or by a base."""
        meta = self.metaclass_of(made)
        if meta is None:
            return
        held = DictValue([(Const(k), v) for k, v in made.scope.names.items()])
        given: list[Value] = [Const(node.name), ListValue(list(made.bases)), held]
        for name, first in (("__new__", meta), ("__init__", made)):
            method = meta.member(name)
            if isinstance(method, Function):
                self.follow(method, [first, *given], {}, False, self.place(scope, node))

    def _tell_bases(self, node: ast.ClassDef, made: ClassValue, scope: Scope) -> None:
        """Call a base's `__init_subclass__`, with what the class statement passes it."""
        for base in made.bases:
            told = base.member("__init_subclass__") if isinstance(base, ClassValue) else None
            told = told.inner if isinstance(told, Wrapped) else told
            if isinstance(told, Function):
                given = {k.arg: self.value(k.value, scope) for k in node.keywords if k.arg}
                bound = Function(told.node, told.scope, made, path=told.path)
                self.follow(bound, [], given, False, self.place(scope, node))
                return

    def _run_Return(self, node: ast.Return, scope: Scope) -> str | None:
        self.frame.returned.append(self.value(node.value, scope))
        return "return"

    def _run_Raise(self, node: ast.Raise, scope: Scope) -> str | None:
        return "raise"

    def _run_Break(self, node: ast.Break, scope: Scope) -> str | None:
        return "break"

    def _run_Continue(self, node: ast.Continue, scope: Scope) -> str | None:
        return "continue"

    def _run_If(self, node: ast.If, scope: Scope) -> str | None:
        if _for_the_type_checker(node.test):
            return self.block(node.orelse, scope)
        known = truth(self.value(node.test, scope))
        if known is not None:
            return self.block(node.body if known else node.orelse, scope)
        text = ast.unparse(node.test)
        text = text if len(text) <= 100 else f"{text[:97]}..."
        place = self.place(scope, node)
        return self._either(
            Condition(text, place), node.body, Condition(f"not ({text})", place), node.orelse, scope
        )

    def _either(
        self, yes: Condition, body: Block, no: Condition, orelse: Block, scope: Scope
    ) -> str | None:
        """Read both sides of a condition that nobody can tell, and join what they bind."""
        before = dict(scope.names)
        with self.under(yes):
            ended = self.block(body, scope)
        after = scope.names
        scope.names = dict(before)
        with self.under(no):
            ended_else = self.block(orelse, scope)
        if ended is None and ended_else is None:
            why = f"one of two, by the condition at {yes.place}"
            for name, value in after.items():
                other = scope.names.get(name, Const(None))
                scope.names[name] = one = joined(value, other, why)
                if one.path is None and scope.qualname is not None:  # either way it is named so
                    one.path = f"{scope.module}:{scope.qualname}{name}"
        elif ended_else is not None:
            scope.names = after
        if ended is not None and ended_else is not None:
            return ended if ended == ended_else else "return"
        # What only raises on one side refuses to start; it is no choice between two ways to bind.
        if ended is not None and ended != "raise":
            self.frame.guard(no, ended)
        if ended_else is not None and ended_else != "raise":
            self.frame.guard(yes, ended_else)
        return None

    def _run_For(self, node: ast.For | ast.AsyncFor, scope: Scope) -> str | None:
        iterated = self.value(node.iter, scope)
        items = self.items_of(iterated)
        held = len(self.frame.guards)
        if items is None or len(items) > MOST_ITEMS:
            items = []
            if isinstance(iterated, (ListValue, DictValue)):  # some are known, and there are more
                items = known_items(iterated)[:MOST_ITEMS]
            text = f"for each of {ast.unparse(node.iter)[:80]}"
            with self.under(Condition(text, self.place(scope, node))):
                upstream = isinstance(iterated, (External, Made, ListValue, DictValue))
                upstream = upstream or getattr(iterated, "upstream", False)
                item_ = Unknown("an item of an open loop", bool(upstream))
                self.assign(node.target, item_, scope)
                self.block(node.body, scope)
            self.frame.forget(held)
        for item in items:
            self.assign(node.target, item, scope)
            ended = self.block(node.body, scope)
            self.frame.forget(held)
            if ended in ("return", "raise"):
                return ended
            if ended == "break":
                return None
        return self.block(node.orelse, scope)

    _run_AsyncFor = _run_For

    def _run_While(self, node: ast.While, scope: Scope) -> str | None:
        held = len(self.frame.guards)
        for _ in range(MOST_ITEMS):
            known = truth(self.value(node.test, scope))
            if known is None:
                break
            if not known:
                return self.block(node.orelse, scope)
            self.step()
            ended = self.block(node.body, scope)
            self.frame.forget(held)
            if ended in ("return", "raise"):
                return ended
            if ended == "break":
                return None
        with self.under(Condition(f"while {ast.unparse(node.test)[:80]}", self.place(scope, node))):
            self.block(node.body, scope)
        self.frame.forget(held)
        return None

    def _run_With(self, node: ast.With | ast.AsyncWith, scope: Scope) -> str | None:
        entered: list[Value] = []
        for item in node.items:
            found = self.value(item.context_expr, scope)
            entered.append(found)
            if isinstance(found, ListValue) and len(found.items) == 1:  # of a generator
                found = found.items[0]
            elif isinstance(found, Instance):
                found = self.method_called(found, "__enter__", []) or found
            if item.optional_vars is not None:
                self.assign(item.optional_vars, found, scope)
        ended = self.block(node.body, scope)
        for found in reversed(entered):
            if isinstance(found, Instance):
                nothing: list[Value] = [Const(None), Const(None), Const(None)]
                self.method_called(found, "__exit__", nothing)
        return ended

    _run_AsyncWith = _run_With

    def _run_Try(self, node: Any, scope: Scope) -> str | None:
        """Read the body as what happens, and the handlers as what may happen instead."""
        ended: str | None = self.block(node.body, scope)
        if ended is None:
            names = [ast.unparse(h.type)[:80] if h.type else "an exception" for h in node.handlers]
            unharmed = Condition(f"no {' or '.join(names)}", self.place(scope, node))
            with self.under(unharmed if names else None):
                ended = self.block(node.orelse, scope)
        after = dict(scope.names)
        paths = [(value, value.path) for value in after.values()]
        goes_on: list[str] = []
        guards: list[tuple[Condition, str]] = []
        for handler in node.handlers:
            caught = ast.unparse(handler.type)[:80] if handler.type else "an exception"
            text = f"except {caught}" if handler.type else "except"
            if handler.name:
                scope.names[handler.name] = Unknown("an exception")
            with self.under(Condition(text, self.place(scope, handler))):
                handled = self.block(handler.body, scope)
            if handled is None:
                goes_on.append(text)
            elif handled != "raise" and ended is None:
                guards.append((Condition(f"no {caught}", self.place(scope, handler)), handled))
        # What the body binds is what there is where nothing is amiss.
        scope.names |= after
        for value, path in paths:
            value.path = path
        if ended == "raise" and node.handlers:
            ended = None
        elif ended is not None and goes_on:
            # What comes next is reached only where something was amiss.
            guards.append((Condition(" or ".join(goes_on), self.place(scope, node)), ended))
            ended = None
        ended = self.block(node.finalbody, scope) or ended
        for condition, end in guards:
            self.frame.guard(condition, end)
        return ended

    _run_TryStar = _run_Try

    def _run_Match(self, node: Any, scope: Scope) -> str | None:
        subject = ast.unparse(node.subject)[:60]
        self.value(node.subject, scope)
        ends: list[str | None] = []
        for case in node.cases:
            for part in ast.walk(case.pattern):
                if isinstance(name := getattr(part, "name", None), str):
                    scope.names[name] = Unknown("a part of what is matched", True)
            text = f"{subject} matches {ast.unparse(case.pattern)[:60]}"
            condition = Condition(text, self.place(scope, case.body[0]))
            with self.under(condition):
                if case.guard is not None:
                    self.value(case.guard, scope)
                ends.append(self.block(case.body, scope))
            if ends[-1] is not None and ends[-1] != "raise":
                self.frame.guard(replace(condition, text=f"not ({text})"), ends[-1] or "")
        last = node.cases[-1] if node.cases else None
        rest = last is not None and last.guard is None and ast.unparse(last.pattern) == "_"
        return ends[0] if rest and len(set(ends)) == 1 else None


def _for_the_type_checker(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"

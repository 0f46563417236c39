"""Lists, sets and dicts that a plugin makes in a loop of one expression."""

from __future__ import annotations

import ast
from collections.abc import Callable

from kunlun_adapt.evolve.adopt.expressions import MOST_ITEMS, known_items
from kunlun_adapt.evolve.adopt.subscripts import Subscripts
from kunlun_adapt.evolve.adopt.values import DictValue, ListValue, Scope, Unknown, Value, truth


class Loops(Subscripts):
    """Evaluates comprehensions, whatever is known of what they go through."""

    def _comprehension(
        self, generators: list[ast.comprehension], elements: list[ast.expr], scope: Scope
    ) -> tuple[list[list[Value]], bool]:
        """Return the values of `elements` for every round, and whether there are no others."""
        found: list[list[Value]] = []
        inner = Scope(scope.module, None, scope)

        def take(keep: bool) -> None:
            values = [self.value(element, inner) for element in elements]
            if keep and len(found) <= MOST_ITEMS:
                found.append(values)

        known = self._rounds(generators, inner, take, True)
        return found, known and len(found) <= MOST_ITEMS

    def _rounds(
        self,
        generators: list[ast.comprehension],
        scope: Scope,
        take: Callable[[bool], None],
        keep: bool,
    ) -> bool:
        if not generators:
            take(keep)
            return True
        loop, *inner = generators
        iterated = self.value(loop.iter, scope)
        items = self.items_of(iterated)
        known = items is not None
        if items is None:
            items = []
            if isinstance(iterated, (ListValue, DictValue)):
                items = known_items(iterated)
            condition = self.condition(
                f"for each of {ast.unparse(loop.iter)[:80]}", loop.iter, scope
            )
            with self.under(condition):
                self.assign(loop.target, Unknown("an item of an open loop", True), scope)
                for test in loop.ifs:
                    self.value(test, scope)
                self._rounds(inner, scope, take, False)
        for item in items:
            self.step()
            self.assign(loop.target, item, scope)
            tests = [truth(self.value(test, scope)) for test in loop.ifs]
            if False in tests:
                continue
            if None not in tests:
                known &= self._rounds(inner, scope, take, keep)
                continue
            known = False
            text = " and ".join(ast.unparse(test) for test in loop.ifs)[:100]
            with self.under(self.condition(text, loop.iter, scope)):
                self._rounds(inner, scope, take, keep)
        return known

    def _ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
        found, known = self._comprehension(node.generators, [node.elt], scope)
        how = "set" if isinstance(node, ast.SetComp) else "list"
        if not known and not found:
            return Unknown("a list made in a loop", True)
        return ListValue([one[0] for one in found], not known, how)

    _SetComp = _ListComp
    _GeneratorExp = _ListComp

    def _DictComp(self, node: ast.DictComp, scope: Scope) -> Value:
        found, known = self._comprehension(node.generators, [node.key, node.value], scope)
        if not known and not found:
            return Unknown("a dict made in a loop", True)
        return DictValue([(key, value) for key, value in found], not known)

"""Where a function of ours waits for the device, told from its text.

A value that the host reads (`x.item()`, `if x:`, `print(x)`), or a shape that only the values tell
(`x[x > 0]`), makes the host wait until the device has computed it, and ends a graph capture. What
is a tensor is told from annotations, from the recipe, and from what tensors are computed with;
where nothing tells, only methods count that wait whatever they are called on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kunlun_adapt.check import host_reads as by_name
from kunlun_adapt.check.callees import Called, Find, Import, callee
from kunlun_adapt.check.capture_guards import leaves, outside
from kunlun_adapt.check.host_values import (
    ELEMENT,
    Kind,
    Values,
    annotated,
    dotted,
    is_text,
    names_the_host,
)
from kunlun_adapt.check.implementations import Implementation

_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True, slots=True)
class Sync:
    """One place where the host waits: the file and line of it, and its text."""

    place: str
    text: str


def is_readable(function: Implementation) -> bool:
    """Tell whether a path leads to a function whose text is at hand."""
    return function.source is not None and isinstance(function.source[1], ast.FunctionDef)


def host_syncs(start: Implementation, tensors: Iterable[str], find: Find) -> list[Sync]:
    """Return where a function waits, or those of its own package that it calls.

    `tensors` names parameters that are known to be tensors. What only runs outside a capture, as a
    condition with the word says, is left out.
    """
    found: dict[Sync, None] = {}
    seen: dict[str, frozenset[str]] = {}
    waiting = [(start, frozenset(tensors))]
    while waiting:
        function, known = waiting.pop()
        node = function.source[1] if function.source is not None else None
        if not isinstance(node, ast.FunctionDef):
            continue
        place = f"{function.file}:{node.lineno}"
        if place in seen and known <= seen[place]:
            continue
        known |= seen.get(place, frozenset())
        seen[place] = known
        body = Body(node, known)
        for expression in body.syncs():
            found[Sync(f"{function.file}:{expression.lineno}", ast.unparse(expression))] = None
        for called in body.called:
            if (followed := callee(function, called, body.imports, find)) is not None:
                waiting.append(followed)
    return list(found)


class Body:
    """One function's body, read in order: what a name holds is known where it is used."""

    def __init__(self, node: ast.FunctionDef, known: frozenset[str]) -> None:
        self._node = node
        self._values = Values()
        self._aliases: dict[str, ast.expr] = {}
        self.called: list[Called] = []
        self.imports: dict[str, Import] = {}
        self._parameters(node.args, known)

    def syncs(self) -> Iterator[ast.expr]:
        """Yield the expressions at which the host waits; `called` is complete after that."""
        yield from self._block(self._node.body)

    # Statements

    def _block(self, body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
        for statement in body:
            yield from self._statement(statement)
            if leaves(statement, self._aliases):
                return

    def _statement(self, statement: ast.stmt) -> Iterator[ast.expr]:
        if isinstance(statement, ast.If | ast.While):
            yield from self._test(statement.test)
            yield from self._branches(statement.test, statement.body, statement.orelse)
        elif isinstance(statement, ast.For | ast.AsyncFor):
            yield from self._read(statement.iter)
            self._learn_element(statement.target, statement.iter)
            yield from self._block([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Assign):
            yield from self._read(statement.value)
            for target in statement.targets:
                yield from self._stored(target, statement.value)
                self._learn(target, statement.value)
        elif isinstance(statement, ast.AugAssign):
            yield from self._read(statement.value)
            yield from self._read(statement.target)
            if self._is_masked(statement.target):  # read before it is written
                yield statement.target
            if self._values.kind(statement.value).has_tensors:
                self._bind(statement.target, Kind.DEVICE)
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None:
                yield from self._read(statement.value)
                yield from self._stored(statement.target, statement.value)
                self._learn(statement.target, statement.value)
            if (kind := annotated(statement.annotation)) is not Kind.UNKNOWN:
                self._bind(statement.target, kind)
        elif isinstance(statement, ast.Assert):
            yield from self._test(statement.test)
        elif isinstance(statement, ast.Match):
            yield from self._match(statement)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            self._parameters(statement.args, frozenset())
            yield from self._block(statement.body)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                self.imports[alias.asname or alias.name.partition(".")[0]] = statement
        else:
            yield from self._other(statement)

    def _other(self, statement: ast.stmt) -> Iterator[ast.expr]:
        """Read the expressions of a statement, then the blocks in it: `with`, `try`, `return`."""
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                yield from self._read(child)
            elif isinstance(child, ast.withitem):
                yield from self._read(child.context_expr)
        for part in ("body", "orelse", "finalbody"):
            yield from self._block(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from self._block(handler.body)

    def _branches(
        self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]
    ) -> Iterator[ast.expr]:
        for truth, block in ((True, body), (False, orelse)):
            if not outside(test, truth, self._aliases):
                yield from self._block(block)

    def _match(self, statement: ast.Match) -> Iterator[ast.expr]:
        yield from self._read(statement.subject)
        patterns = [p for case in statement.cases for p in ast.walk(case.pattern)]
        compared = any(isinstance(p, ast.MatchValue) for p in patterns)
        if compared and self._values.kind(statement.subject).on_device:
            yield statement.subject
        for case in statement.cases:
            if case.guard is not None:
                yield from self._test(case.guard)
            yield from self._block(case.body)

    def _stored(self, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
        """Where a store waits: `x[mask] = y` must know how many places there are."""
        for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            if not isinstance(part, ast.Subscript):
                continue
            yield from self._read(part.value)
            yield from self._read(part.slice)
            if self._is_masked(part) and self._values.kind(value).on_device:
                yield part

    def _is_masked(self, target: ast.expr) -> bool:
        """Tell whether it is as many places of a tensor as are true in another."""
        indices = _indices(target) if isinstance(target, ast.Subscript) else []
        return any(self._values.kind(index) is Kind.MASK for index in indices)

    # What names hold

    def _parameters(self, arguments: ast.arguments, known: frozenset[str]) -> None:
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            kind = Kind.DEVICE if one.arg in known else annotated(one.annotation)
            named = kind.has_tensors and by_name.is_host_name(one.arg)
            self._values.set(one.arg, Kind.HOST if named else kind)
        if arguments.vararg and annotated(arguments.vararg.annotation) is Kind.DEVICE:
            self._values.set(arguments.vararg.arg, Kind.SEVERAL)

    def _learn(self, target: ast.expr, value: ast.expr) -> None:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        if parts and len(parts) == len(values):
            for one, its in zip(parts, values, strict=True):
                self._learn(one, its)
            return
        if isinstance(target, ast.Name):
            self._aliases[target.id] = value
        self._bind(target, self._values.kind(value))

    def _learn_element(self, target: ast.expr, iterated: ast.expr) -> None:
        """Take note of what a loop hands out, of `enumerate` and `zip` one by one."""
        parts = target.elts if isinstance(target, ast.Tuple) else []
        name, given = "", []
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
            name, given = iterated.func.id, iterated.args
        if name == "enumerate" and len(parts) == 2 and given:
            self._bind(parts[0], Kind.KNOWN)
            self._learn_element(parts[1], given[0])
        elif name == "zip" and len(parts) == len(given):
            for part, one in zip(parts, given, strict=True):
                self._learn_element(part, one)
        else:
            kind = self._values.kind(iterated)
            self._bind(target, ELEMENT.get(kind, kind))

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            self._values.set(target.id, kind)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, Kind.SEVERAL if kind.has_tensors else Kind.UNKNOWN)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._bind(part, ELEMENT.get(kind, kind))

    # Expressions

    def _test(self, test: ast.expr) -> Iterator[ast.expr]:
        yield from self._read(test, decided=True)
        if self._decides(test):
            yield test

    def _decides(self, test: ast.expr) -> bool:
        """Tell whether deciding a test, inside a capture, reads a tensor's values."""
        if isinstance(test, ast.BoolOp):
            return any(self._decides(value) for value in self._reached(test))
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._decides(test.operand)
        return self._values.kind(test).on_device

    def _reached(self, node: ast.BoolOp) -> list[ast.expr]:
        """Return the parts of an `and` or `or` that are evaluated inside a capture."""
        reached: list[ast.expr] = []
        for value in node.values:
            reached.append(value)
            if outside(value, isinstance(node.op, ast.And), self._aliases):
                break
        return reached

    def _read(self, node: ast.expr, decided: bool = False) -> Iterator[ast.expr]:
        """Yield where evaluating an expression waits; `decided`: its truth is asked for above."""
        if isinstance(node, ast.BoolOp):
            reached = self._reached(node)
            for value in reached:
                yield from self._read(value, decided or value is not node.values[-1])
            asked = [value for value in reached if value is not node.values[-1]]
            if not decided and any(self._decides(value) for value in asked):
                yield node
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._read(node.operand, decided=True)
            if not decided and self._decides(node.operand):
                yield node
        elif isinstance(node, ast.IfExp):
            yield from self._test(node.test)
            for truth, part in ((True, node.body), (False, node.orelse)):
                if not outside(node.test, truth, self._aliases):
                    yield from self._read(part)
        elif isinstance(node, _Comprehension):
            yield from self._comprehension(node)
        elif isinstance(node, ast.NamedExpr):
            yield from self._read(node.value)
            self._learn(node.target, node.value)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.keyword):
                    child = child.value
                if isinstance(child, ast.expr):
                    yield from self._read(child)
            if isinstance(node, ast.Call):
                self._note(node)
            if self._waits(node, decided):
                yield node.value if isinstance(node, ast.FormattedValue) else node

    def _comprehension(self, node: _Comprehension) -> Iterator[ast.expr]:
        for generator in node.generators:
            yield from self._read(generator.iter)
            self._learn_element(generator.target, generator.iter)
            for test in generator.ifs:
                yield from self._test(test)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for result in results:
            yield from self._read(result)

    def _note(self, call: ast.Call) -> None:
        if name := dotted(call.func):
            kind = self._values.kind
            given = {i for i, a in enumerate(call.args) if kind(a).on_device}
            by_keyword = {k.arg for k in call.keywords if k.arg and kind(k.value).on_device}
            self.called.append(Called(name, frozenset(given | by_keyword)))

    def _waits(self, node: ast.expr, decided: bool) -> bool:
        """Tell whether an expression waits by itself, apart from what is in it."""
        kind = self._values.kind
        if isinstance(node, ast.FormattedValue):
            return kind(node.value).has_tensors
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left):
            return kind(node.right).has_tensors
        if isinstance(node, ast.Compare):
            return self._compare_waits(node, decided)
        if isinstance(node, ast.Subscript):
            return self._index_waits(node)
        return isinstance(node, ast.Call) and self._call_waits(node)

    def _compare_waits(self, node: ast.Compare, decided: bool) -> bool:
        kind = self._values.kind
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            inside = isinstance(op, ast.In | ast.NotIn)
            listed = isinstance(right, ast.Tuple | ast.List) or kind(right) is Kind.SEVERAL
            if inside and (kind(right).on_device or (listed and kind(left).on_device)):
                return True
        # `a < x < b` is an `and`.
        return not decided and len(node.ops) > 1 and kind(node) is Kind.MASK

    def _index_waits(self, node: ast.Subscript) -> bool:
        kind = self._values.kind
        bounds = [
            b
            for i in _indices(node)
            if isinstance(i, ast.Slice)
            for b in (i.lower, i.upper, i.step)
        ]
        if any(kind(bound).on_device for bound in bounds):
            return True
        if self._is_masked(node):
            return isinstance(node.ctx, ast.Load)
        listed = kind(node.value) in (Kind.KNOWN, Kind.SEVERAL)
        return listed and any(kind(i).on_device for i in _indices(node))

    def _call_waits(self, call: ast.Call) -> bool:
        values = self._values
        given = [*call.args, *(k.value for k in call.keywords)]
        if isinstance(call.func, ast.Name):
            name = call.func.id
            if name in by_name.DECIDING:
                return any(values.kind(a).on_device for a in given)
            reads = name in by_name.SPELLING or name in by_name.COMPARING
            return reads and values.has_tensors(given)
        if not isinstance(call.func, ast.Attribute):
            return False
        owner, name = call.func.value, call.func.attr
        module = dotted(owner)
        if module == "torch":
            return self._torch_waits(name, call, given)
        if module.partition(".")[0] in by_name.READING_MODULES and module not in values:
            return values.has_tensors(given)
        if name in by_name.LOGGING and "log" in module.rpartition(".")[2].lower():
            return values.has_tensors(given)
        if is_text(owner):
            return name == "format" and values.has_tensors(given)
        return self._method_waits(values.kind(owner), name, call, given)

    def _method_waits(self, owner: Kind, name: str, call: ast.Call, given: list[ast.expr]) -> bool:
        values = self._values
        if owner.needs_no_device:
            late = any(k.arg == "non_blocking" for k in call.keywords)
            brings = name == "copy_" and any(values.kind(a).on_device for a in call.args[:1])
            return owner is Kind.HOST and brings and not late
        if name in by_name.WAITING or (name == "to" and names_the_host(call)):
            return True
        if not owner.on_device:
            return False
        if name in by_name.NUMBERS_METHODS:
            return values.has_tensors(given)
        return name in by_name.WAITING_OF_TENSORS or self._repeats(name, call, call.args[:1])

    def _torch_waits(self, name: str, call: ast.Call, given: list[ast.expr]) -> bool:
        values = self._values
        if name in by_name.WAITING_TORCH:
            return not given or not values.kind(given[0]).needs_no_device
        if name in by_name.NUMBERS_TORCH:
            return values.has_tensors(given)
        if name in by_name.ELEMENTS_TORCH:
            return any(values.kind(a) is Kind.SEVERAL for a in given)
        if name == "where":
            return len(given) == 1 and values.kind(given[0]).on_device
        return self._repeats(name, call, call.args[1:2] or call.args)

    def _repeats(self, name: str, call: ast.Call, counts: list[ast.expr]) -> bool:
        """How long `repeat_interleave` makes a tensor is told by another one, unless it is said."""
        told = any(k.arg == "output_size" for k in call.keywords)
        counts = [*counts, *(k.value for k in call.keywords if k.arg == "repeats")]
        by_tensor = any(self._values.kind(count).on_device for count in counts)
        return name == "repeat_interleave" and by_tensor and not told


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]

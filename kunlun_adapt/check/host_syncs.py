"""Where a function of ours waits for the device, told from its text.

A value that the host reads (`x.item()`, `if x:`, `print(x)`) makes the host wait until the device
has computed it, and ends a graph capture. What is a tensor is told from annotations, from the
recipe, and from what tensors are computed with; where nothing tells, only methods count that wait
whatever they are called on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kunlun_adapt.check.implementations import Implementation

Find = Callable[[str], object]

WAITING = frozenset({"item", "cpu", "tolist", "numpy", "synchronize", "is_nonzero", "nonzero"})
"""Methods that wait, whatever they are called on."""
_WAITING_TORCH = frozenset({"torch.equal", "torch.allclose", "torch.nonzero", "torch.is_nonzero"})
_READING = frozenset({"bool", "int", "float", "str", "repr", "print"})
# What the host knows of a tensor without the device.
_KNOWN_METHODS = frozenset(
    {"size", "stride", "dim", "numel", "element_size", "is_contiguous", "data_ptr", "get_device"}
    | {"storage_offset", "is_floating_point", "nelement", "ndimension"}
)
_TENSOR_ATTRIBUTES = frozenset({"T", "mT", "data", "grad"})
_NO_TENSOR_TORCH = frozenset(
    {"is_tensor", "device", "finfo", "iinfo", "Size", "Generator", "compile"}
)
_CAPTURING = "captur"


@dataclass(frozen=True, slots=True)
class Sync:
    """One place where the host waits: the file and line of it, and its text."""

    place: str
    text: str


def host_syncs(start: Implementation, tensors: Iterable[str], find: Find) -> list[Sync]:
    """Return where a function waits, or those of its own package that it calls.

    `tensors` names parameters that are known to be tensors. What only runs outside a capture, as a
    condition with the word says, is left out.
    """
    found: dict[Sync, None] = {}
    seen: set[str] = set()
    waiting = [(start, frozenset(tensors))]
    while waiting:
        function, known = waiting.pop()
        node = function.source[1] if function.source is not None else None
        if not isinstance(node, ast.FunctionDef):
            continue
        place = f"{function.file}:{node.lineno}"
        if place in seen:
            continue
        seen.add(place)
        body = _Body(node, known)
        for expression in body.syncs():
            found[Sync(f"{function.file}:{expression.lineno}", ast.unparse(expression))] = None
        for name in body.called:
            callee = find(f"{function.module}:{name}")
            if isinstance(callee, Implementation):
                waiting.append((callee, frozenset()))
    return list(found)


class _Body:
    """One function's body, read in order: what a name holds is known where it is used."""

    def __init__(self, node: ast.FunctionDef, known: frozenset[str]) -> None:
        self._node = node
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self._tensors = {a.arg for a in named if _is_tensor_annotation(a.annotation)}
        self._tensors |= {a.arg for a in named if a.arg in known}
        self.called: list[str] = []

    def syncs(self) -> list[ast.expr]:
        found: list[ast.expr] = []
        for statement in self._statements(self._node.body):
            found += self._in_statement(statement)
        return found

    def _statements(self, body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            if isinstance(statement, ast.If) and _CAPTURING in ast.unparse(statement.test):
                negated = isinstance(statement.test, ast.UnaryOp)
                yield from self._statements(statement.orelse if negated else statement.body)
                continue
            yield statement
            for part in ("body", "orelse", "finalbody"):
                yield from self._statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from self._statements(handler.body)

    def _in_statement(self, statement: ast.stmt) -> Iterator[ast.expr]:
        for expression in _own_expressions(statement):
            yield from self._in_expression(expression)
        if isinstance(statement, ast.If | ast.While | ast.Assert) and self._truth(statement.test):
            yield statement.test
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._learn(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._learn(statement.target, statement.value)

    def _learn(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            change = self._tensors.add if self._tensor(value) else self._tensors.discard
            change(target.id)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=False):
                self._learn(one, its)

    def _in_expression(self, expression: ast.expr) -> Iterator[ast.expr]:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name):
                    self.called.append(node.func.id)
                if self._waits(node):
                    yield node
            elif isinstance(node, ast.IfExp) and self._truth(node.test):
                yield node.test
            elif isinstance(node, ast.FormattedValue) and self._tensor(node.value):
                yield node.value

    def _waits(self, call: ast.Call) -> bool:
        called = call.func
        if isinstance(called, ast.Name):
            return called.id in _READING and any(self._tensor(a) for a in call.args)
        if not isinstance(called, ast.Attribute):
            return False
        if ast.unparse(called) in _WAITING_TORCH or called.attr in WAITING:
            return True
        given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
        return called.attr == "to" and any(_names_the_host(value) for value in given)

    def _truth(self, test: ast.expr) -> bool:
        """Tell whether deciding a test reads a tensor's values."""
        if isinstance(test, ast.BoolOp):
            return any(self._truth(value) for value in test.values)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._truth(test.operand)
        return self._tensor(test)

    def _tensor(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._tensors
        if isinstance(node, ast.Subscript):
            return self._tensor(node.value)
        if isinstance(node, ast.Attribute):
            return node.attr in _TENSOR_ATTRIBUTES and self._tensor(node.value)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self._tensor(node.operand)
        if isinstance(node, ast.BinOp):
            return self._tensor(node.left) or self._tensor(node.right)
        if isinstance(node, ast.IfExp):
            return self._tensor(node.body) or self._tensor(node.orelse)
        if isinstance(node, ast.Compare):
            plain = all(
                not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops
            )
            return plain and any(self._tensor(side) for side in (node.left, *node.comparators))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id == "torch":
                return name not in _NO_TENSOR_TORCH and not name.startswith("is_")
            waits = name in WAITING and name not in ("cpu", "nonzero")
            return name not in _KNOWN_METHODS and not waits and self._tensor(owner)
        return False


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, without those of the statements inside it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _is_tensor_annotation(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    options = _options(annotation)
    return "Tensor" in options and options <= {"Tensor", "None"}


def _options(annotation: ast.expr) -> set[str]:
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _options(annotation.left) | _options(annotation.right)
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return {part.strip().removeprefix("torch.") for part in str(text).split("|")}


def _names_the_host(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == "cpu"
    return ast.unparse(node) in ("torch.device('cpu')", 'torch.device("cpu")')

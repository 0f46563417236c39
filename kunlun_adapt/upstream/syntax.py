"""Small questions about syntax trees: guards, names, the normalised body hash.

Trees are read and dropped. What a table keeps of a definition is its span of source lines, from
which the tree is made again for the few definitions that somebody asks about: the trees of 250
modules would take ten times the memory of their text.
"""

from __future__ import annotations

import ast
import gc
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kunlun_adapt.upstream.body_text import BodyText

DefinitionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switch the cyclic collector off: building trees is twice as fast without its scans."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def parse_module(source: bytes, file: str) -> ast.Module:
    """Parse a file's bytes; raises SyntaxError or ValueError where Python would not take them."""
    with collector_paused():
        return ast.parse(source, filename=file)


@dataclass(frozen=True, slots=True)
class Span:
    """Where a statement stands: lines from 1, columns in UTF-8 bytes from 0, end excluded."""

    line: int = 1
    column: int = 0
    end_line: int = 1
    end_column: int = 0

    @classmethod
    def of(cls, node: ast.stmt) -> Span:
        """The span of a parsed statement, decorators included."""
        line = node.lineno
        if isinstance(node, DefinitionNode) and node.decorator_list:
            line = min(line, node.decorator_list[0].lineno)
        return cls(line, node.col_offset, node.end_lineno or line, node.end_col_offset or 0)

    def cut(self, source: str) -> str:
        """The statement's text; what stands before it on its line is blanked out."""
        # Only \n ends a line for the parser; str.splitlines would also split at form feeds.
        lines = source.split("\n")[self.line - 1 : self.end_line]
        lines[-1] = lines[-1].encode()[: self.end_column].decode()
        before = lines[0].encode()[: self.column]
        if before.strip():
            lines[0] = " " * self.column + lines[0].encode()[self.column :].decode()
        return "\n".join(lines) + "\n"


def parse_span(text: str) -> ast.stmt:
    """Parse the text of one statement, whatever its indentation.

    The lines are put under an `if`, not dedented: dedenting would alter multi-line strings.
    """
    if text[:1] in (" ", "\t"):
        block = ast.parse("if 1:\n" + text).body[0]
        assert isinstance(block, ast.If)
        return block.body[0]
    return ast.parse(text).body[0]


def dotted(node: ast.expr) -> str | None:
    """The dotted name that an expression spells (`a.b.c`), or None where it is not one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def last_name(node: ast.expr) -> str:
    """The last part of the name that an expression spells (`c` of `a().b.c`), or an empty text."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def base_name(node: ast.expr) -> str | None:
    """The dotted name of a base class, seen through `Base[T]`; None for any other expression."""
    return dotted(node.value) if isinstance(node, ast.Subscript) else dotted(node)


def decorator_name(node: ast.expr) -> str:
    """The dotted name of a decorator without its arguments."""
    while isinstance(node, ast.Call):
        node = node.func
    return dotted(node) or ast.unparse(node)


def string_of(node: ast.expr | None) -> str | None:
    """The value of a string literal, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def strings_of(node: ast.expr | None) -> tuple[str, ...] | None:
    """The values of a list, tuple or set of string literals, or None."""
    if (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and dotted(node.func) in ("frozenset", "set", "list", "tuple")
    ):
        return strings_of(node.args[0])
    if not isinstance(node, ast.List | ast.Tuple | ast.Set):
        return None
    values = [string_of(item) for item in node.elts]
    return None if None in values else tuple(value for value in values if value is not None)


def branches(value: ast.expr) -> tuple[tuple[str, str], ...]:
    """The names that a conditional expression chooses from, each with the condition for it.

    Empty for any other expression, and where something in it has no dotted name.
    """
    if not isinstance(value, ast.IfExp):
        return ()
    found: list[tuple[str, str]] = []
    for condition, branch in (
        (condition_text(value.test), value.body),
        (negated(value.test), value.orelse),
    ):
        name = dotted(branch)
        inner = branches(branch)
        if name is None and not inner:
            return ()
        found += [(condition, name)] if name else [(f"{condition} and {c}", n) for c, n in inner]
    return tuple(found)


def names_of(node: ast.stmt) -> tuple[str, ...]:
    """The dotted names in the list or tuple that a statement assigns; none where it is no such."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.List | ast.Tuple):
        return ()
    names = [dotted(item) for item in value.elts]
    return () if None in names else tuple(name for name in names if name is not None)


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING`, which is false whenever code runs."""
    return (dotted(test) or "").rpartition(".")[2] == "TYPE_CHECKING"


def is_main(test: ast.expr) -> bool:
    """Whether a condition is `__name__ == "__main__"`, which is false on import."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and string_of(test.comparators[0]) == "__main__"
    )


def condition_text(test: ast.expr) -> str:
    """The source text of a condition; an `or` keeps its meaning when it is joined with others."""
    text = ast.unparse(test)
    return f"({text})" if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else text


def negated(test: ast.expr) -> str:
    """The source text of the opposite of a condition, to be joined with others as well."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return condition_text(test.operand)
    return ast.unparse(ast.UnaryOp(ast.Not(), test))


def joined(outer: str | None, inner: str | None) -> str | None:
    """The guard that holds where both hold."""
    if outer is None or inner is None or outer == inner:
        return inner if outer is None else outer
    return f"{outer} and {inner}"


def guard_of(tests: Iterable[tuple[ast.expr, bool]]) -> str | None:
    """The guard of what stands under conditions, outermost first, each with how it comes out."""
    guard: str | None = None
    for test, holds in tests:
        guard = joined(guard, condition_text(test) if holds else negated(test))
    return guard


def is_async_generator(node: ast.AST) -> bool:
    """Whether a function is an `async def` whose own body yields: it is iterated, not awaited."""
    if not isinstance(node, ast.AsyncFunctionDef):
        return False
    pending: list[ast.AST] = [*node.body]
    while pending:
        item = pending.pop()
        if isinstance(item, ast.Yield):
            return True
        if not isinstance(item, DefinitionNode | ast.Lambda):
            pending.extend(ast.iter_child_nodes(item))
    return False


_BODIES = BodyText()


def fingerprint(node: ast.AST) -> str:
    """Hash what a definition does: its body without comments, formatting and docstrings.

    The name, the parameters and the decorators of a function are left out, since a symbol states
    them on its own and a rename must keep the hash.
    """
    if isinstance(node, DefinitionNode):
        text = type(node).__name__ + _BODIES.body(node)
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        text = "value" + ("None" if node.value is None else _BODIES.text(node.value))
    else:
        text = _BODIES.text(node)
    return hashed(text)


def hashed(text: str) -> str:
    """The hash of a body's text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

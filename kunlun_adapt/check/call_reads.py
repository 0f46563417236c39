"""Which of our own names a hook's implementation reads from the call that it gets, by its source.

The call is followed into functions of the same module that it, or its `args`, is passed on to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from kunlun_adapt.check.module_names import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.Match, ast.BoolOp, ast.While, ast.For)
_TESTS = ("test", "iter", "subject")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True)
class CallReads:
    """The names that an implementation asks a call for, each with the line that asks first."""

    needed: dict[str, int] = field(default_factory=dict)
    """Those without which it fails, whatever else the call has."""
    branched: dict[str, int] = field(default_factory=dict)
    """Those without which a branch of it fails, which another release may never take."""
    optional: dict[str, int] = field(default_factory=dict)
    """Those that it asks for, or puts there, in a way that also does without."""
    whole: bool = False
    """Whether it hands the call on to where nobody follows it, so that it may read anything."""

    def names(self) -> set[str]:
        return {*self.needed, *self.branched, *self.optional}


def call_reads(module: Module, function: Function) -> CallReads:
    """Read what a function asks of its first parameter, the call."""
    reads = CallReads()
    ordered = [*function.args.posonlyargs, *function.args.args]
    if ordered:
        _Reader(module, reads, set()).function(function, {ordered[0].arg}, set(), False)
    for name in reads.optional:
        reads.needed.pop(name, None)
        reads.branched.pop(name, None)
    for name in reads.needed:
        reads.branched.pop(name, None)
    return reads


class _Reader:
    def __init__(self, module: Module, reads: CallReads, seen: set[tuple[object, ...]]) -> None:
        self._module = module
        self._reads = reads
        self._seen = seen
        self._calls: set[str] = set()
        self._args: set[str] = set()

    def function(self, node: Function, calls: set[str], args: set[str], branch: bool) -> None:
        """Read a function in which some names hold the call, and others its `args`."""
        key = (node.name, node.lineno, frozenset(calls), frozenset(args), branch)
        if key in self._seen:
            return
        self._seen.add(key)
        self._calls, self._args = calls, args | _aliases(node, calls)
        if any(name in calls | args for name in _bound(node)):
            self._reads.whole = True  # the name is given to something else
            return
        for statement in node.body:
            self._visit(statement, branch)

    def _visit(self, node: ast.AST, branch: bool) -> None:
        if isinstance(node, _FUNCTIONS) and _parameters(node) & (self._calls | self._args):
            return  # the name is another's in there
        if self._asked(node, branch) or self._assigned_args(node):
            return
        if isinstance(node, ast.Name) and node.id in self._calls | self._args:
            self._reads.whole = True
        inner = branch or isinstance(node, (*_BRANCHES, *_FUNCTIONS))
        for child in ast.iter_child_nodes(node):
            self._visit(child, branch if child is _certain(node) else inner)

    def _asked(self, node: ast.AST, branch: bool) -> bool:
        """Note a use of the call in a form that is known, and look into what else is in it."""
        if isinstance(node, ast.Subscript) and self._is_args(node.value):
            self._subscript(node, branch)
        elif isinstance(node, ast.Compare) and any(self._is_args(c) for c in node.comparators):
            self._note_optional(node.left)
        elif isinstance(node, ast.Call):
            return self._called(node, branch)
        elif isinstance(node, ast.Attribute) and self._is_call(node.value) and node.attr != "args":
            pass  # its `id`, `result` and the like
        else:
            return False
        return True

    def _subscript(self, node: ast.Subscript, branch: bool) -> None:
        name = _text(node.slice)
        if name is None:
            self._reads.whole = True
            self._visit(node.slice, branch)
        elif isinstance(node.ctx, ast.Load):
            self._need(name, node.lineno, branch)
        else:
            self._reads.optional.setdefault(name, node.lineno)

    def _called(self, node: ast.Call, branch: bool) -> bool:
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        function = node.func
        if isinstance(function, ast.Attribute) and self._is_args(function.value) and node.args:
            if function.attr == "pop" and len(given) == 1:
                name = _text(node.args[0])
                if name is not None:
                    self._need(name, node.lineno, branch)
            else:
                self._note_optional(node.args[0])
        elif isinstance(function, ast.Attribute) and self._is_call(function.value):
            if function.attr == "original":
                for keyword in node.keywords:
                    if keyword.arg is not None:
                        self._need(keyword.arg, node.lineno, branch)
                    else:
                        self._reads.whole = True
        elif isinstance(function, ast.Name) and self._passed_on(function.id, node, branch):
            given = [value for value in given if not self._is_call(value)]
            given = [value for value in given if not self._is_args(value)]
        else:
            return False
        for value in given:
            self._visit(value, branch)
        return True

    def _passed_on(self, name: str, node: ast.Call, branch: bool) -> bool:
        """Follow the call, or its `args`, into a function of the same module."""
        target = self._module.names.get(name)
        if not isinstance(target, Function) or target.decorator_list:
            return False
        ordered = [a.arg for a in (*target.args.posonlyargs, *target.args.args)]
        plain = not any(isinstance(value, ast.Starred) for value in node.args)
        given = [*zip(ordered, node.args, strict=False)] if plain else []
        given += [(k.arg, k.value) for k in node.keywords if k.arg is not None]
        calls = {parameter for parameter, value in given if self._is_call(value)}
        args = {parameter for parameter, value in given if self._is_args(value)}
        if not calls and not args:
            return False
        _Reader(self._module, self._reads, self._seen).function(target, calls, args, branch)
        return True

    def _assigned_args(self, node: ast.AST) -> bool:
        """Tell whether this only gives `call.args` another name, which is followed."""
        return isinstance(node, ast.Assign) and _is_alias(node, self._calls)

    def _need(self, name: str, line: int, branch: bool) -> None:
        (self._reads.branched if branch else self._reads.needed).setdefault(name, line)

    def _note_optional(self, node: ast.expr) -> None:
        name = _text(node)
        if name is None:
            self._reads.whole = True
        else:
            self._reads.optional.setdefault(name, node.lineno)

    def _is_call(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self._calls

    def _is_args(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._args
        return isinstance(node, ast.Attribute) and node.attr == "args" and self._is_call(node.value)


def _certain(node: ast.AST) -> ast.AST | None:
    """The part of a branching node that is looked at whichever branch is taken."""
    if isinstance(node, ast.BoolOp):
        return node.values[0]
    return next((p for k in _TESTS if (p := getattr(node, k, None)) is not None), None)


def _aliases(function: Function, calls: set[str]) -> set[str]:
    """The names to which a function gives `call.args`."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_alias(node, calls)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_alias(node: ast.Assign, calls: set[str]) -> bool:
    value = node.value
    return (
        isinstance(value, ast.Attribute)
        and value.attr == "args"
        and isinstance(value.value, ast.Name)
        and value.value.id in calls
        and all(isinstance(target, ast.Name) for target in node.targets)
    )


def _bound(function: Function) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    return {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

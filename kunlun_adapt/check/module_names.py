"""The names that a module's source binds, read and never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024


class NotReadable(Exception):
    """A file that gives no names, and why."""


@dataclass(slots=True)
class Module:
    """The statements of one file that bind names, without those inside functions and classes."""

    file: Path
    package: str
    names: dict[str, ast.stmt] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    dynamic: bool = False
    """Whether code fills in names that nobody can read off."""
    own_names: set[str] = field(default_factory=set)
    """The names under which it keeps its `globals()`."""
    aliases: dict[str, list[str]] = field(default_factory=dict)
    """For each name that `import X as name` binds the modules that it may stand for."""
    registered: dict[str, list[str]] = field(default_factory=dict)
    """Its entries in `sys.modules`, as `os` makes one for `os.path`: what each may stand for."""
    registers: bool = False
    """Whether it makes entries whose name or module cannot be read off."""


def parse(file: Path, name: str) -> Module:
    """Read the module of this dotted name. Raises NotReadable."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise NotReadable(f"{file.name} is too large to read")
        tree = ast.parse(file.read_bytes(), filename=file.name)
    except SyntaxError as error:
        raise NotReadable(f"{file.name}:{error.lineno} is not Python: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise NotReadable(f"{file.name} cannot be read: {error}") from error
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    module = Module(file, package)
    _collect(tree.body, module)
    return module


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """Return the dotted name of what a `from` import imports from."""
    if node.level == 0:
        return node.module or ""
    kept = module.package.split(".")
    kept = kept[: len(kept) - (node.level - 1)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def inside(node: ast.stmt, name: str) -> ast.stmt | None:
    """The statement that binds a name in a class body."""
    if not isinstance(node, ast.ClassDef):
        return None
    inner = Module(Path(), "")
    _collect(node.body, inner)
    return inner.names.get(name)


def has_bases(node: ast.ClassDef) -> bool:
    """Tell whether a class may have members that its body does not name."""
    plain = all(isinstance(base, ast.Name) and base.id == "object" for base in node.bases)
    return not plain or bool(node.keywords)


def _collect(body: list[ast.stmt], module: Module) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.names[node.name] = node
            module.dynamic |= node.name == "__getattr__"
        elif isinstance(node, ast.ImportFrom | ast.Import):
            _imported(node, module)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            _assigned(node, module)
        elif isinstance(node, ast.Expr):
            module.dynamic |= _fills(node, module)
        else:
            for part in ("body", "orelse", "finalbody"):
                _collect(getattr(node, part, []), module)
            for handler in getattr(node, "handlers", []):
                _collect(handler.body, module)


def _imported(node: ast.ImportFrom | ast.Import, module: Module) -> None:
    for alias in node.names:
        if alias.name == "*" and isinstance(node, ast.ImportFrom):
            module.stars.append(absolute(module, node))
            continue
        bound = alias.asname or alias.name.partition(".")[0]
        module.names[bound] = node
        if isinstance(node, ast.Import):
            module.aliases.setdefault(bound, []).append(alias.name if alias.asname else bound)


def _assigned(node: ast.Assign | ast.AnnAssign | ast.AugAssign, module: Module) -> None:
    module.dynamic |= _fills(node, module)
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "sys.modules":
            _registered(target.slice, node.value, module)
        for item in _bound(target):
            module.names[item.id] = node


def _bound(target: ast.expr) -> Iterator[ast.Name]:
    """Yield the names that an assignment binds, and not those by which it finds its place."""
    return (n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _registered(key: ast.expr, value: ast.expr | None, module: Module) -> None:
    """An entry in `sys.modules`; one under the module's own name exchanges the module."""
    if isinstance(key, ast.Name) and key.id == "__name__":
        module.dynamic = True
    elif isinstance(key, ast.Constant) and isinstance(value, ast.Name):
        module.registered[str(key.value)] = module.aliases.get(value.id, [])
    else:
        module.registers = True


def _fills(node: ast.stmt, module: Module) -> bool:
    """Tell whether a statement may bind names of the module that its text does not bind."""
    if isinstance(node, ast.Assign) and _is_names(node.value, module):
        module.own_names |= {n.id for target in node.targets for n in _bound(target)}
        return False
    for item in ast.walk(node):
        if isinstance(item, ast.Subscript) and isinstance(item.ctx, ast.Store):
            if _is_names(item.value, module):
                return True
        elif isinstance(item, ast.Call) and _call_fills(item, module):
            return True
    return False


def _call_fills(call: ast.Call, module: Module) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(_is_names(value, module) for value in given):
        return True
    if isinstance(call.func, ast.Name):
        if call.func.id == "setattr" and given:
            return _is_itself(given[0])
        return call.func.id == "exec" and len(given) == 1
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "_convert_":
        return True  # how the enums of the standard library give out their members
    return call.func.attr in ("update", "setdefault") and _is_names(call.func.value, module)


def _is_itself(node: ast.expr) -> bool:
    return ast.unparse(node) == "sys.modules[__name__]"


def _is_names(node: ast.expr, module: Module) -> bool:
    """Tell whether an expression is the mapping of the module's own names."""
    if isinstance(node, ast.Name):
        return node.id in module.own_names
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        return False
    return node.func.id in ("globals", "vars", "locals")

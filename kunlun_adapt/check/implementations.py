"""Follow an implementation path (`package.module:name`) to its definition, without importing it.

Our own package and the workspace are always at hand. A foreign package is looked into where it is
installed; where it is not, nothing more can be said of it here than that.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kunlun_adapt.check.wording import nearest
from kunlun_adapt.upstream import Facts, Missing, Signature, Symbol
from kunlun_adapt.upstream.syntax import is_async_generator

OWN = "kunlun_adapt"
UPSTREAM = "sglang"
MAX_STEPS = 20
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Implementation:
    """What a path leads to; `signature` and `returns` are known for plain functions alone."""

    path: str
    kind: str
    signature: Signature | None = None
    location: str = ""
    returns: ast.expr | None = None
    is_async: bool = False
    iterates: bool = False
    """An async generator: what is called with `async for`, and cannot be awaited."""
    module: str = ""
    """The module that defines it, of a function whose text is at hand."""
    file: str = ""
    """That module's file, from the folder of its top-level package."""
    node: ast.stmt | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why a path leads nowhere, and a path that does."""

    message: str
    suggestion: str | None = None


@dataclass(slots=True)
class _Module:
    """The statements of one file that bind names, without those inside functions and classes."""

    file: Path
    package: str
    names: dict[str, ast.stmt] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    dynamic: bool = False


class Implementations:
    """Answers where implementation paths lead; files are parsed once."""

    def __init__(self, workspace: Path, facts: Facts) -> None:
        self._workspace = workspace
        self._facts = facts
        self._roots: dict[str, list[Path] | None] = {}
        self._installed: set[str] = set()
        self._modules: dict[str, _Module | NotFound | None] = {}

    def find(self, path: str) -> Implementation | NotFound | None:
        """Return the definition behind `package.module:name`, or None where nobody can tell."""
        module, _, name = path.partition(":")
        if module.partition(".")[0] == UPSTREAM:
            return self._upstream(path)
        return self._name(module, name.split("."), path, MAX_STEPS)

    def find_module(self, name: str) -> Implementation | NotFound | None:
        """Return the module of this dotted name, or None where nobody can tell."""
        module = self._module(name)
        if isinstance(module, _Module):
            return Implementation(name, "module", location=str(module.file))
        return module

    def absent_package(self, path: str) -> str | None:
        """Return the top-level package of a path if it is not installed here, else None."""
        first = path.partition(":")[0].partition(".")[0]
        return None if first == UPSTREAM or self._root(first) or first in self._installed else first

    def _upstream(self, path: str) -> Implementation | NotFound | None:
        symbol = self._facts.resolve(path.replace(":", "."))
        if isinstance(symbol, Missing):
            return None  # KA101 to KA103 say it
        return Implementation(path, _role(symbol), symbol.signature, str(symbol.location))

    def _name(
        self, module: str, names: list[str], path: str, steps: int
    ) -> Implementation | NotFound | None:
        found = self._module(module)
        if not isinstance(found, _Module):
            return found
        node = found.names.get(names[0])
        if node is None:
            return self._absent(module, found, names, path, steps)
        if isinstance(node, ast.ImportFrom | ast.Import):
            return self._imported(found, node, names, path, steps)
        for name in names[1:]:
            inner = _inside(node, name)
            if inner is None:
                if isinstance(node, ast.ClassDef) and not node.bases:
                    return NotFound(f"{module}:{node.name} has no {name}")
                return None
            node = inner
        where = f"{found.file.name}:{node.lineno}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            plain = not node.decorator_list
            signature = Signature.from_ast(node.args) if plain else None
            returns = node.returns if plain else None
            is_async = isinstance(node, ast.AsyncFunctionDef)
            iterates = is_async_generator(node)
            return Implementation(
                path,
                "function",
                signature,
                where,
                returns,
                is_async,
                iterates,
                module=module,
                file=_shown(module, found.file),
                node=node,
            )
        kind = "class" if isinstance(node, ast.ClassDef) else "value"
        return Implementation(path, kind, None, where)

    def _absent(
        self, module: str, found: _Module, names: list[str], path: str, steps: int
    ) -> Implementation | NotFound | None:
        for source in found.stars if steps else []:
            result = self._name(source, names, path, steps - 1)
            if not isinstance(result, NotFound):
                return result
        submodule = self._module(f"{module}.{names[0]}")
        if isinstance(submodule, _Module) and len(names) == 1:
            return Implementation(path, "module", location=str(submodule.file))
        if found.dynamic:
            return None
        near = nearest(names[0], found.names, cutoff=60)
        return NotFound(
            f"{module} ({found.file.name}) defines no {names[0]}",
            f"did you mean {module}:{near}?" if near else None,
        )

    def _imported(
        self,
        found: _Module,
        node: ast.ImportFrom | ast.Import,
        names: list[str],
        path: str,
        steps: int,
    ) -> Implementation | NotFound | None:
        if not steps or isinstance(node, ast.Import):
            return None
        source = _absolute(found, node)
        original = next((a.name for a in node.names if (a.asname or a.name) == names[0]), names[0])
        if source.partition(".")[0] != found.package.partition(".")[0]:
            return None  # where another package gets its names from is not ours to judge
        result = self._name(source, [original, *names[1:]], path, steps - 1)
        if isinstance(result, NotFound):
            message = f"{found.file.name}:{node.lineno} imports {original} from {source}: "
            return NotFound(message + result.message, result.suggestion)
        return result

    def _module(self, name: str) -> _Module | NotFound | None:
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> _Module | NotFound | None:
        first, *rest = name.split(".")
        roots = self._root(first)
        if roots is None:
            return None
        for root in roots:
            file = _file(root, rest)
            if file is not None:
                return _parse(file, name)
            # A compiled module or an extension has no text to read.
            if rest and any(root.joinpath(*rest[:-1]).glob(f"{rest[-1]}.*.so")):
                return None
        siblings = [m for m in self._own_modules if m != name] if first == OWN else []
        near = nearest(name, siblings, cutoff=85)
        return NotFound(f"there is no module {name}", f"did you mean {near}?" if near else None)

    def _root(self, first: str) -> list[Path] | None:
        """The folders (or the single file) of a top-level package, None where it is not here."""
        if first not in self._roots:
            self._roots[first] = self._find_root(first)
        return self._roots[first]

    def _find_root(self, first: str) -> list[Path] | None:
        local = [self._workspace / first, self._workspace / f"{first}.py"]
        if first != OWN and any(p.exists() for p in local):
            return [p for p in local if p.exists()]
        try:
            # For a top-level name this looks at the search path and imports nothing.
            spec = importlib.util.find_spec(first)
        except (ImportError, ValueError):
            return None
        if spec is None:
            return None
        self._installed.add(first)
        if spec.submodule_search_locations is not None:
            return [Path(p) for p in spec.submodule_search_locations]
        return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else None

    @cached_property
    def _own_modules(self) -> list[str]:
        return [name for root in self._root(OWN) or [] for name in _below(root, OWN)]


def _shown(module: str, file: Path) -> str:
    parts = module.split(".")
    if file.name != "__init__.py":
        parts.pop()
    return "/".join([*parts, file.name])


def _role(symbol: Symbol) -> str:
    if symbol.kind in ("class", "module"):
        return symbol.kind
    return "function" if symbol.signature is not None else "value"


def _below(root: Path, package: str) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        yield ".".join([package, *parts])


def _file(root: Path, rest: list[str]) -> Path | None:
    if root.is_file():
        return root if not rest else None
    base = root.joinpath(*rest)
    for path in (base / "__init__.py", base.with_name(f"{base.name}.py") if rest else base):
        if path.is_file():
            return path
    return None


def _parse(file: Path, name: str) -> _Module | NotFound:
    try:
        if file.stat().st_size > MAX_BYTES:
            return NotFound(f"{file.name} is too large to read")
        tree = ast.parse(file.read_bytes(), filename=file.name)
    except SyntaxError as error:
        return NotFound(f"{file.name}:{error.lineno} is not Python: {error.msg}")
    except (OSError, ValueError) as error:
        return NotFound(f"{file.name} cannot be read: {error}")
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    module = _Module(file, package)
    _collect(tree.body, module)
    return module


def _collect(body: list[ast.stmt], module: _Module) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.names[node.name] = node
            module.dynamic |= node.name == "__getattr__"
        elif isinstance(node, ast.ImportFrom | ast.Import):
            for alias in node.names:
                if alias.name == "*" and isinstance(node, ast.ImportFrom):
                    module.stars.append(_absolute(module, node))
                else:
                    module.names[alias.asname or alias.name.partition(".")[0]] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for item in ast.walk(target):
                    if isinstance(item, ast.Name):
                        module.names[item.id] = node
        else:
            for part in ("body", "orelse", "finalbody"):
                _collect(getattr(node, part, []), module)
            for handler in getattr(node, "handlers", []):
                _collect(handler.body, module)


def _absolute(module: _Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    kept = module.package.split(".")
    kept = kept[: len(kept) - (node.level - 1)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _inside(node: ast.stmt, name: str) -> ast.stmt | None:
    """The statement that binds a name in a class body."""
    if not isinstance(node, ast.ClassDef):
        return None
    inner = _Module(Path(), "")
    _collect(node.body, inner)
    return inner.names.get(name)

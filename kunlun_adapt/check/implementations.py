"""Follow an implementation path (`package.module:name`) to its definition, without importing it.

Our own package and the workspace are always at hand. Any other module, the standard library's too,
is looked into where its source is installed; where it is not, no more is said of it than that.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from types import BuiltinFunctionType

from kunlun_adapt.check.decorators import hands_back
from kunlun_adapt.check.keys import closest_slip
from kunlun_adapt.check.module_names import (
    Module,
    NotReadable,
    absolute,
    has_bases,
    inside,
    parse,
)
from kunlun_adapt.check.wording import nearest
from kunlun_adapt.upstream import Facts, Missing, Resolver, Signature, Symbol
from kunlun_adapt.upstream.syntax import is_async_generator

OWN = "kunlun_adapt"
UPSTREAM = "sglang"
MAX_STEPS = 20
BUILT_IN = "built in"
"""The kind of the interpreter's own functions, and the place of all that it brings along."""


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
    source: tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef] | None = field(
        default=None, compare=False, repr=False
    )
    """The text of a function and the module around it; decorated, it may be called otherwise."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why a path leads nowhere, and a path that does."""

    message: str
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Why nobody can look into a module here, and what to do; `there` says that it exists."""

    message: str
    suggestion: str
    there: bool = False


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """What a module that is part of the interpreter has in memory already: each name's kind."""

    names: Mapping[str, str]


Found = Implementation | NotFound | Unread | None
_Source = Module | NotFound | Unread | _BuiltIn


class Implementations:
    """Answers where implementation paths lead; files are parsed once."""

    def __init__(self, workspace: Path, facts: Facts, sources: Sequence[str] = ()) -> None:
        self._workspace = workspace
        self._sources = [workspace, *(workspace / folder for folder in sources)]
        self._facts = facts
        self._roots: dict[str, list[Path] | Unread | _BuiltIn | NotFound] = {}
        self._modules: dict[str, _Source] = {}

    def find(self, path: str) -> Found:
        """Return the definition behind `package.module:name`, or None where nobody can tell."""
        module, _, name = path.partition(":")
        if module.partition(".")[0] == UPSTREAM:
            return self._upstream(path)
        return self._name(module, name.split("."), path, MAX_STEPS)

    def find_module(self, name: str) -> Found:
        """Return the module of this dotted name, or None where nobody can tell."""
        if name.partition(".")[0] == UPSTREAM:
            return self._upstream(name)
        module = self._module(name)
        if isinstance(module, NotFound) or (isinstance(module, Unread) and not module.there):
            return module
        where = str(module.file) if isinstance(module, Module) else ""
        return Implementation(name, "module", location=where)

    def _upstream(self, path: str) -> Found:
        symbol = self._facts.resolve(path.replace(":", "."))
        if isinstance(symbol, Missing):
            # What the lock does not hold may be there all the same.
            if not isinstance(self._facts, Resolver):
                return None
            why = symbol.detail or f"{symbol.path} is not there"
            return NotFound(f"sglang {self._facts.version}: {why}")
        return Implementation(path, _role(symbol), symbol.signature, str(symbol.location))

    def _name(self, module: str, names: list[str], path: str, steps: int) -> Found:
        found = self._module(module)
        if isinstance(found, _BuiltIn):
            return _of_interpreter(module, found, names, path)
        if not isinstance(found, Module):
            return found
        node = found.names.get(names[0])
        if node is None:
            return self._absent(module, found, names, path, steps)
        if isinstance(node, ast.ImportFrom | ast.Import):
            return self._imported(found, node, names, path, steps)
        for name in names[1:]:
            inner = inside(node, name)
            if inner is None:
                if isinstance(node, ast.ClassDef) and not has_bases(node):
                    return NotFound(f"{module}:{node.name} has no {name}")
                return None
            node = inner
        where = f"{found.file.name}:{node.lineno}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            plain = all(self._hands_back(module, d) for d in node.decorator_list)
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
                source=(found, node),
            )
        kind = "class" if isinstance(node, ast.ClassDef) else "value"
        return Implementation(path, kind, None, where)

    def _hands_back(self, module: str, decorator: ast.expr) -> bool:
        """Tell whether a decorator leaves a function of the module as it is."""

        def follow(expression: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
            parts = ast.unparse(expression).split(".")
            if not all(part.isidentifier() for part in parts):
                return None
            return self._decorator(module, parts, MAX_STEPS)

        return hands_back(decorator, follow)

    def _decorator(
        self, module: str, parts: list[str], steps: int
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the function that a name means in a module, of ours or of upstream's."""
        found = self._module(module) if module.partition(".")[0] != UPSTREAM else None
        node = found.names.get(parts[0]) if isinstance(found, Module) else None
        if isinstance(found, Module) and isinstance(node, ast.ImportFrom) and steps:
            original = next((a.name for a in node.names if (a.asname or a.name) == parts[0]), "")
            source = absolute(found, node)
            if isinstance(self._module(f"{source}.{original}"), Module) and parts[1:]:
                return self._decorator(f"{source}.{original}", parts[1:], steps - 1)
            return self._decorator(source, [original, *parts[1:]], steps - 1)
        if module.partition(".")[0] == UPSTREAM and isinstance(self._facts, Resolver):
            symbol = self._facts.resolve(".".join([module, *parts]))
            statement = self._facts.statement(symbol) if isinstance(symbol, Symbol) else None
            return statement if isinstance(statement, ast.FunctionDef) else None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not parts[1:]:
            return node
        return None

    def _absent(self, module: str, found: Module, names: list[str], path: str, steps: int) -> Found:
        for source in found.stars if steps else []:
            result = self._name(source, names, path, steps - 1)
            if isinstance(result, Unread):
                # What another system's part of the standard library gives is not given here.
                if not result.there and source.partition(".")[0] in sys.stdlib_module_names:
                    continue
                return None
            if not isinstance(result, NotFound):
                return result
        submodule = self._module(f"{module}.{names[0]}")
        if isinstance(submodule, Module) and len(names) == 1:
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
        found: Module,
        node: ast.ImportFrom | ast.Import,
        names: list[str],
        path: str,
        steps: int,
    ) -> Found:
        if not steps:
            return None
        if isinstance(node, ast.Import):
            return self._member(found.aliases.get(names[0], []), names[1:], path, steps)
        source = absolute(found, node)
        original = next((a.name for a in node.names if (a.asname or a.name) == names[0]), names[0])
        if source.partition(".")[0] != found.package.partition(".")[0]:
            return None  # where another package gets its names from is not ours to judge
        result = self._name(source, [original, *names[1:]], path, steps - 1)
        if isinstance(result, NotFound):
            message = f"{found.file.name}:{node.lineno} imports {original} from {source}: "
            return NotFound(message + result.message, result.suggestion)
        return result

    def _member(self, modules: list[str], names: list[str], path: str, steps: int) -> Found:
        """What a path leads to that goes on behind an imported module."""
        results = [self._name(m, names, path, steps - 1) for m in modules] if names else []
        # Of several, which branches import, one that has it is enough.
        missing = [r for r in results if isinstance(r, NotFound)]
        return missing[0] if missing and len(missing) == len(results) else None

    def _module(self, name: str) -> _Source:
        if name not in self._modules:
            self._modules[name] = _unread(name)  # for one that is registered as itself
            try:
                self._modules[name] = self._read(name)
            except OSError:  # a name that is too long for a path
                self._modules[name] = NotFound(f"there is no module {name[:80]}…")
        return self._modules[name]

    def _read(self, name: str) -> _Source:
        first, *rest = name.split(".")
        roots = self._root(first)
        if isinstance(roots, _BuiltIn) and rest:
            return NotFound(f"there is no module {name}: {first} is built in, and no package")
        if not isinstance(roots, list):
            return roots
        for root in roots:
            file = _file(root, rest)
            if file is not None:
                try:
                    return parse(file, name)
                except NotReadable as error:
                    return NotFound(str(error))
            if rest and _compiled(root.joinpath(*rest[:-1]), rest[-1]):
                return _unread(name)
        above = any(_file(root, rest[:-1]) for root in roots)
        return (self._registered(name) if rest and above else None) or self._no_module(name)

    def _registered(self, name: str) -> _Source | None:
        """The module that the one above it puts into `sys.modules` under this name."""
        parent = self._module(name.rpartition(".")[0])
        if not isinstance(parent, Module):
            return None
        if name in parent.registered:
            sources = [self._module(module) for module in parent.registered[name]]
            return next((s for s in sources if not isinstance(s, NotFound)), _unread(name))
        return _unread(name) if parent.registers else None

    def _no_module(self, name: str) -> NotFound:
        own = name.partition(".")[0] == OWN
        siblings = [m for m in self._own_modules if m != name] if own else []
        near = nearest(name, siblings, cutoff=85)
        return NotFound(f"there is no module {name}", f"did you mean {near}?" if near else None)

    def _root(self, first: str) -> list[Path] | Unread | _BuiltIn | NotFound:
        """The folders (or the single file) of a top-level package, or why there are none."""
        if first not in self._roots:
            self._roots[first] = self._find_root(first)
        return self._roots[first]

    def _find_root(self, first: str) -> list[Path] | Unread | _BuiltIn | NotFound:
        local = [p for s in self._sources for p in (s / first, s / f"{first}.py")]
        if first != OWN and any(p.exists() for p in local):
            return [p for p in local if p.exists()]
        try:
            # For a top-level name this looks at the search path and imports nothing.
            spec = importlib.util.find_spec(first)
            if spec is not None and spec.origin == "frozen":
                # The interpreter brings it along; its source stands in the standard library.
                spec = PathFinder.find_spec(first) or spec
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            return self._not_here(first)
        if spec.submodule_search_locations is not None:
            return [Path(p) for p in spec.submodule_search_locations]
        if spec.origin and spec.origin.endswith(".py"):
            return [Path(spec.origin)]
        if first in sys.builtin_module_names and first in sys.modules:
            return _BuiltIn({k: _kind(v) for k, v in vars(sys.modules[first]).items()})
        return _unread(first)

    def _not_here(self, first: str) -> Unread | NotFound:
        """A package that is not installed may be one of the card's; a slip of ours is a slip."""
        ours = {OWN, *(p.stem for s in self._sources for p in s.glob("*") if _importable(p))}
        meant = closest_slip(first, ours)
        message = f"the package {first} is not installed"
        if meant is not None:
            return NotFound(message, f"did you mean {meant}?")
        return Unread(message, f"install {first}, or check where it is installed")

    @cached_property
    def _own_modules(self) -> list[str]:
        roots = self._root(OWN)
        return [n for root in roots for n in _below(root, OWN)] if isinstance(roots, list) else []


def _of_interpreter(
    module: str, found: _BuiltIn, names: list[str], path: str
) -> Implementation | NotFound | None:
    name = names[0]
    if name in found.names:
        return None if names[1:] else Implementation(path, found.names[name], location=BUILT_IN)
    near = nearest(name, found.names)
    return NotFound(
        f"{module}, which is built in, has no {name}",
        f"did you mean {module}:{near}?" if near else None,
    )


def _kind(value: object) -> str:
    if isinstance(value, BuiltinFunctionType):
        return BUILT_IN
    return "class" if isinstance(value, type) else "value"


def _unread(name: str) -> Unread:
    return Unread(
        f"{name} is not there as Python source",
        "name a function of ours that calls it",
        there=True,
    )


def _compiled(folder: Path, name: str) -> bool:
    """Tell whether a module is an extension, for whatever interpreter; it has no text to read."""
    return any(
        any(folder.glob(f"{name}{form}")) for form in (".so", ".*.so", ".pyd", ".*.pyd", ".pyc")
    )


def _importable(path: Path) -> bool:
    return path.stem.isidentifier() and (path.is_dir() or path.suffix == ".py")


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

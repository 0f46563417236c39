"""Find a plugin's Python files and parse them; nothing is imported and nothing is written."""

from __future__ import annotations

import ast
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.evolve.adopt.left import Left
from kunlun_adapt.evolve.adopt.project import Project, read_project

MOST_BYTES = 4 << 20
MOST_FILES = 5000
DEEPEST = 12

_NOT_THE_PLUGIN = frozenset(
    (
        *("tests", "test", "testing", "docs", "doc", "examples", "example", "benchmark"),
        *("benchmarks", "build", "dist", "scripts", "tools", "third_party", "node_modules"),
        *("venv", "env", "__pycache__", "sglang"),
    )
)
"""Folders at the top of a project that hold no part of the plugin, and upstream itself."""
_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")


@dataclass(frozen=True, slots=True)
class SourceModule:
    """One module of the plugin; `file` is relative to what was adopted."""

    name: str
    file: str
    tree: ast.Module = field(repr=False)
    is_package: bool

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Sources:
    """A plugin as it lies on disk.

    `roots` are the folders from which its packages are imported, `left` what could not be read.
    """

    path: Path
    roots: tuple[Path, ...]
    project: Project
    modules: dict[str, SourceModule]
    left: tuple[Left, ...]

    @property
    def top(self) -> tuple[str, ...]:
        """The names of the plugin's top-level packages and modules."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.modules))


def read_sources(path: Path) -> Sources:
    """Read the plugin in a project folder, a package or a single file. Raises AdaptError."""
    if not os.path.lexists(path):
        raise AdaptError(f"{path} does not exist", "name the folder that holds the plugin")
    if path.suffix in (".whl", ".zip", ".gz"):
        raise AdaptError(f"{path} is an archive", "unpack it, and name the folder")
    try:
        path = path.resolve()
        mode = path.stat().st_mode
    except (OSError, RuntimeError):
        raise AdaptError(
            f"{path} is a link that leads nowhere", "name the plugin's folder"
        ) from None
    if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and path.suffix == ".py")):
        raise AdaptError(f"{path} is no folder and no .py file", "name the plugin's folder")
    base, tops = _tops(path)
    reader = _Reader(base)
    project = read_project(_project_folder(base), reader.left)
    wanted = {entry.module.partition(".")[0] for entry in project.entry_points}
    wanted |= set(project.modules)
    if path == base:
        tops = _named(base, tops, wanted)
    for top in tops:
        reader.read(top)
    # Loose modules that no project file names are a part of the plugin where it imports them.
    beside = [*dict.fromkeys([*(top.parent for top in tops), base])]
    while path == base and (more := _imported(reader.modules, tops, beside)):
        tops += more
        for top in more:
            reader.read(top)
    if not reader.modules and not reader.left:
        raise AdaptError(f"there is no Python package in {path}", "name the plugin's folder")
    if not reader.modules:
        first = reader.left[0]
        what = f"no file of {path} could be read; {first.file}:{first.line} {first.what}"
        raise AdaptError(what, "name a folder with Python that this Python can read")
    roots = tuple(dict.fromkeys(top.parent for top in tops))
    return Sources(base, roots, project, reader.modules, tuple(reader.left))


def _tops(path: Path) -> tuple[Path, list[Path]]:
    """Return the project's folder and the top-level packages and modules that are meant."""
    top = path
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    if path.is_file() or (path / "__init__.py").is_file():
        return _project_folder(top.parent) or top.parent, [top]
    packages = list(_packages(path, 0))
    if not packages:
        # Folders without __init__.py are packages too, and loose files are modules.
        files = [p for p in _entries(path) if p.suffix == ".py" and p.name not in _PROJECT_FILES]
        source = path / "src" if (path / "src").is_dir() else path
        folders = [p for p in _entries(source) if _may_hold(p) and _has_python(p, 0)]
        packages = [*folders, *files]
    return path, packages


def _packages(folder: Path, depth: int) -> Iterator[Path]:
    for entry in _entries(folder):
        if not _may_hold(entry):
            continue
        if (entry / "__init__.py").is_file():
            yield entry
        elif depth < 2:
            yield from _packages(entry, depth + 1)


def _named(base: Path, tops: list[Path], wanted: set[str]) -> list[Path]:
    """Add what entry points name and no package shows: a namespace package, or one file."""
    names = {top.stem for top in tops}
    roots = dict.fromkeys([base, base / "src", *(top.parent for top in tops)])
    for name in sorted(wanted - names):
        for root in roots:
            if name.isidentifier() and (root / name).is_dir():
                tops.append(root / name)
                break
            if name.isidentifier() and (root / f"{name}.py").is_file():
                tops.append(root / f"{name}.py")
                break
    return tops


def _imported(modules: dict[str, SourceModule], tops: list[Path], roots: list[Path]) -> list[Path]:
    """Return the modules and packages beside those read that these import."""
    wanted: set[str] = set()
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                wanted |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                wanted.add((node.module or "").partition(".")[0])
    found = []
    for name in sorted(wanted - {top.stem for top in tops} - {"sglang", *sys.stdlib_module_names}):
        places = (p for root in roots for p in (root / name, root / f"{name}.py"))
        found += [p for p in places if (p / "__init__.py").is_file() or p.is_file()][:1]
    return found


def _may_hold(entry: Path) -> bool:
    plain = entry.name.isidentifier() and entry.name not in _NOT_THE_PLUGIN
    return plain and entry.is_dir() and not entry.is_symlink()


def _has_python(folder: Path, depth: int) -> bool:
    entries = list(_entries(folder))
    return any(e.suffix == ".py" for e in entries) or (
        depth < 2 and any(_has_python(e, depth + 1) for e in entries if _may_hold(e))
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _project_folder(start: Path) -> Path | None:
    """Return the folder, this one or one of two above it, that holds the project's description."""
    for folder in (start, *start.parents[:2]):
        if any((folder / name).is_file() for name in _PROJECT_FILES):
            return folder
    return None


class _Reader:
    """Parses every module below the packages, and keeps a word on each that it cannot."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.modules: dict[str, SourceModule] = {}
        self.left: list[Left] = []
        self._files = 0

    def read(self, top: Path) -> None:
        if top.is_file():
            self._module(top, top.stem, False)
            return
        for folder, names, files in os.walk(top):
            here = Path(folder)
            parts = here.relative_to(top.parent).parts
            for name in sorted(names):
                if (here / name).is_symlink():
                    self._leave(here / name, "a link to a folder, which is not followed")
            names[:] = sorted(n for n in names if n.isidentifier() and n != "__pycache__")
            if len(parts) > DEEPEST:
                self._leave(here, f"more than {DEEPEST} folders deep")
                names.clear()
            for name in sorted(files):
                stem = name.removesuffix(".py")
                if stem == name or not stem.isidentifier():
                    continue
                package = stem == "__init__"
                self._module(here / name, ".".join(parts if package else (*parts, stem)), package)

    def _module(self, path: Path, name: str, is_package: bool) -> None:
        self._files += 1
        if self._files > MOST_FILES:
            if self._files == MOST_FILES + 1:
                self._leave(path, f"only the first {MOST_FILES} files are read")
            return
        try:
            source = self._source(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source, filename=path.name)
        except _Unreadable as error:
            self._leave(path, str(error))
        except OSError as error:
            self._leave(path, f"cannot be read: {error.strerror or error}")
        except SyntaxError as error:
            # The message may quote the line; the line's number is enough.
            self._leave(path, f"is no valid Python: {error.msg}", error.lineno or 1)
        except (ValueError, RecursionError, MemoryError) as error:
            self._leave(path, f"is no valid Python: {error or type(error).__name__}")
        else:
            self.modules[name] = SourceModule(name, self.shown(path), tree, is_package)

    def _source(self, path: Path) -> bytes:
        try:
            outside = path.is_symlink() and not path.resolve().is_relative_to(self._base)
        except RuntimeError:  # a link to itself, before Python 3.13
            raise _Unreadable("a link that leads nowhere") from None
        if outside:
            raise _Unreadable("a link out of the plugin, which is not followed")
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise _Unreadable("no regular file")
        if found.st_size > MOST_BYTES:
            raise _Unreadable(f"larger than {MOST_BYTES >> 20} MiB")
        return path.read_bytes()

    def shown(self, path: Path) -> str:
        return path.relative_to(self._base).as_posix() if path.is_relative_to(self._base) else ""

    def _leave(self, path: Path, why: str, line: int = 1) -> None:
        self.left.append(Left("file", self.shown(path) or path.name, line, why))


class _Unreadable(Exception):
    """Why a file is not read."""

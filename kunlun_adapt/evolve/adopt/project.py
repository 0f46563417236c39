"""What a plugin's project files say: its name, its entry points, and the SGLang it asks for."""

from __future__ import annotations

import ast
import configparser
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from kunlun_adapt.evolve.adopt.left import Left
from kunlun_adapt.upstream.packaged import project_data

PLATFORMS = "sglang.srt.platforms"
PLUGINS = "sglang.srt.plugins"
GROUPS = (PLATFORMS, PLUGINS)
MOST_BYTES = 1 << 20

_ENTRY = re.compile(
    r"\s*(?P<name>[^=\s][^=]*?)\s*=\s*(?P<module>[A-Za-z_][\w.]*)\s*(:\s*(?P<attr>[\w.]+))?"
    r"\s*(\[.*\])?\s*$"
)


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One way in which SGLang finds the plugin."""

    group: str
    name: str
    module: str
    attribute: str
    file: str


@dataclass(frozen=True, slots=True)
class Project:
    """What the project files state; `sglang` is the requirement's range, "" without one.

    `modules` are top-level modules that it names beside its packages.
    """

    name: str = ""
    sglang: str = ""
    entry_points: tuple[EntryPoint, ...] = ()
    modules: tuple[str, ...] = ()


def read_project(folder: Path | None, left: list[Left]) -> Project:
    """Read pyproject.toml, setup.cfg and setup.py, in this order; faults go to `left`."""
    if folder is None:
        return Project()
    found = Project()
    for name, read in (
        ("pyproject.toml", _pyproject),
        ("setup.cfg", _setup_cfg),
        ("setup.py", _setup_py),
    ):
        path = folder / name
        if not path.is_file():
            continue
        try:
            if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > MOST_BYTES:
                raise ValueError("too large")
            one = read(path.read_text(encoding="utf-8-sig"), left)
        except (OSError, ValueError, configparser.Error, SyntaxError, RecursionError) as error:
            left.append(Left("file", name, 1, f"cannot be read: {' '.join(str(error).split())}"))
            continue
        known = {(e.group, e.name) for e in found.entry_points}
        more = tuple(e for e in one.entry_points if (e.group, e.name) not in known)
        found = Project(
            found.name or one.name,
            found.sglang or one.sglang,
            (*found.entry_points, *more),
            (*found.modules, *one.modules),
        )
    return found


def _pyproject(text: str, left: list[Left]) -> Project:
    data = project_data(text)
    project = _table(data, "project")
    groups = _table(project, "entry-points")
    poetry = _table(_table(data, "tool"), "poetry")
    entries: list[EntryPoint] = []
    for group in GROUPS:
        for table in (_table(groups, group), _table(_table(poetry, "plugins"), group)):
            for name, value in table.items():
                entries += _entry(group, f"{name} = {value}", "pyproject.toml")
    required = [str(r) for r in _list(project.get("dependencies"))]
    optional = _table(project, "optional-dependencies")
    required += [str(r) for rs in optional.values() for r in _list(rs)]
    listed = _table(_table(data, "tool"), "setuptools").get("py-modules")
    modules = tuple(str(name) for name in _list(listed))
    return Project(str(project.get("name") or ""), _wanted(required), tuple(entries), modules)


def _setup_cfg(text: str, left: list[Left]) -> Project:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    entries: list[EntryPoint] = []
    for group in GROUPS:
        listed = parser.get("options.entry_points", group, fallback="")
        for line in listed.splitlines():
            entries += _entry(group, line, "setup.cfg")
    required = parser.get("options", "install_requires", fallback="").splitlines()
    name = parser.get("metadata", "name", fallback="").strip()
    modules = tuple(parser.get("options", "py_modules", fallback="").split())
    return Project(name, _wanted(required), tuple(entries), modules)


def _setup_py(text: str, left: list[Left]) -> Project:
    tree = ast.parse(text)
    names = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else None
        if (called or getattr(call.func, "id", None)) == "setup":
            given = {k.arg: _literal(k.value, names) for k in call.keywords if k.arg}
            at = {k.arg: k.value.lineno for k in call.keywords}
            break
    else:
        return Project()
    entries: list[EntryPoint] = []
    stated = given.get("entry_points")
    if stated is None and (None in at or "entry_points" in at):
        where = at.get("entry_points") or at[None]
        left.append(Left("file", "setup.py", where, "its entry points are made at run time"))
    groups: Mapping[str, Any] = stated if isinstance(stated, dict) else {}
    if isinstance(stated, str):  # in the manner of setup.cfg
        parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read_string(stated)
        groups = {
            section: [f"{name} = {value}" for name, value in parser.items(section)]
            for section in parser.sections()
        }
    for group in GROUPS:
        listed = groups.get(group)
        lines = listed.splitlines() if isinstance(listed, str) else _list(listed)
        for line in lines:
            entries += _entry(group, str(line), "setup.py")
    name = given.get("name")
    required = [str(r) for r in _list(given.get("install_requires"))]
    modules = tuple(str(m) for m in _list(given.get("py_modules")))
    named = name if isinstance(name, str) else ""
    return Project(named, _wanted(required), tuple(entries), modules)


def _literal(node: ast.expr, names: Mapping[str, ast.expr]) -> Any:
    """Return a literal's value; names that are assigned one once are looked up."""
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _entry(group: str, text: str, file: str) -> Iterator[EntryPoint]:
    found = _ENTRY.match(text)
    if found is not None:
        yield EntryPoint(group, found["name"], found["module"], found["attr"] or "", file)


def _wanted(requirements: list[str]) -> str:
    for text in requirements:
        try:
            requirement = Requirement(text.split("#")[0].strip())
        except InvalidRequirement:
            continue
        if requirement.name.lower() == "sglang" and str(requirement.specifier):
            return str(requirement.specifier)
    return ""


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []

"""Keeps the floors of the house apart: who may import whom, and where torch is allowed.

The table below is the layout; a new package or a new dependency between packages is added there, in
the same change, or not made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "kunlun_adapt"
# Stand-ins carry the names and the shape of the foreign packages that they stand in for.
STANDINS = PACKAGE / "simulator" / "standins"
MOST_LINES = 500
DRAWERS = {"utils", "util", "helpers", "misc"}

GROUND = {"diagnostics", "locate"}
PLANNING = GROUND | {"documents", "upstream", "plan"}
# package → the other packages of ours that it may import. Lower floors come first.
MAY_IMPORT: dict[str, set[str]] = {
    "diagnostics": set(),
    "locate": {"diagnostics"},
    "documents": GROUND,
    "upstream": GROUND,
    "plan": GROUND | {"documents", "upstream"},
    "source": PLANNING,
    "runtime": PLANNING | {"source", "simulator"},
    "check": PLANNING | {"source"},
    "evolve": PLANNING | {"source", "check"},
    "process": PLANNING | {"source", "check", "evolve"},
    "insight": PLANNING | {"source", "check"},
    "doctor": PLANNING | {"source", "check", "simulator"},
    "cli": PLANNING
    | {"source", "runtime", "check", "evolve", "process", "insight", "doctor", "simulator"},
    # What serves. The golden depends on nothing: it is what the others are measured against.
    "golden": set(),
    "kernels": {"golden", "runtime"},
    "hooks": {"golden", "kernels", "runtime", "simulator"},
    "shims": {"runtime"},
    "simulator": {"golden", "diagnostics"},
    # The doors and the package itself.
    "plugin": {"runtime"},
    "__init__": set(),
    "__main__": {"cli"},
}
TORCH_PACKAGES = {"golden", "kernels", "hooks", "shims", "simulator"}
DEVICE_MODULES = {"torch", "sglang", "triton", "kunlun_ops", "xspeedgate_ops", "torch_xmlir"}


@dataclass(frozen=True)
class Imported:
    """One name that a module imports; `deferred` inside functions and for the type checker."""

    name: str
    line: int
    deferred: bool


def imports_of(tree: ast.AST, package: str = "", deferred: bool = False) -> Iterator[Imported]:
    """Every import below `tree`, a module of `package`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Imported(alias.name, node.lineno, deferred)
        elif isinstance(node, ast.ImportFrom):
            # `from kunlun_adapt import plan` names the package in the second half.
            dots = "." * node.level
            base = resolve_name(f"{dots}{node.module or ''}", package) if dots else node.module
            for alias in node.names:
                yield Imported(f"{base}.{alias.name}", node.lineno, deferred)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imports_of(node, package, True)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from imports_of(ast.Module([child], []), package, True)
            for child in node.orelse:
                yield from imports_of(ast.Module([child], []), package, deferred)
        else:
            yield from imports_of(node, package, deferred)


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if STANDINS not in path.parents]


def imports_in(path: Path) -> Iterator[Imported]:
    """Every import of one of our files."""
    folder = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    return imports_of(ast.parse(path.read_text(encoding="utf-8")), folder)


def home(path: Path) -> str:
    """The package of ours that a file belongs to, or the name of a module at the top."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def test_the_packages_import_downwards_only() -> None:
    wrong = []
    for path in modules():
        own = home(path)
        assert own in MAY_IMPORT, f"{path}: {own} has no place in the layout of this test"
        for imported in imports_in(path):
            first, _, rest = imported.name.partition(".")
            other = rest.partition(".")[0]
            if first == "kunlun_adapt" and other in MAY_IMPORT.keys() - {own, *MAY_IMPORT[own]}:
                wrong.append(f"{path}:{imported.line}: {own} must not import {other}")
    assert not wrong, "\n".join(wrong)


def test_the_table_has_no_circles() -> None:
    order: list[str] = []

    def place(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"circle: {' → '.join((*above, name))}"
        if name not in order:
            for other in sorted(MAY_IMPORT[name]):
                place(other, (*above, name))
            order.append(name)

    for name in MAY_IMPORT:
        place(name, ())
    assert set(order) == set(MAY_IMPORT)


def test_torch_and_sglang_stay_out_of_the_framework() -> None:
    wrong = []
    for path in modules():
        if home(path) in TORCH_PACKAGES:
            continue
        for imported in imports_in(path):
            if not imported.deferred and imported.name.partition(".")[0] in DEVICE_MODULES:
                wrong.append(f"{path}:{imported.line}: imports {imported.name} at module scope")
    assert not wrong, "\n".join(wrong)


def test_modules_stay_small_and_have_a_name() -> None:
    paths = modules()
    assert paths, f"no modules under {PACKAGE}"
    wrong = []
    for path in paths:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_LINES:
            wrong.append(f"{path}: {lines} lines; split it, {MOST_LINES} are the most")
        if path.stem in DRAWERS or path.parent.name in DRAWERS:
            wrong.append(f"{path}: name it for the one thing that it holds")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch", [("torch", False)]),
        ("from torch import nn", [("torch.nn", False)]),
        ("from kunlun_adapt import plan", [("kunlun_adapt.plan", False)]),
        (
            "try:\n    import torch\nexcept ImportError:\n    import sglang",
            [("torch", False), ("sglang", False)],
        ),
        ("class A:\n    import torch", [("torch", False)]),
        ("def f():\n    import torch", [("torch", True)]),
        ("async def f():\n    if True:\n        import torch", [("torch", True)]),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", [("a", True), ("b", False)]),
        ("if True:\n    import torch", [("torch", False)]),
        ("from . import a", [("ours.inner.a", False)]),
        ("from ..other import a", [("ours.other.a", False)]),
    ],
)
def test_the_walk_sees_every_import(source: str, expected: list[tuple[str, bool]]) -> None:
    found = [
        (imported.name, imported.deferred)
        for imported in imports_of(ast.parse(source), "ours.inner")
    ]
    assert found == expected

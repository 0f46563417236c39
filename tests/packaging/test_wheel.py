"""The built wheel, installed alone, does what the checkout does."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.conftest import ROOT, Installed, run

MEGABYTE = 1_000_000
MOST_MEGABYTES = 70
VALIDATE = ("validate", "--sglang", "0.5.19", "--format", "json")


def test_the_wheel_holds_the_documents_and_no_tests(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = set(wheel.namelist())
    tops = ("platform_map.yaml", "adapt.lock")
    folders = ("operator_recipes", "recipes", "templates")
    shipped = {f"kunlun_adapt/workspace/{name}" for name in tops}
    shipped |= {
        f"kunlun_adapt/workspace/{path.relative_to(ROOT)}"
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }
    assert shipped <= names
    assert "kunlun_adapt/py.typed" in names
    standins = ROOT / "kunlun_adapt" / "simulator" / "standins"
    for path in standins.rglob("*.py"):
        assert str(path.relative_to(ROOT)) in names
    assert not [name for name in names if name.startswith(("tests/", "tools/"))]


def test_the_source_distribution_can_be_tested(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("Makefile", "LICENSE", "platform_map.yaml", "tests/conftest.py", "tools/env.py"):
        assert needed in names
    assert not [name for name in names if name.startswith(".venvs")]


@pytest.mark.upstream
def test_the_installation_is_light(installed: Installed) -> None:
    size = sum(path.lstat().st_blocks * 512 for path in installed.folder.rglob("*"))
    assert size < MOST_MEGABYTES * MEGABYTE, f"{size / MEGABYTE:.1f} MB"
    present = {path.name for path in installed.site_packages.iterdir()}
    assert not present & {"torch", "sglang", "numpy"}


@pytest.mark.upstream
def test_sglang_finds_both_doors(installed: Installed) -> None:
    (information,) = installed.site_packages.glob("kunlun_adapt-*.dist-info")
    points = {
        (point.group, point.name): point.value
        for point in PathDistribution(information).entry_points
    }
    assert points == {
        ("console_scripts", "kunlun-adapt"): "kunlun_adapt.cli:main",
        ("sglang.srt.platforms", "kunlun"): "kunlun_adapt.plugin:activate",
        ("sglang.srt.plugins", "kunlun_hooks"): "kunlun_adapt.plugin:register",
    }


@pytest.mark.upstream
def test_the_doors_stay_shut_without_a_device(installed: Installed, tmp_path: Path) -> None:
    program = (
        "from importlib.metadata import entry_points\n"
        "(door,) = entry_points(group='sglang.srt.platforms', name='kunlun')\n"
        "print(door.load()())"
    )
    done = installed.run("python", "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "None"), done.stderr


@pytest.mark.upstream
def test_it_validates_like_the_checkout(installed: Installed, tmp_path: Path) -> None:
    theirs = installed.run("kunlun-adapt", *VALIDATE, cwd=tmp_path)
    ours = run([str(Path(sys.executable).with_name("kunlun-adapt")), *VALIDATE], ROOT)
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    assert ours.returncode == 0, ours.stdout + ours.stderr
    report = _placeless(json.loads(theirs.stdout))
    assert report == _placeless(json.loads(ours.stdout))
    (release,) = report["releases"]
    assert release["release"] == "0.5.19"
    assert release["bindings"]["bound"] >= 25


@pytest.mark.upstream
def test_it_explains_a_code(installed: Installed, tmp_path: Path) -> None:
    shown = installed.run("kunlun-adapt", "explain", "ka101", cwd=tmp_path).stdout
    assert shown == (ROOT / "docs" / "codes" / "KA101.md").read_text(encoding="utf-8")


@pytest.mark.upstream
def test_it_renders_what_the_checkout_renders(installed: Installed, tmp_path: Path) -> None:
    render = ("render", "--sglang", "0.5.19")
    theirs = installed.run("kunlun-adapt", *render, cwd=tmp_path)
    ours = run([str(Path(sys.executable).with_name("kunlun-adapt")), *render], ROOT)
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    assert "silu_and_mul" in theirs.stdout
    assert theirs.stdout == ours.stdout


def test_the_doors_cost_no_heavy_import(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import kunlun_adapt.plugin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # Each line of the report: microseconds | cumulative | module, indented by depth.
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "kunlun_adapt" in loaded
    assert not loaded & {"torch", "sglang", "pydantic", "jinja2", "numpy", "rich", "typer"}


def _placeless(report: Any) -> Any:
    """The report without the folder that the documents and the release were read from."""
    if isinstance(report, dict):
        return {
            key: Path(value).name if key == "file" and isinstance(value, str) else _placeless(value)
            for key, value in report.items()
        }
    if isinstance(report, list):
        return [_placeless(value) for value in report]
    return report

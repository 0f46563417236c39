"""A plugin that only hooks into upstream: nobody asks it for the platform that it never claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.adopt import Adoption, adopt_plugin, read_sources
from kunlun_adapt.upstream import Resolver, open_release
from tests.evolve.plugin_bench import IMPORTS, PROJECT, PluginBench, shipped, the_map, write

INSTALL = f"""{IMPORTS}
def ours(gpu_id, tp_size, nnodes=1):
    return None

def register():
    common.set_affinity = ours
"""
ENTRY = PROJECT.replace(
    '[project.entry-points."sglang.srt.platforms"]\nours = "ours:activate"\n', ""
)
PLATFORM = (
    "from sglang.srt.platforms.interface import SRTPlatform\n\nclass P(SRTPlatform):\n    pass\n"
)


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    return PluginBench(tmp_path)


def adopted(bench: PluginBench, project: str, init: str = "") -> tuple[Adoption, set[str]]:
    """Return what became of a plugin, and the codes that the check of its workspace gives."""
    files = {"pyproject.toml": project, "ours/__init__.py": init, "ours/install.py": INSTALL}
    found = bench.read(write(bench.root / "plugin", files))
    catalog = load_catalog(write(bench.root / "out", dict(found.files)))
    report = check_release(catalog, bench.resolver())
    return found, {f.code for f in report.findings}


def test_hooks_alone_need_no_platform(bench: PluginBench) -> None:
    found, codes = adopted(bench, ENTRY)
    (left,) = the_map(found)["left_at_default"]
    assert left["member"] == "platform" and "no platform class" in left["why"]
    assert not {c for c in codes if c.startswith(("KA0", "KA2"))}
    assert any("`left_at_default` leaves the platform" in x.what for x in found.left)


@pytest.mark.upstream
@pytest.mark.parametrize("version", ["0.5.19", "0.5.23"])
def test_hooks_alone_have_no_error_in_a_real_release(tmp_path: Path, version: str) -> None:
    install = INSTALL.replace("set_affinity", "is_hip").replace("gpu_id, tp_size, nnodes=1", "")
    files = {"pyproject.toml": ENTRY, "ours/__init__.py": "", "ours/install.py": install}
    plugin = write(tmp_path / "plugin", files)
    resolver = Resolver(open_release(version))
    found = adopt_plugin(read_sources(plugin), resolver, shipped(), tmp_path / "out")
    report = check_release(load_catalog(write(tmp_path / "out", dict(found.files))), resolver)
    assert not {f.code for f in report.findings if f.code.startswith(("KA0", "KA2"))}
    assert report.count(Severity.ERROR) == 0


def test_a_platform_that_the_text_does_not_show_is_missed(bench: PluginBench) -> None:
    found, codes = adopted(bench, PROJECT, "def activate():\n    return None\n")
    assert "left_at_default" not in the_map(found)
    assert {"KA203", "KA204"} <= codes


def test_a_platform_class_is_held_to_what_upstream_asks(bench: PluginBench) -> None:
    found, codes = adopted(bench, ENTRY, PLATFORM)
    assert "left_at_default" not in the_map(found)
    assert {"KA203", "KA204"} <= codes

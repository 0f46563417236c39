"""`rendered/` is what the compiler makes, byte for byte, from the lock as from the release."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import Resolver, open_release, read_lock
from tests.source.conftest import ROOT, Compile

RELEASES = read_lock(ROOT / LOCK_FILE).releases
PROFILES = ("card", "simulator")


def on_disk(release: str, profile: str) -> dict[str, str]:
    folder = ROOT / "rendered" / release / profile
    return {
        p.relative_to(folder).with_suffix("").as_posix(): p.read_text(encoding="utf-8")
        for p in folder.rglob("*.py")
    }


def test_the_lock_holds_the_releases_that_are_promised() -> None:
    assert {"0.5.17", "0.5.19", "0.5.23"} <= set(RELEASES)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("release", RELEASES)
def test_rendered_is_what_the_lock_compiles_to(
    compiled: Compile, release: str, profile: str
) -> None:
    assert dict(compiled(release, profile).modules) == on_disk(release, profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_same_input_gives_the_same_bytes(compiled: Compile, profile: str) -> None:
    assert compiled("0.5.19", profile).modules == compiled("0.5.19", profile).modules


@pytest.mark.upstream
@pytest.mark.parametrize("release", RELEASES)
def test_the_release_itself_compiles_to_the_same(release: str) -> None:
    catalog = load_catalog(ROOT)
    resolver = Resolver(open_release(release))
    for profile in PROFILES:
        source = compile_plan(make_plan(catalog, resolver, profile), template_folder(ROOT))
        assert dict(source.modules) == on_disk(release, profile)


def test_the_platform_follows_the_interface(compiled: Compile) -> None:
    old, new = (compiled(r, "card").modules["platform"] for r in ("0.5.19", "0.5.23"))
    assert "def get_mha_kv_pool_cls(self):" in old and "get_kv_pool_cls(self" not in old
    assert "def get_kv_pool_cls(self, *, kind):" in new and "get_mha_kv_pool_cls" not in new
    assert "def support_cuda_graph(self):" in old and "capabilities = " not in old
    assert "capabilities = PlatformCapabilities(" in new and "support_cuda_graph" not in new


def test_generated_modules_have_no_overlong_line(compiled: Compile) -> None:
    for release in RELEASES:
        for name, text in compiled(release, "card").modules.items():
            assert max(map(len, text.splitlines())) <= 120, name


def test_no_machine_path_reaches_the_text(compiled: Compile) -> None:
    for text in compiled("0.5.19", "simulator").modules.values():
        assert str(Path.home()) not in text and str(ROOT) not in text

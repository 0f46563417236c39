"""What runs is what `render` printed: the same text on disk, in the loader and in tracebacks."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import make_plan
from kunlun_adapt.runtime import cache
from kunlun_adapt.runtime.generated import PACKAGE, GeneratedLoader, publish
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import LockFacts, read_lock
from tests.runtime.stage import ROOT, STARTED, Stage

RELEASES = ("0.5.17", "0.5.19", "0.5.23")


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    publish({}, "nothing")
    sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "GeneratedFinder"]


@pytest.mark.parametrize("profile", ["card", "simulator"])
@pytest.mark.parametrize("release", RELEASES)
def test_the_loader_hands_out_the_reviewed_text(release: str, profile: str, tmp_path: Path) -> None:
    facts = LockFacts(read_lock(ROOT / LOCK_FILE), release)
    plan = make_plan(load_catalog(ROOT), facts, profile)
    made = cache.Cached(compile_plan(plan, template_folder(ROOT)).modules, {"file": "hash"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.CACHE, str(tmp_path))
        cache.save("name", made)
        kept = cache.load("name")
    assert kept is not None
    publish(kept.modules, f"sglang {release} {profile}")
    folder = ROOT / "rendered" / release / profile
    files = sorted(folder.rglob("*.py"))
    assert len(files) == len(kept.modules)
    for file in files:
        name = file.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
        spec = importlib.util.find_spec(f"{PACKAGE}.{name}")
        assert spec is not None and isinstance(spec.loader, GeneratedLoader)
        text = file.read_text(encoding="utf-8")
        assert spec.loader.get_source(spec.name) == text
        assert spec.loader.get_code(spec.name).co_filename == spec.origin


def test_importing_from_disk_and_from_the_runtime_gives_the_same_code(tmp_path: Path) -> None:
    folder = ROOT / "rendered" / "0.5.19" / "simulator"
    text = (folder / "bindings.py").read_text(encoding="utf-8")
    publish({"bindings": text}, "sglang 0.5.19 simulator")
    ours = importlib.import_module(f"{PACKAGE}.bindings")
    spec = importlib.util.spec_from_file_location("from_disk", folder / "bindings.py")
    assert spec is not None and spec.loader is not None
    disk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(disk)
    assert ours.install.__code__.co_code == disk.install.__code__.co_code
    assert ours.install.__code__.co_consts == disk.install.__code__.co_consts
    assert ours.RELEASE == disk.RELEASE == "0.5.19"


def test_a_traceback_shows_the_generated_line() -> None:
    publish({"hooks": "def fail():\n    raise ValueError  # the reviewed line\n"}, "first")
    with pytest.raises(ValueError) as caught:
        importlib.import_module(f"{PACKAGE}.hooks").fail()
    shown = "".join(traceback.format_exception(caught.value))
    assert 'File "<kunlun-adapt first>/hooks.py", line 2, in fail' in shown
    assert "raise ValueError  # the reviewed line" in shown


def test_a_second_text_replaces_the_first_also_in_tracebacks() -> None:
    for number in ("one", "two"):
        publish({"hooks": f"def fail():\n    raise ValueError  # {number}\n"}, "same")
        with pytest.raises(ValueError) as caught:
            importlib.import_module(f"{PACKAGE}.hooks").fail()
        assert f"# {number}" in "".join(traceback.format_exception(caught.value))
    assert sum(type(f).__name__ == "GeneratedFinder" for f in sys.meta_path) == 1


def test_what_is_not_generated_is_not_found() -> None:
    publish({"hooks": ""}, "label")
    assert importlib.util.find_spec(f"{PACKAGE}.operators") is not None
    for name in ("other", "operators.silu"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"{PACKAGE}.{name}")


def test_a_real_failure_shows_the_generated_line(stage: Stage) -> None:
    code = STARTED + (
        "from types import SimpleNamespace\n"
        "layers.silu(SimpleNamespace(ndim=3, shape=(1, 2, 3), dtype='x'))"
    )
    done = stage.run(code)
    assert done.returncode == 1
    assert "<kunlun-adapt sglang 1.2.0 card>/operators/silu.py" in done.stderr
    assert "return golden(x, out)" in done.stderr or "golden" in done.stderr.split("silu.py")[-1]

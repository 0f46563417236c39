"""Damaged wheels end in findings or in one clear sentence, never in a traceback or a hang."""

from __future__ import annotations

import shutil
import signal
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from typer.testing import CliRunner

from kunlun_adapt.check import check_release
from kunlun_adapt.cli import app
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import workspace_files
from kunlun_adapt.upstream import Resolver, open_release
from kunlun_adapt.upstream.stores import Store
from tests.fuzz.wheels import damage, reduced_wheel

ROOT = Path(__file__).resolve().parents[2]
RELEASE = "0.5.19"
LONGEST = 5.0
"""Seconds of processor time beyond those of the sound wheel after which a run counts as hanging."""

_sound = 60.0
"""Seconds of processor time that the sound wheel took where the lock knows nothing of it.

A damaged wheel is another release to the lock, so what is looked for in all its files is looked for
again; the sound one would be spared that.
"""


class Hang(BaseException):
    """Not an Exception, so that nothing takes it for an ordinary failure."""


pytestmark = pytest.mark.upstream


class Recording:
    """A store that remembers which files were read."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.asked: set[str] = set()

    def read(self, path: str) -> bytes | None:
        self.asked.add(path)
        return self.inner.read(path)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def is_dir(self, path: str) -> bool:
        return self.inner.is_dir(path)

    def files(self) -> Iterable[str]:
        return self.inner.files()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A wheel of the real files that checking the shipped workspace reads."""
    whole = open_release(RELEASE)
    store = Recording(whole.store)
    release = replace(whole, store=store)
    with pytest.MonkeyPatch.context() as patch:
        # The index reads every file; that of the small wheel is as small as the wheel.
        patch.setattr(Resolver, "index", None)
        check_release(load_catalog(ROOT), Resolver(release))
    folder = tmp_path_factory.mktemp("wheel")
    data = reduced_wheel(release, store.asked, folder / "whole.whl")
    workspace = folder / "workspace"
    for name, path in workspace_files(ROOT):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, workspace / name)
    (folder / "sound").mkdir()
    global _sound
    start = time.process_time()
    validated(data, folder / "sound", workspace)
    _sound = time.process_time() - start
    return data


def test_the_undamaged_wheel_is_fine(wheel: bytes, tmp_path: Path) -> None:
    code, said = validated(wheel, tmp_path)
    assert " error KA" not in said, said
    assert code == 0 and f"sglang {RELEASE}:" in said, said


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_damaged_wheel(wheel: bytes, tmp_path: Path, seed: int) -> None:
    try_one(wheel, tmp_path, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, *range(5, 200)])
def test_many_damaged_wheels(wheel: bytes, tmp_path: Path, seed: int) -> None:
    try_one(wheel, tmp_path, seed)


def try_one(wheel: bytes, folder: Path, seed: int) -> None:
    what, damaged = damage(wheel, seed)
    code, said = validated(damaged, folder)
    note = f"seed {seed} ({what}): exit code {code}\n{said}"
    assert code in (0, 1, 2), note
    assert "Traceback" not in said and "error: internal" not in said, note
    if code == 2:
        assert "error:" in said, note
    assert said.replace("\n", "").isprintable(), note
    assert sorted(path.name for path in folder.iterdir()) == ["cache", "sglang.whl"], note


def validated(data: bytes, folder: Path, workspace: Path = ROOT) -> tuple[int, str]:
    """Run the command on a wheel; a cache that starts empty shows what it leaves behind."""
    path = folder / "sglang.whl"
    path.write_bytes(data)
    (folder / "cache").mkdir()
    arguments = ["validate", "--workspace", str(workspace), "--sglang", str(path), "--offline"]
    runner = CliRunner(env={"KUNLUN_ADAPT_CACHE": str(folder / "cache")})

    def hangs(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {_sound + LONGEST:.1f} s of processor time")

    before = signal.signal(signal.SIGPROF, hangs)
    signal.setitimer(signal.ITIMER_PROF, _sound + LONGEST)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning of Python's compiler is not for our users
            result = runner.invoke(app, arguments, catch_exceptions=False)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return result.exit_code, result.output


def test_the_damage_is_the_same_each_time(tmp_path: Path) -> None:
    """On a wheel of few files: the kinds of damage are chosen by the seed alone."""
    files = [f"sglang/srt/platforms/{name}.py" for name in ("interface", "device_mixin", "cpu")]
    small = reduced_wheel(open_release(RELEASE), files, tmp_path / "small.whl")
    damaged = [damage(small, seed) for seed in range(40)]
    assert damaged[:10] == [damage(small, seed) for seed in range(10)]
    assert len({what for what, _ in damaged}) > 8

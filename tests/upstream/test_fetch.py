from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from kunlun_adapt.upstream import ReleaseError, default_cache_dir, fetch, open_release
from kunlun_adapt.upstream.fetch import PipResult, nearest_versions

Wheel = Callable[..., Path]


class FakePip:
    """Answers like pip; `serves` says from which call on it has the wheel."""

    def __init__(self, make_wheel: Wheel, serves: int = 1, output: str = "") -> None:
        self.make_wheel = make_wheel
        self.serves = serves
        self.output = output
        self.calls: list[list[str]] = []

    def __call__(self, arguments: Sequence[str], on_line: Callable[[str], None]) -> PipResult:
        self.calls.append(list(arguments))
        if len(self.calls) < self.serves:
            return PipResult(1, self.output)
        folder = Path(arguments[list(arguments).index("--dest") + 1])
        version = arguments[-1].partition("==")[2]
        on_line("Progress 1 of 4")
        self.make_wheel({"sglang/m.py": "x = 1\n"}, version, folder)
        return PipResult(0, "")


NO_MATCH = (
    "ERROR: Could not find a version that satisfies the requirement sglang==0.5.99 "
    "(from versions: 0.5.9, 0.5.17, 0.5.18rc1, 0.5.19, 0.5.23)\n"
    "ERROR: No matching distribution found for sglang==0.5.99\n"
)


def test_a_version_is_fetched_once(make_wheel: Wheel, tmp_path: Path) -> None:
    pip = FakePip(make_wheel)
    seen: list[tuple[str, float | None]] = []
    cache = tmp_path / "cache"
    for _ in range(2):
        release = open_release(
            "v0.5.19", cache_dir=cache, pip=pip, progress=lambda *told: seen.append(told)
        )
    assert release.version == "0.5.19"
    assert release.origin == "PyPI wheel sglang-0.5.19-py3-none-any.whl"
    assert len(pip.calls) == 1
    assert "--no-deps" in pip.calls[0] and "--only-binary=:all:" in pip.calls[0]
    assert [fraction for _, fraction in seen] == [None, 0.25, 1.0]
    names = {path.name for path in (cache / "releases").iterdir()}
    assert names == {
        release.origin.split()[-1],
        release.origin.split()[-1] + ".sha256",
        ".fetch.lock",
    }
    assert stat.S_IMODE((cache / "releases").stat().st_mode) == 0o700
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_wheel_for_another_python_will_do(make_wheel: Wheel, tmp_path: Path) -> None:
    pip = FakePip(make_wheel, serves=3, output=NO_MATCH)
    assert open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip).version == "0.5.19"
    assert "--python-version" not in pip.calls[0]
    asked = [call[call.index("--python-version") + 1] for call in pip.calls[1:]]
    assert len(set(asked)) == 2
    assert "manylinux_2_34_x86_64" in pip.calls[1]


def test_a_version_that_does_not_exist_names_its_neighbours(
    make_wheel: Wheel, tmp_path: Path
) -> None:
    pip = FakePip(make_wheel, serves=99, output=NO_MATCH)
    with pytest.raises(ReleaseError, match=r"SGLang 0\.5\.18 does not exist") as caught:
        open_release("0.5.18", cache_dir=tmp_path / "c", pip=pip)
    assert caught.value.hint == "the nearest versions are 0.5.9, 0.5.17, 0.5.19, 0.5.23"
    assert not list((tmp_path / "c" / "releases").glob(".fetch-*"))


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("/usr/bin/python: No module named pip\n", "no pip"),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n"
            "ERROR: Could not find a version that satisfies the requirement sglang==0.5.19 "
            "(from versions: none)\nERROR: No matching distribution found for sglang==0.5.19\n",
            "does not answer",
        ),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n", "DO NOT MATCH THE HASHES"),
        ("", "pip gave no reason"),
    ],
)
def test_other_failures_keep_pips_reason(
    make_wheel: Wheel, tmp_path: Path, output: str, says: str
) -> None:
    pip = FakePip(make_wheel, serves=99, output=output)
    with pytest.raises(ReleaseError, match=says) as caught:
        open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip)
    assert caught.value.hint
    assert len(pip.calls) == 1


def test_offline_uses_the_cache_and_nothing_else(make_wheel: Wheel, tmp_path: Path) -> None:
    pip = FakePip(make_wheel)
    with pytest.raises(ReleaseError, match="not cached"):
        open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip, offline=True)
    assert not pip.calls
    open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip)
    assert open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip, offline=True)


def test_a_damaged_cache_entry_is_fetched_again(make_wheel: Wheel, tmp_path: Path) -> None:
    pip = FakePip(make_wheel)
    open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip)
    (wheel,) = (tmp_path / "c" / "releases").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes()[:-5])
    with pytest.raises(ReleaseError, match="damaged in the cache"):
        open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip, offline=True)
    assert open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip).version == "0.5.19"
    assert len(pip.calls) == 2


def test_a_touched_wheel_is_hashed_again_and_kept(make_wheel: Wheel, tmp_path: Path) -> None:
    pip = FakePip(make_wheel)
    open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip)
    (wheel,) = (tmp_path / "c" / "releases").glob("*.whl")
    seal = wheel.with_name(wheel.name + ".sha256")
    os.utime(wheel, ns=(1, 1))
    open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip)
    assert json.loads(seal.read_text())["mtime_ns"] == 1
    seal.write_text("not json")
    open_release("0.5.19", cache_dir=tmp_path / "c", pip=pip)
    assert len(pip.calls) == 2


def test_a_wheel_that_somebody_put_there_is_used(make_wheel: Wheel, tmp_path: Path) -> None:
    folder = tmp_path / "c" / "releases"
    folder.mkdir(parents=True)
    wheel = make_wheel({}, "0.5.19.post1", folder)
    (folder / "sglang-nonsense.whl").write_text("x")
    assert open_release("0.5.19.post1", cache_dir=tmp_path / "c", offline=True)
    assert wheel.with_name(wheel.name + ".sha256").exists()


def test_the_cache_folder_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUNLUN_ADAPT_CACHE", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("KUNLUN_ADAPT_CACHE")
    assert default_cache_dir().name == "kunlun-adapt"
    (tmp_path / "file").write_text("")
    with pytest.raises(ReleaseError, match="cannot be made"):
        open_release("0.5.19", cache_dir=tmp_path / "file" / "c", offline=True)


def test_many_at_once_fetch_once(make_wheel: Wheel, tmp_path: Path) -> None:
    pip = FakePip(make_wheel)

    def slow(arguments: Sequence[str], on_line: Callable[[str], None]) -> PipResult:
        time.sleep(0.05)
        return pip(arguments, on_line)

    def open_one(_: int) -> str:
        return open_release("0.5.19", cache_dir=tmp_path / "c", pip=slow).version

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(open_one, range(6))) == {"0.5.19"}
    assert len(pip.calls) == 1


def test_pip_runs_with_this_python_and_hands_over_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(fetch, "_pip_reports_progress", lambda: False)
    result = fetch.run_pip(["--version"], lines.append)
    assert result.returncode == 0
    assert result.output == "".join(lines)
    assert result.output.startswith("pip ")


_versions = st.builds(
    "{}.{}{}".format, st.integers(0, 3), st.integers(0, 20), st.sampled_from(["", ".post1"])
)


@given(_versions, st.sets(_versions, max_size=12))
def test_nearest_versions_are_the_nearest(asked: str, listed: set[str]) -> None:
    version = Version(asked)
    found = [Version(text) for text in nearest_versions(version, listed | {"junk?"})]
    known = {Version(text) for text in listed}
    assert set(found) <= known
    assert len(found) >= min(4, len(known - {version}))
    for side in (
        sorted((item for item in known if item < version), reverse=True),
        sorted(item for item in known if item > version),
    ):
        taken = [item for item in side if item in found]
        assert taken == side[: len(taken)]

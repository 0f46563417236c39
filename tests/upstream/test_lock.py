from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.upstream import (
    Facts,
    Lock,
    LockError,
    LockFacts,
    Missing,
    Resolver,
    Symbol,
    lock_release,
    open_release,
    parse_lock,
    read_lock,
    write_lock,
)

Wheel = Callable[..., Path]

FILES = {
    "sglang/a.py": "from sglang.b import f\n",
    "sglang/b.py": "def f(x, *, out=None): ...\n",
    "sglang/c.py": "class Base:\n    def who(self): ...\nclass P(Base):\n    flag: bool = True\n",
}
TARGETS = ["sglang.a.f", "sglang.b.f", "sglang.gone.f"]


def _resolver(make_wheel: Wheel, version: str, files: Mapping[str, str] = FILES) -> Resolver:
    return Resolver(open_release(str(make_wheel(files, version))))


@pytest.fixture
def lock(make_wheel: Wheel) -> Lock:
    """Two releases, the newer one first, so that order is not an accident."""
    new, _ = lock_release(_resolver(make_wheel, "0.5.20"), TARGETS, classes=["sglang.c.P"])
    old, _ = lock_release(_resolver(make_wheel, "0.5.9"), TARGETS)
    return new.replaced(old)


def test_what_does_not_resolve_is_told_and_not_locked(make_wheel: Wheel) -> None:
    found, missing = lock_release(_resolver(make_wheel, "0.5.19"), TARGETS, classes=["sglang.c.Q"])
    assert [item.path for item in missing] == ["sglang.gone.f", "sglang.c.Q"]
    assert found.targets("0.5.19") == ("sglang.a.f", "sglang.b.f")


def test_the_file_is_one_line_a_fact_in_a_block_for_each_release(lock: Lock) -> None:
    uses = {"digest": "d", "bindings": {"b": {"stated": "1"}, "a": {"stated": "2", "callees": {}}}}
    rows = [json.loads(line) for line in lock.with_usage("0.5.9", uses).text().splitlines()]
    assert rows[0] == {"lock": 1}
    assert [r.get("target") or r.get("file") or r.get("binding") for r in rows[1:8]] == [
        *("sglang.a.f", "sglang.b.f", "sglang/a.py", "sglang/b.py", "a", "b", None)
    ]
    assert rows[5] == {"release": "0.5.9", "binding": "a", "stated": "2", "callees": {}}
    assert rows[7] == {"release": "0.5.9", "usage": "d"}
    assert [r.get("target") or r.get("file") for r in rows[8:]] == [
        *("sglang.a.f", "sglang.b.f", "sglang.c.P", "sglang.c.P.flag", "sglang.c.P.who"),
        *("sglang/a.py", "sglang/b.py", "sglang/c.py"),
    ]
    assert {r["release"] for r in rows[1:8]} == {"0.5.9"}
    assert {r["release"] for r in rows[8:]} == {"0.5.20"}


def test_the_order_of_the_lines_does_not_matter(lock: Lock) -> None:
    head, *lines = lock.with_usage("0.5.9", {"digest": "d", "bindings": {}}).text().splitlines()
    assert parse_lock("\n".join([head, *reversed(lines)])).text() == "\n".join([head, *lines, ""])


def test_a_release_can_be_taken_out(lock: Lock) -> None:
    left = lock.with_usage("0.5.9", {"digest": "d"}).without("0.5.9")
    assert left.releases == ("0.5.20",) and left.usage == {} and left.targets("0.5.9") == ()


def test_a_lock_survives_the_disk(lock: Lock, tmp_path: Path) -> None:
    path = tmp_path / "adapt.lock"
    write_lock(path, lock)
    read = read_lock(path)
    assert read == lock
    assert read.text() == lock.text()
    assert read.releases == ("0.5.9", "0.5.20")
    assert [item.name for item in tmp_path.iterdir() if item.suffix != ".whl"] == ["adapt.lock"]


def test_writing_keeps_the_old_file_when_it_fails(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "adapt.lock"
    path.write_text("old")
    monkeypatch.setattr(Lock, "text", lambda self: (_ for _ in ()).throw(RuntimeError("no")))
    with pytest.raises(RuntimeError):
        write_lock(path, lock)
    assert path.read_text() == "old"
    assert not list(tmp_path.glob(".adapt*"))


def test_locked_facts_say_what_the_release_says(make_wheel: Wheel, lock: Lock) -> None:
    live: Facts = _resolver(make_wheel, "0.5.20")
    locked: Facts = LockFacts(parse_lock(lock.text()), "0.5.20")
    assert locked.version == live.version
    for target in ("sglang.a.f", "sglang.b.f", "sglang.c.P", "sglang.c.P.who"):
        assert isinstance(live.resolve(target), Symbol)
        assert locked.resolve(target) == live.resolve(target)
    assert locked.members("sglang.c.P") == live.members("sglang.c.P")
    assert locked.members("sglang.a.f") == {}


def test_what_is_not_locked_is_missing(lock: Lock) -> None:
    other = LockFacts(lock, "0.5.21").resolve("sglang.a.f")
    assert isinstance(other, Missing) and "0.5.21 is not in the lock" in other.detail
    unknown = LockFacts(lock, "0.5.20").resolve("sglang.a.g")
    assert isinstance(unknown, Missing) and "no such target" in unknown.detail
    assert lock.symbol("0.5.20", "sglang.a.g") is None
    assert lock.files("0.5.21") == {}


def test_a_release_is_replaced_as_a_whole(make_wheel: Wheel, lock: Lock) -> None:
    again, _ = lock_release(_resolver(make_wheel, "0.5.20"), ["sglang.b.f"])
    replaced = lock.replaced(again)
    assert replaced.targets("0.5.20") == ("sglang.b.f",)
    assert set(replaced.files("0.5.20")) == {"sglang/b.py"}
    assert replaced.targets("0.5.9") == lock.targets("0.5.9")


HEAD = '{"lock": 1}\n'
ROW = (
    '{"target": "a.f", "release": "1", '
    '"symbol": {"kind": "function", "at": "a.py:1", "module": "a"}}\n'
)
FILE = '{"release": "1", "file": "a.py", "sha256": "x"}\n'
USES = '{"release": "1", "usage": "x"}\n'


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "not JSON"),
        ('{"lock": 2}\n', 1, "newer version"),
        ("[]\n", 1, "not a JSON object"),
        (HEAD + "{\n", 2, "not JSON"),
        (HEAD + "\n" + '{"target": "a"}\n', 3, "'release'"),
        (HEAD + '{"release": "1"}\n', 2, "neither"),
        (HEAD + '{"release": "1", "file": 3, "sha256": "x"}\n', 2, "neither"),
        (HEAD + ROW + ROW, 3, "twice"),
        (HEAD + FILE + FILE.replace("x", "y"), 3, "twice"),
        (HEAD + 2 * '{"release": "1", "binding": "b", "stated": "x"}\n', 3, "twice"),
        (HEAD + USES + USES.replace("x", "y"), 3, "twice"),
        (HEAD + ROW.replace("function", "fun"), 2, "kind of symbol"),
        (HEAD + ROW.replace("a.py:1", "a.py"), 2, "not a location"),
        (HEAD + ROW.replace('"module": "a"', '"variants": [3]'), 2, "malformed"),
        (HEAD + ROW.replace('"release"', '"members": "x", "release"'), 2, "'members'"),
        (HEAD + '{"target": "a", "release": "1", "symbol": []}\n', 2, "an object"),
    ],
)
def test_a_malformed_lock_names_file_and_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    path = tmp_path / "adapt.lock"
    path.write_text(text)
    with pytest.raises(LockError, match=says) as caught:
        read_lock(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_a_lock_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adapt.lock").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LockError, match="UTF-8"):
        read_lock(tmp_path / "adapt.lock")


def test_reading_a_lock_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; import kunlun_adapt.upstream as up; up.parse_lock('{\"lock\": 1}');"
        "bad = {'packaging', 'platformdirs', 'filelock', 'rapidfuzz', 'zipfile', 'pydantic'};"
        "assert not bad & set(sys.modules), bad & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

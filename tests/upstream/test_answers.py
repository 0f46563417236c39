"""What is kept of a wheel: the same answers as without it, for this wheel alone, whole or not."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.upstream import Location, Missing, Resolver, Symbol, open_release
from kunlun_adapt.upstream import answers as answering
from kunlun_adapt.upstream.answers import Answers, answer_of, answer_row
from kunlun_adapt.upstream.importable import Importable
from kunlun_adapt.upstream.lookup import Lookup

Files = Mapping[str, str]
FILES = {
    "sglang/srt/__init__.py": "",
    "sglang/srt/a.py": """
        import functools
        from sglang.srt.lost import nothing

        LIMIT = 3
        USED = LIMIT if functools else None

        @functools.lru_cache(maxsize=None)
        def cached(x, /, y: int = 1, *args, z=None, **more):
            return x

        async def stream():
            yield 1

        @register("eagle")
        def make():
            return 1

        class Base:
            def own(self, n):
                return n

        if not functools:
            class Guarded(Base):
                def run(self):
                    return 1
        else:
            class Guarded(Base):
                def run(self, k):
                    return 2
    """,
    "sglang/srt/b.py": "from sglang.srt.a import Base\nclass Below(Base):\n    pass\n",
}
LIMIT = Location("sglang/srt/a.py", 5)
PATHS = (
    *("a", "a.LIMIT", "a.USED", "a.cached", "a.stream", "a.make", "a.Base", "a.Base.own"),
    *("a.Guarded", "a.Guarded.run", "b.Below", "b.Below.own", "a.none", "none.x", "a.functools"),
)


@pytest.fixture
def wheel(make_wheel: Callable[..., Path]) -> Path:
    return make_wheel(FILES)


def opened(wheel: Path, cache: Path | None) -> Resolver:
    reader = Resolver(open_release(str(wheel)))
    if cache is not None:
        reader.use_cache(cache)
    return reader


def told(reader: Resolver) -> dict[str, Any]:
    """All that can be asked of a release and is kept."""
    said: dict[str, Any] = {path: reader.resolve(f"sglang.srt.{path}") for path in PATHS}
    for path in PATHS:
        said[f"guards {path}"] = reader.guards(f"sglang.srt.{path}")
        symbol = said[path]
        node = reader.statement(symbol) if isinstance(symbol, Symbol) else None
        said[f"statement {path}"] = None if node is None else type(node).__name__
    said["members"] = reader.members("sglang.srt.b.Below")
    said["yields"] = reader.is_async_generator("sglang.srt.a.stream")
    said["assigned"] = [reader.assigned_at("sglang.srt.a", n) for n in ("LIMIT", "make")]
    said["decorated"] = reader.decorated("sglang.srt.a", "register")
    said["broken"] = [Importable(reader).broken(f"sglang.srt.{n}") for n in ("a", "b")]
    return said


def entries(cache: Path) -> list[Path]:
    return sorted((cache / "answers").glob("*.answers"))


def test_what_is_kept_is_what_was_found(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = told(opened(wheel, None))
    assert plain["decorated"] and plain["yields"] and plain["assigned"] == [(LIMIT,), ()]
    assert plain["broken"][0] is not None and plain["broken"][1] is None
    assert len(plain["guards a.Guarded"]) == 2 and "own" in plain["members"]
    assert isinstance(plain["a.none"], Missing) and plain["a.Guarded"].variants

    first = opened(wheel, tmp_path)
    assert told(first) == plain
    first.keep_answers()
    (entry,) = entries(tmp_path)
    assert entry.stat().st_mode & 0o077 == 0
    assert entry.parent.stat().st_mode & 0o077 == 0

    def refuse(lookup: Lookup, module: str) -> None:
        raise AssertionError(f"{module} is read again")

    monkeypatch.setattr(Lookup, "table", refuse)
    assert told(opened(wheel, tmp_path)) == plain


def test_rows_give_back_what_they_were_made_from(wheel: Path) -> None:
    reader = opened(wheel, None)
    for path in PATHS:
        found = reader.resolve(f"sglang.srt.{path}")
        row = json.loads(json.dumps(answer_row(found)))
        assert answer_of(f"sglang.srt.{path}", row) == found


def test_a_later_run_adds_to_what_is_kept(wheel: Path, tmp_path: Path) -> None:
    for path in ("sglang.srt.a.make", "sglang.srt.a.LIMIT"):
        reader = opened(wheel, tmp_path)
        reader.resolve(path)
        reader.keep_answers()
    held = Answers(entries(tmp_path)[0])
    for path in ("sglang.srt.a.make", "sglang.srt.a.LIMIT"):
        assert held.recall("symbol", path, lambda: None) is not None


def test_nothing_is_written_where_nothing_is_new(wheel: Path, tmp_path: Path) -> None:
    for _ in range(2):
        reader = opened(wheel, tmp_path)
        reader.resolve("sglang.srt.a.make")
        reader.keep_answers()
        (entry,) = entries(tmp_path)
        os.utime(entry, (1, 1))
    assert entry.stat().st_mtime == 1
    assert reader.resolve("sglang.srt.a.LIMIT")
    reader.keep_answers()
    assert entry.stat().st_mtime != 1


def test_too_many_answers_leave_those_of_the_last_run(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "MOST", 2)
    for path in ("a.make", "a.LIMIT", "a.Base"):
        reader = opened(wheel, tmp_path)
        reader.resolve(f"sglang.srt.{path}")
        reader.keep_answers()
    held = Answers(entries(tmp_path)[0])
    assert held.recall("symbol", "sglang.srt.a.Base", lambda: None) is not None
    assert held.recall("symbol", "sglang.srt.a.make", lambda: None) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:5],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
        lambda data: data + b"more",
        lambda data: b"KAANSWR9" + data[8:],
        lambda data: os.urandom(4096),
        lambda data: answering._HEAD.pack(b"KAANSWR1", answering.zlib.crc32(b"\x01")) + b"\x01",
    ],
)
def test_a_damaged_entry_is_found_anew(
    wheel: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    reader = opened(wheel, tmp_path)
    whole = told(reader)
    reader.keep_answers()
    (entry,) = entries(tmp_path)
    data = entry.read_bytes()
    entry.write_bytes(spoil(data))
    again = opened(wheel, tmp_path)
    assert told(again) == whole
    again.keep_answers()
    assert entry.read_bytes() == data


def test_another_content_has_answers_of_its_own(
    wheel: Path, make_wheel: Callable[..., Path], tmp_path: Path
) -> None:
    reader = opened(wheel, tmp_path)
    assert isinstance(reader.resolve("sglang.srt.a.make"), Symbol)
    reader.keep_answers()
    changed = make_wheel({**FILES, "sglang/srt/a.py": "def other():\n    pass\n"})
    again = opened(changed, tmp_path)
    assert isinstance(again.resolve("sglang.srt.a.make"), Missing)
    again.keep_answers()
    assert len(entries(tmp_path)) == 2


def test_a_seal_that_came_with_a_wheel_is_not_believed(
    wheel: Path, make_wheel: Callable[..., Path], tmp_path: Path
) -> None:
    reader = opened(wheel, tmp_path)
    reader.resolve("sglang.srt.a.make")
    reader.keep_answers()
    genuine = hashlib.sha256(wheel.read_bytes()).hexdigest()
    folder = tmp_path / "given"
    folder.mkdir()
    forged = make_wheel({**FILES, "sglang/srt/a.py": ""}, folder=folder)
    state = forged.stat()
    claim = {"sha256": genuine, "size": state.st_size, "mtime_ns": state.st_mtime_ns}
    Path(f"{forged}.sha256").write_text(json.dumps(claim), encoding="utf-8")
    assert isinstance(opened(forged, tmp_path).resolve("sglang.srt.a.make"), Missing)


def test_of_a_folder_nothing_is_kept(make_tree: Callable[[Files], Path], tmp_path: Path) -> None:
    reader = opened(make_tree(FILES), tmp_path)
    assert isinstance(reader.resolve("sglang.srt.a.make"), Symbol)
    reader.keep_answers()
    assert not entries(tmp_path)


def test_a_folder_that_cannot_be_written_costs_the_cache_only(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("a file where the folder should be", encoding="utf-8")
    reader = opened(wheel, tmp_path)
    assert isinstance(reader.resolve("sglang.srt.a.make"), Symbol)
    reader.keep_answers()


def test_what_much_older_code_left_is_dropped(wheel: Path, tmp_path: Path) -> None:
    reader = opened(wheel, tmp_path)
    reader.resolve("sglang.srt.a.make")
    reader.keep_answers()
    (entry,) = entries(tmp_path)
    name = entry.name.rpartition("-")[0]
    old = [entry.with_name(f"{name}-{age:012}.answers") for age in range(4)]
    other = entry.with_name("0" * 32 + "-py311-000000000000.answers")
    for age, file in enumerate([other, *old]):
        file.write_bytes(b"old")
        os.utime(file, (1000 - age, 1000 - age))
    reader.resolve("sglang.srt.a.LIMIT")
    reader.keep_answers()
    assert entries(tmp_path) == sorted([entry, *old[:2], other])


PROGRAM = """
import sys
from pathlib import Path
from kunlun_adapt.upstream import Resolver, Symbol, open_release

reader = Resolver(open_release(sys.argv[1]))
for _ in range(20):
    reader.use_cache(Path(sys.argv[2]))
    for name in sys.argv[3:]:
        assert isinstance(reader.resolve(f"sglang.srt.a.{name}"), Symbol)
    reader.keep_answers()
    reader = Resolver(reader.release)
"""


def test_two_processes_may_keep_at_once(wheel: Path, tmp_path: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(wheel), str(tmp_path), *names])
        for names in (("make", "LIMIT"), ("Base", "LIMIT"))
    ]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    (entry,) = entries(tmp_path)
    held = Answers(entry)
    assert held.recall("symbol", "sglang.srt.a.LIMIT", lambda: None) is not None
    assert not list(entry.parent.glob(".answers-*"))

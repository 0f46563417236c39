"""Damages wheels in the ways in which files get damaged, or are made to do damage."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from kunlun_adapt.upstream import Release

BOMB = 64 * 1024**2
"""Bytes of zeros: 64 KiB in the archive."""


def reduced_wheel(release: Release, files: Iterable[str], target: Path) -> bytes:
    """Write the named files of a release, and what makes them packages, as a wheel of their own."""
    wanted = set(files) | {"sglang/__init__.py", "sglang/version.py", "sglang/_version.py"}
    for file in list(wanted):
        folder = file.rpartition("/")[0]
        while folder:
            wanted.add(f"{folder}/__init__.py")
            folder = folder.rpartition("/")[0]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(wanted):
            data = release.read(file)
            if data is not None:
                archive.writestr(file, data)
        metadata = f"Metadata-Version: 2.1\nName: sglang\nVersion: {release.version}\n"
        archive.writestr(f"sglang-{release.version}.dist-info/METADATA", metadata)
    return target.read_bytes()


def damage(wheel: bytes, seed: int) -> tuple[str, bytes]:
    """Return what was done and the damaged wheel; the same seed does the same."""
    chooser = random.Random(seed)
    change = chooser.choice(_CHANGES)
    return change.__name__.lstrip("_"), change(wheel, chooser)


def _truncated(wheel: bytes, chooser: random.Random) -> bytes:
    return wheel[: chooser.randrange(len(wheel))]


def _flipped(wheel: bytes, chooser: random.Random) -> bytes:
    data = bytearray(wheel)
    for _ in range(chooser.choice((1, 8, 400))):
        data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)
    return bytes(data)


def _flipped_directory(wheel: bytes, chooser: random.Random) -> bytes:
    data = bytearray(wheel)
    start = wheel.rfind(b"PK\x05\x06")
    first = wheel.find(b"PK\x01\x02")
    for _ in range(chooser.choice((1, 4, 40))):
        data[chooser.randrange(first, min(start + 22, len(data)))] = chooser.randrange(256)
    return bytes(data)


def _cut_out(wheel: bytes, chooser: random.Random) -> bytes:
    start = chooser.randrange(len(wheel))
    return wheel[:start] + wheel[start + chooser.randrange(1, 5000) :]


def _repeated(wheel: bytes, chooser: random.Random) -> bytes:
    start = chooser.randrange(len(wheel))
    return wheel[:start] + wheel[max(0, start - 3000) :]


def _other_text(wheel: bytes, chooser: random.Random) -> bytes:
    """Some modules hold what Python does not read, or reads with trouble."""
    texts = (
        b"\x00" * 100,
        b"\xff\xfe" + "x = 1".encode("utf-16-le"),
        b"# coding: no-such-codec\nx = 1\n",
        b"# coding: rot13\nk = 1\n",
        b"def f(:\n",
        b"x = " + b"(" * 3000 + b")" * 3000,
        b"x = " + b"-" * 20000 + b"1\n",
        b"from . import *\nfrom .. import *\nfrom ....... import x\n",
        b"class A(A): pass\nclass B(C): pass\nclass C(B): pass\nx = y\ny = x\n",
        b"x" * 2_000_000,
        "\ufeffx = '\udcff'".encode("utf-8", "surrogatepass"),
        b"import sglang.srt as sglang\nsglang.srt = sglang\ndel sglang\n",
        bytes(chooser.randrange(256) for _ in range(4000)),
    )
    return _rebuilt(wheel, chooser, lambda name, data: (name, chooser.choice(texts)), 8)


def _shuffled_text(wheel: bytes, chooser: random.Random) -> bytes:
    def shuffled(name: str, data: bytes) -> tuple[str, bytes]:
        lines = data.splitlines(keepends=True)
        for _ in range(10):
            if len(lines) > 2:
                a, b = chooser.randrange(len(lines)), chooser.randrange(len(lines))
                lines[a], lines[b] = lines[b], lines[a]
        return name, b"".join(lines)

    return _rebuilt(wheel, chooser, shuffled, 30)


def _other_names(wheel: bytes, chooser: random.Random) -> bytes:
    names = (
        "../../escape.py",
        "/absolute.py",
        "sglang/../../escape.py",
        "C:\\windows.py",
        "sglang\\back\\slash.py",
        "sglang/srt/",
        "sglang/\x1b[31mred.py",
        "sglang/" + "deep/" * 500 + "x.py",
        "sglang/srt",
        "",
        "sglang/name with blanks.py",
        "sglang/\u202egnp.py",
    )
    return _rebuilt(wheel, chooser, lambda name, data: (chooser.choice(names), data), 2)


def _lost_files(wheel: bytes, chooser: random.Random) -> bytes:
    return _rebuilt(wheel, chooser, lambda name, data: None, chooser.choice((1, 20, 400)))


def _bomb(wheel: bytes, chooser: random.Random) -> bytes:
    return _rebuilt(wheel, chooser, lambda name, data: (name, bytes(BOMB)), 2)


def _other_metadata(wheel: bytes, chooser: random.Random) -> bytes:
    texts = (
        b"",
        b"Version: banana\n",
        b"Version: " + b"9" * 5000 + b"\n",
        b"Version:\n",
        b"\xff\xfe\x00",
        b"Version: 0.5.9\n",
        b"Version: 99!1.2.3rc4.post5.dev6+local\n",
        b"Version: \x1b]0;title\x07\n",
    )

    def changed(name: str, data: bytes) -> tuple[str, bytes]:
        return name, chooser.choice(texts)

    return _rebuilt(wheel, chooser, changed, 1, only="METADATA")


def _rebuilt(
    wheel: bytes,
    chooser: random.Random,
    change: Callable[[str, bytes], tuple[str, bytes] | None],
    count: int,
    only: str = ".py",
) -> bytes:
    """Write the wheel again with some of its files changed."""
    source = zipfile.ZipFile(io.BytesIO(wheel))
    names = source.namelist()
    fitting = [name for name in names if name.endswith(only)]
    chosen = set(chooser.sample(fitting, min(count, len(fitting))))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry: tuple[str, bytes] | None = (name, source.read(name))
            if name in chosen:
                entry = change(name, source.read(name))
            if entry is not None:
                archive.writestr(zipfile.ZipInfo(entry[0]), entry[1], zipfile.ZIP_DEFLATED)
    return made.getvalue()


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _truncated,
    _flipped,
    _flipped_directory,
    _cut_out,
    _repeated,
    _other_text,
    _shuffled_text,
    _other_names,
    _lost_files,
    _bomb,
    _other_metadata,
)

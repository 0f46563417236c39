"""Mutated documents: slices of the shipped YAML files with one to four things wrong with them.

A mutant is a function of its number alone, so the number is all that has to be reported. Half have
another value, entry or key and are written out anew, so that many are still documents and the
checks behind the loader get to see them; the others are damaged as text, in lines and brackets, or
byte by byte.
"""

from __future__ import annotations

import copy
import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kunlun_adapt.documents import load_bytes
from kunlun_adapt.locate import MAP_FILE, workspace_files
from tests.fuzz.values import (
    BY_KEY,
    CONDITIONS,
    FORMULAS,
    IMPLS,
    INNER,
    KEYS,
    PLAIN,
    POOLS,
    RANGES,
    TARGETS,
)

ROOT = Path(__file__).resolve().parents[2]

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

KEPT = {"apiVersion", "kind", "name", "sglang", "why", "device", "family", "params", "golden"}
MOST_ENTRIES = 3

_KEY = re.compile(r"(?P<indent>\s*(?:- )?)(?P<key>[^\s:#'\"{\[][^:#\n]*):(?P<rest>\s|$)")
_VALUE = re.compile(
    r"(?<=: )(?:\"[^\"\n]*\"|'[^'\n]*'|\[[^\]\n]*\]|[^\s,{}\[\]#&*!|>\"'][^,{}\[\]#\n]*)"
)


@dataclass(frozen=True, slots=True)
class Seed:
    """One document of a file: its head and its sections, each as blocks of lines."""

    file: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damaged document and the place in a workspace where it stands."""

    number: int
    file: str
    raw: bytes


@cache
def seeds() -> tuple[Seed, ...]:
    """Return every document of the workspace, cut where its entries begin."""
    found = []
    for name, path in workspace_files(ROOT):
        for text in path.read_text(encoding="utf-8").split("\n---\n"):
            found.append(Seed(name, _sections(text)))
    return tuple(found)


def _sections(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    (document,), findings = load_bytes(text.encode(), "seed.yaml")
    assert findings == []
    lines = text.splitlines(keepends=True)
    starts = [document.keys[(key,)].line - 1 for key in document.data]
    sections = []
    for key, start, end in zip(document.data, starts, [*starts[1:], len(lines)], strict=True):
        value = document.data[key]
        inner = (
            [*value]
            if isinstance(value, dict)
            else range(len(value))
            if isinstance(value, list)
            else []
        )
        cuts = sorted({document.key_at(key, part).line - 1 for part in inner} - {start})
        blocks = [start, *cuts, end]
        sections.append((key, tuple("".join(lines[a:b]) for a, b in itertools.pairwise(blocks))))
    return tuple(sections)


def slice_of(seed: Seed, chooser: random.Random) -> str:
    """Return a document with the sections of a seed, each with a few of its entries."""
    text = ""
    for key, (head, *entries) in seed.sections:
        if key in KEPT or len(entries) <= MOST_ENTRIES:
            text += head + "".join(entries)
        elif seed.file != MAP_FILE or chooser.random() < 0.5:
            start = chooser.randrange(len(entries))
            text += head + "".join(entries[start : start + MOST_ENTRIES])
    return text


def mutant(number: int) -> Mutant:
    """Return the mutant of this number: the same for the same documents."""
    chooser = random.Random(number)
    maps = [s for s in seeds() if s.file == MAP_FILE]
    seed = chooser.choice(maps) if chooser.random() < 0.3 else chooser.choice(seeds())
    text = slice_of(seed, chooser)
    if chooser.random() < 0.5:
        text = _written(text, chooser)
    else:
        for _ in range(chooser.choice((1, 1, 2, 4))):
            text = chooser.choice(BY_STRUCTURE)(text, chooser)
    raw = text.encode("utf-8", errors="surrogatepass")
    if chooser.random() < 0.1:
        for _ in range(chooser.choice((1, 3))):
            raw = chooser.choice(BY_BYTES)(raw, chooser)
    return Mutant(number, seed.file, raw)


# -- by value --------------------------------------------------------------------------------------


def _written(text: str, chooser: random.Random) -> str:
    """Change some values of a document and write it out."""
    documents, _ = load_bytes(text.encode(), "slice.yaml", broken=True)
    if not documents:
        return text
    data = documents[0].data
    for _ in range(chooser.choice((1, 1, 2, 3, 6))):
        places = list(_places(data, None))
        if not places:
            break
        chooser.choice(BY_VALUE)(places, chooser)
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000))


def _places(data: Any, key: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (container, index or key, name of the nearest key) of everything in a document."""
    entries = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for index, value in entries:
        name = key if key in INNER or not isinstance(index, str) else index
        yield data, index, name
        yield from _places(value, name)


Places = list[tuple[Any, Any, Any]]


def _set(places: Places, chooser: random.Random) -> None:
    """Give a leaf another value, mostly of its kind."""
    leaves = [p for p in places if not isinstance(p[0][p[1]], (dict, list))]
    if leaves:
        container, index, name = chooser.choice(leaves)
        pool = BY_KEY.get(name) or _like(str(container[index]))
        text = chooser.choice(pool if chooser.random() < 0.8 else chooser.choice(POOLS))
        # A copy: what one mutant does to its own list must not be in the next one's.
        container[index] = copy.deepcopy(_plain(text))


def _dropped(places: Places, chooser: random.Random) -> None:
    container, index, _ = chooser.choice(places)
    del container[index]


def _doubled(places: Places, chooser: random.Random) -> None:
    lists = [p for p in places if isinstance(p[0], list)]
    if lists:
        container, index, _ = chooser.choice(lists)
        container.insert(chooser.randrange(len(container) + 1), container[index])


def _exchanged(places: Places, chooser: random.Random) -> None:
    """Exchange two values that stand under one key, or any two."""
    one = chooser.choice(places)
    alike = [p for p in places if p[2] == one[2] and not isinstance(p[0][p[1]], (dict, list))]
    two = chooser.choice(alike or places)
    if not isinstance(one[0][one[1]], (dict, list)):
        one[0][one[1]], two[0][two[1]] = two[0][two[1]], one[0][one[1]]


def _renamed(places: Places, chooser: random.Random) -> None:
    named = [p for p in places if isinstance(p[0], dict)]
    if named:
        container, index, _ = chooser.choice(named)
        container[chooser.choice(KEYS)] = container.pop(index)


@cache
def _plain(text: str) -> Any:
    """Return what a written value means, or the text itself where it means nothing."""
    documents, findings = load_bytes(f"a: {text}".encode("utf-8", "surrogatepass"), "v.yaml")
    return text if findings or not documents else documents[0].data["a"]


BY_VALUE: tuple[Callable[[Places, random.Random], None], ...] = (
    _set, _set, _set, _set, _set, _exchanged, _exchanged, _doubled, _dropped, _renamed,
)  # fmt: skip


# -- by structure ----------------------------------------------------------------------------------


def _value(text: str, chooser: random.Random) -> str:
    """Give one key another value."""
    places = list(_VALUE.finditer(text))
    if not places:
        return text
    place = chooser.choice(places)
    new = chooser.choice(_like(place[0]) if chooser.random() < 0.6 else chooser.choice(POOLS))
    return text[: place.start()] + new + text[place.end() :]


def _like(old: str) -> list[str]:
    """Return values of the kind that a value seems to be: they get past the loader more often."""
    text = old.strip("\"'")
    if text[:2] in (">=", "==", "<0"):
        return RANGES
    if re.match(r"[\w.]+:[\w.]+\Z", text):
        return IMPLS
    if re.match(r"\w+(\.\w+)+\Z", text):
        return TARGETS
    if re.match(r"[<>%~\[]", text) or text in ("none", "present"):
        return CONDITIONS
    return FORMULAS if ".shape[" in text else PLAIN


def _swapped(text: str, chooser: random.Random) -> str:
    """Exchange two values of the document."""
    places = list(_VALUE.finditer(text))
    if len(places) < 2:
        return text
    one, two = sorted(chooser.sample(places, 2), key=lambda found: found.start())
    return text[: one.start()] + two[0] + text[one.end() : two.start()] + one[0] + text[two.end() :]


def _key(text: str, chooser: random.Random) -> str:
    """Give one value another key."""
    lines = text.splitlines(keepends=True)
    places = [(i, found) for i, line in enumerate(lines) if (found := _KEY.match(line))]
    if not places:
        return text
    index, found = chooser.choice(places)
    old = found["key"]
    slip = old[:-1] if chooser.random() < 0.3 and len(old) > 1 else chooser.choice(KEYS)
    lines[index] = lines[index].replace(f"{old}:", f"{slip}:", 1)
    return "".join(lines)


def _blocks(text: str) -> list[tuple[int, int]]:
    """Return the first and the last line, exclusive, of every block of deeper lines."""
    lines = text.splitlines(keepends=True)
    depth = [len(line) - len(line.lstrip(" -")) if line.strip() else 99 for line in lines]
    found = []
    for start in range(len(lines)):
        end = start + 1
        while end < len(lines) and depth[end] > depth[start]:
            end += 1
        found.append((start, end))
    return found


def _block(text: str, chooser: random.Random) -> str:
    """Remove, repeat or move a block."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    start, end = chooser.choice(_blocks(text))
    block = lines[start:end]
    what = chooser.randrange(3)
    if what == 0:
        del lines[start:end]
    elif what == 1:
        lines[end:end] = block
    else:
        del lines[start:end]
        place = chooser.randrange(len(lines) + 1)
        lines[place:place] = block
    return "".join(lines)


def _indented(text: str, chooser: random.Random) -> str:
    """Move a line in or out, by blanks or by a tab."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    index = chooser.randrange(len(lines))
    line = lines[index]
    lines[index] = chooser.choice(
        (f" {line}", f"  {line}", f"\t{line}", line.lstrip(" "), line[1:])
    )
    return "".join(lines)


def _added(text: str, chooser: random.Random) -> str:
    """Add an entry that does not belong there, or one that might."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    index = chooser.randrange(len(lines))
    indent = re.match(r"[ -]*", lines[index])
    blank = " " * len(indent[0]) if indent else ""
    value = chooser.choice(chooser.choice(POOLS))
    lines.insert(index + chooser.randrange(2), f"{blank}{chooser.choice(KEYS)}: {value}\n")
    return "".join(lines)


def _wrapped(text: str, chooser: random.Random) -> str:
    """Put a value into a list, a mapping or an anchor."""
    places = list(_VALUE.finditer(text))
    if not places:
        return text
    place = chooser.choice(places)
    form = chooser.choice(("[{}]", "{{a: {}}}", "&a {}", "[&a {}, *a]", "'{}'", "[{0}, {0}]"))
    return text[: place.start()] + form.format(place[0]) + text[place.end() :]


def _several(text: str, chooser: random.Random) -> str:
    """Make two documents of one, or one of a document and its beginning."""
    middle = chooser.randrange(len(text) + 1)
    line = text.rfind("\n", 0, middle) + 1
    return chooser.choice(
        (f"{text}---\n{text[:line]}", f"{text[:line]}---\n{text[line:]}", f"{text}...\n")
    )


Change = Callable[[str, random.Random], str]
BY_STRUCTURE: tuple[Change, ...] = (
    _value, _value, _value, _value, _swapped, _key, _key, _block, _block, _indented, _added,
    _wrapped, _several,
)  # fmt: skip


# -- by bytes --------------------------------------------------------------------------------------


def _flipped(raw: bytes, chooser: random.Random) -> bytes:
    if not raw:
        return raw
    place = chooser.randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ (1 << chooser.randrange(8))]) + raw[place + 1 :]


def _cut(raw: bytes, chooser: random.Random) -> bytes:
    start = chooser.randrange(len(raw) + 1)
    return raw[:start] + raw[start + chooser.randrange(40) :]


def _ended(raw: bytes, chooser: random.Random) -> bytes:
    return raw[: chooser.randrange(len(raw) + 1)]


def _inserted(raw: bytes, chooser: random.Random) -> bytes:
    place = chooser.randrange(len(raw) + 1)
    junk = chooser.choice(
        (chooser.randbytes(4), b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\xe2\x80\xa8")
    )
    return raw[:place] + junk + raw[place:]


def _repeated(raw: bytes, chooser: random.Random) -> bytes:
    start = chooser.randrange(len(raw) + 1)
    part = raw[start : start + chooser.randrange(200)]
    return raw[:start] + part * chooser.choice((2, 3, 50)) + raw[start + len(part) :]


def _line_ends(raw: bytes, chooser: random.Random) -> bytes:
    return raw.replace(b"\n", chooser.choice((b"\r\n", b"\r")))


BY_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flipped, _flipped, _cut, _ended, _inserted, _repeated, _line_ends,
)  # fmt: skip

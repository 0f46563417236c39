"""The READMEs name only what exists, and the Chinese one says what the English one says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from kunlun_adapt.cli import app

ROOT = Path(__file__).resolve().parent.parent
ENGLISH, CHINESE = "README.md", "README_zh.md"
READMES = (ENGLISH, CHINESE)
PROMISED_TARGETS = {"demo", "test"}

FENCE = re.compile(r"^```[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
TABLE = re.compile(r"(?:^\|.*\|$\n?)+", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
EXTERNAL = re.compile(r"[a-z][a-z+.-]*:")
COMMAND = re.compile(r"\bkunlun-adapt +([a-z][a-z-]*)")
MAKE = re.compile(r"^(?:\$ )?make +([a-z][a-z-]*)", re.MULTILINE)
MAKE_TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Readme:
    """A README taken apart: its fenced blocks, and the text around them."""

    fences: tuple[str, ...]
    prose: str

    @property
    def inline(self) -> list[str]:
        return INLINE.findall(self.prose)

    @property
    def code(self) -> str:
        """Everything that is set as code, each piece on lines of its own."""
        return "\n".join((*self.fences, *self.inline))

    @property
    def tables(self) -> list[list[int]]:
        """For each table, the number of columns of each row."""
        return [
            [row.count("|") - 1 for row in table.splitlines()]
            for table in TABLE.findall(self.prose)
        ]

    @property
    def relative_links(self) -> list[str]:
        targets = (link.partition("#")[0] for link in LINK.findall(self.prose))
        return [target for target in targets if target and not EXTERNAL.match(target)]


def read(name: str) -> Readme:
    text = (ROOT / name).read_text(encoding="utf-8")
    return Readme(tuple(FENCE.findall(text)), FENCE.sub("", text))


@pytest.fixture(scope="module")
def commands() -> set[str]:
    group = typer.main.get_command(app)
    return set(getattr(group, "commands", {}))


def test_both_show_the_same_code_blocks_in_the_same_order() -> None:
    english, chinese = read(ENGLISH), read(CHINESE)
    assert english.fences
    assert chinese.fences == english.fences


def test_both_set_the_same_names_as_code() -> None:
    # Word order differs between the languages, so the order of the names may.
    english, chinese = read(ENGLISH).inline, read(CHINESE).inline
    assert english
    assert Counter(chinese) == Counter(english)


def test_both_have_the_same_headings_and_tables() -> None:
    english, chinese = read(ENGLISH), read(CHINESE)
    assert HEADING.findall(english.prose)
    assert HEADING.findall(chinese.prose) == HEADING.findall(english.prose)
    assert english.tables
    assert chinese.tables == english.tables


@pytest.mark.parametrize("name", READMES)
def test_every_named_command_exists(name: str, commands: set[str]) -> None:
    named = set(COMMAND.findall(read(name).code))
    assert named
    assert named <= commands


@pytest.mark.parametrize("name", READMES)
def test_every_command_has_its_row(name: str, commands: set[str]) -> None:
    rows = set(re.findall(r"^\| `([a-z-]+)` \|", read(name).prose, re.MULTILINE))
    assert commands
    assert commands <= rows


@pytest.mark.parametrize("name", READMES)
def test_every_relative_link_resolves(name: str) -> None:
    links = read(name).relative_links
    assert {ENGLISH, CHINESE} - {name} <= set(links), "each README leads to the other"
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", READMES)
def test_every_named_make_target_exists(name: str) -> None:
    named = set(MAKE.findall(read(name).code))
    targets = set(MAKE_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    assert named >= PROMISED_TARGETS
    assert named <= targets

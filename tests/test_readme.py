"""The READMEs name only what exists, and the Chinese one says what the English one says."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from _pytest.mark import ParameterSet
from packaging.version import Version
from typer.testing import CliRunner

from kunlun_adapt.cli import app
from kunlun_adapt.documents import in_range, load_catalog
from kunlun_adapt.upstream import read_lock

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
PLACE = re.compile(r"^platform_map\.yaml:(\d+):(\d+): ", re.MULTILINE)
WORKSPACE = ("platform_map.yaml", "adapt.lock", "operator_recipes", "recipes", "templates")
# The two faults that the README shows, as edits of the shipped map.
FAULTS = {
    "ignores: [pp_size, tp_size, nnodes]": "ignores: [pp_size, tp_size]",
    "common.support_triton,": "common.support_tritn,",
}
# What cannot be run for real here: a server, and a SGLang that somebody patched.
NOT_RUN = re.compile(r"serve |.*--sglang installed\Z")


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


def test_the_matrix_has_a_row_for_each_locked_release() -> None:
    """That its numbers are right is for the test that runs the command which makes it."""
    rows = [*_counts("matrix --counts")]
    assert rows == sorted(rows, key=Version)
    catalog = load_catalog(ROOT)
    assert catalog.platform_map is not None
    assert all(in_range(catalog.platform_map.model.sglang, row) for row in rows)
    assert rows and set(rows) >= set(read_lock(ROOT / "adapt.lock").releases)


def test_the_matrix_counts_what_validate_counts() -> None:
    matrix = _counts("matrix --counts")
    validated = _counts("validate --sglang 0.5.17 --sglang 0.5.19 --sglang 0.5.23")
    assert len(validated) == 3
    assert {release: matrix[release][:3] for release in validated} == {
        release: numbers[:3] for release, numbers in validated.items()
    }


def _counts(command: str) -> dict[str, list[str]]:
    """The numbers that an example shows of each release."""
    (shown,) = [example for example in examples() if example.command == command]
    head, *rows = [line.split() for line in shown.output.splitlines()]
    assert head[:4] == ["release", "bound", "planned", "excluded"]
    return {row[0]: row[1:] for row in rows if all(map(str.isdigit, row[1:]))}


@dataclass(frozen=True, slots=True)
class Example:
    """A command that the README shows, and what it shows of the output; `…` stands for lines."""

    command: str
    output: str

    @property
    def parts(self) -> list[str]:
        parts = re.split(r"^…$", self.output, flags=re.MULTILINE)
        return [part.strip("\n") for part in parts if part.strip()]


def examples() -> list[Example]:
    found: list[Example] = []
    for fence in read(ENGLISH).fences:
        for shown in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:]:
            first, _, output = shown.replace("\\\n", "").removesuffix("```").partition("\n")
            found.append(Example(first.removeprefix("kunlun-adapt").strip(), output.strip("\n")))
    return found


RUN = [example for example in examples() if not NOT_RUN.match(example.command)]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped workspace with the faults that the README shows."""
    root = tmp_path_factory.mktemp("faulty")
    for name in WORKSPACE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)
    text = (root / "platform_map.yaml").read_text(encoding="utf-8")
    for right, wrong in FAULTS.items():
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    (root / "platform_map.yaml").write_text(text, encoding="utf-8")
    return root


def test_the_examples_cover_each_command_that_can_be_run() -> None:
    assert {example.command.split()[0] for example in RUN} >= {"validate", "render", "explain"}
    assert len(RUN) < len(examples())


def _as_test(example: Example) -> ParameterSet:
    # Seven releases are too many for every change; three of them are seen by `validate` here.
    marks = [pytest.mark.full] if example.command.startswith("matrix") else []
    return pytest.param(example, marks=marks, id=example.command)


@pytest.mark.upstream
@pytest.mark.parametrize("example", [_as_test(example) for example in RUN])
def test_an_example_prints_what_the_readme_shows(example: Example, faulty: Path) -> None:
    broken = PLACE.search(example.output) is not None
    root = faulty if broken else ROOT
    arguments = [*shlex.split(example.command), "--workspace", str(root)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == (1 if broken else 0)
    if "…" not in example.output:
        assert result.stdout == f"{example.output}\n"
    printed, end = f"\n{result.stdout}", 0
    for part in example.parts:
        end = printed.find(f"\n{part}\n", end)
        assert end >= 0, f"not printed, or not in this order:\n{part}"


def test_the_places_that_the_readme_shows_are_in_the_map() -> None:
    """Also those of the examples that cannot be run."""
    lines = (ROOT / "platform_map.yaml").read_text(encoding="utf-8").splitlines()
    places = PLACE.findall(read(ENGLISH).code)
    assert len(places) >= 3
    for line, column in places:
        assert lines[int(line) - 1][int(column) - 1 :].startswith("sglang.srt.utils.common.")

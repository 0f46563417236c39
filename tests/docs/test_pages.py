"""The generated pages are complete and fresh, and links and commands of the others hold."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import typer.main
from typer.testing import CliRunner

from kunlun_adapt.cli import app
from kunlun_adapt.diagnostics import CODES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDES = [DOCS / "index.md", *sorted((DOCS / "howto").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HOOKS = "platform_map.yaml, under hooks:"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / "tools" / "docs_pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_codes_is_fresh(pages: ModuleType) -> None:
    committed = (DOCS / "codes" / "README.md").read_text(encoding="utf-8")
    assert committed == pages.codes_index(), "run: python tools/docs_pages.py"
    assert all(f"[{code}]({code}.md)" in committed for code in CODES)


def test_every_key_of_every_document_is_described(pages: ModuleType) -> None:
    text = pages.documents_page()
    rows = [line for line in text.splitlines() if re.match(r"\| (\*\*)?`", line)]
    assert len(rows) > 150
    silent = [row for row in rows if row.endswith("|  |")]
    assert silent == [], "describe them in kunlun_adapt/documents/descriptions.py"
    anchors = {heading.lower() for heading in re.findall(r"^#+ (\w+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= anchors


def test_every_named_type_is_explained(pages: ModuleType) -> None:
    text = pages.documents_page()
    known = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) | {"None", "Any"}
    rows = re.findall(r"^\| (?:\*\*)?`\w+`(?:\*\*)? \|.*\|.*\|.*\|$", text, re.MULTILINE)
    columns = [row.split(" | ")[1] for row in rows]
    assert len(columns) > 150
    bare = {w for c in columns for w in re.findall(r"(?<![\[`'\w])[A-Z]\w+(?![\]`'\w])", c)}
    assert bare <= known


def test_every_command_and_option_is_listed(pages: ModuleType) -> None:
    text = pages.commands_page()
    commands = getattr(typer.main.get_command(app), "commands", {})
    assert {"validate", "diff", "retarget", "matrix", "adopt", "watch"} <= commands.keys()
    for command in commands:
        assert f"## `kunlun-adapt {command}`\n" in text
    for option in (
        "--select",
        "--output` `-o",
        "--by",
        "--against",
        "--beyond-claims",
        "--run-dir",
        "--dry-run",
        "--counts",
        "--since",
    ):
        assert f"`{option}`" in text, option


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: p.name)
def test_links_between_pages_hold(page: Path, pages: ModuleType) -> None:
    generated = {DOCS / pages.DOCUMENTS, DOCS / pages.COMMANDS}
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    for link in LINK.findall(prose):
        target = link.partition("#")[0]
        if target and "://" not in target:
            path = (page.parent / target).resolve()
            assert path.exists() or path in generated, link
            assert path.is_relative_to(DOCS), f"{link} leads out of the documentation"


def test_the_code_pages_are_all_in_place() -> None:
    assert {p.stem for p in (DOCS / "codes").glob("KA*.md")} == set(CODES)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name in ("platform_map.yaml", "operator_recipes", "recipes", "templates", "adapt.lock"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def apply(block: str, root: Path) -> None:
    """Do the edit that a YAML block shows, where its first line says which file it is."""
    first, _, text = block.partition("\n")
    if first == f"# {HOOKS}":
        path = root / "platform_map.yaml"
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace("\nhooks:\n", f"\nhooks:\n{text}", 1), encoding="utf-8")
    elif first.startswith("# operator_recipes/"):
        (root / first.removeprefix("# ")).write_text(text, encoding="utf-8")


@pytest.mark.upstream
@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.stem)
def test_the_guide_does_what_it_says(page: Path, workspace: Path) -> None:
    ran = 0
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "yaml":
            apply(block, workspace)
        if language != "console":
            continue
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = shown.partition("\n")
            arguments = shlex.split(command.removeprefix("kunlun-adapt "))
            result = CliRunner().invoke(app, [*arguments, "--workspace", str(workspace)])
            assert result.exit_code == 0, f"{command}\n{result.stdout}{result.stderr}"
            ran += 1
            position = 0
            for line in output.splitlines():
                for part in filter(None, (p.strip() for p in line.split("…"))):
                    position = result.stdout.find(part, position)
                    assert position >= 0, f"{command} does not print {part!r}"
    assert ran

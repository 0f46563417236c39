"""`validate`'s formats and selectors, through the command line and without a real release."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import Result

from tests.check.bench import MAP, Bench
from tests.cli.conftest import Run


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A workspace with an error, a warning and an info, beside a small release."""
    wrong = Bench(tmp_path).edit(MAP, "common.CHOICES", "common.CHOICE")
    later = "    why: pin each worker to the cores near its card\n"
    return wrong.edit(MAP, later, f"{later}    status: planned\n")


@pytest.fixture
def check(run: Run, bench: Bench, tmp_path: Path) -> Run:
    bench.report()  # writes both

    def call(*options: object) -> Result:
        places = ("--workspace", tmp_path / "workspace", "--sglang", tmp_path / "release")
        return run("validate", *places, *options)

    return call


def codes(text: str) -> set[str]:
    return {f["code"] for f in json.loads(text)["releases"][0]["findings"]}


def test_every_format_tells_the_same_findings(check: Run) -> None:
    found = check("--format", "json")
    wanted = codes(found.stdout)
    assert found.exit_code == 1 and "KA101" in wanted
    for format in ("sarif", "junit", "github", "text"):
        result = check("--format", format, "--verbose")
        assert result.exit_code == 1
        assert all(code in result.stdout for code in wanted), format
    run = json.loads(check("--format", "sarif").stdout)["runs"][0]
    assert {r["ruleId"] for r in run["results"]} == wanted
    rule = next(r for r in run["tool"]["driver"]["rules"] if r["id"] == "KA101")
    assert rule["help"]["markdown"].startswith("# KA101: target-missing")
    suites = ElementTree.fromstring(check("--format", "junit").stdout.encode())
    assert {f.attrib["type"] for f in suites.iter("failure")} == {"KA101"}


def test_infos_are_counted_and_shown_when_asked_for(check: Run) -> None:
    short = check().stdout
    assert "KA313" not in short and "info not shown: --verbose shows them" in short
    for options in (("--verbose",), ("-v",), ("--fail-on", "info")):
        assert "KA313" in check(*options).stdout
    assert "KA313" in check("--format", "json").stdout, "programs get everything"


def test_select_and_ignore(check: Run) -> None:
    chosen = codes(check("--format", "json", "--select", "ka1", "--ignore", "KA107").stdout)
    assert "KA101" in chosen and "KA107" not in chosen
    assert all(code.startswith("KA1") for code in chosen)
    assert "KA101" not in codes(check("--format", "json", "--ignore", "KA101,KA2").stdout)
    assert check("--ignore", "KA101", "--ignore", "KA2").exit_code == 0
    assert check("--select", "KA2").exit_code == 0


def test_a_selector_that_is_no_code(check: Run) -> None:
    for option in ("--select", "--ignore"):
        result = check(option, "KA1O1")
        assert result.exit_code == 2 and result.stdout == ""
        assert "did you mean KA101" in " ".join(result.stderr.replace("│", " ").split())
        for section in ("KA9", "KA", ""):
            result = check(option, section)
            said = " ".join(result.stderr.replace("│", " ").split())
            assert result.exit_code == 2 and result.stdout == ""
            assert "the sections are KA0, KA1, KA2, KA3, KA4, KA5;" in said
            assert "did you mean" not in said


def test_a_document_that_cannot_be_read_is_never_called_fine(check: Run, tmp_path: Path) -> None:
    (tmp_path / "workspace" / MAP).write_text("kind: [", encoding="utf-8")
    result = check("--select", "KA4", "--format", "json")
    assert result.exit_code == 1 and codes(result.stdout) == {"KA001"}


def test_output_is_written_whole(check: Run, tmp_path: Path) -> None:
    path = tmp_path / "new" / "findings.json"
    path.parent.mkdir()
    printed = check("--format", "json").stdout
    result = check("--format", "json", "--output", path)
    assert result.exit_code == 1 and result.stdout == ""
    assert path.read_text(encoding="utf-8") == printed
    counts = check("--verbose").stdout.splitlines()[-1].partition("excluded: ")[2]
    assert "1 error, " in counts and " info" in counts
    assert f"written to {path}: {counts}\n" in result.stderr
    assert [p.name for p in path.parent.iterdir()] == ["findings.json"]
    assert check("--format", "json", "--output", path, "--quiet").stderr == ""
    assert check("--format", "json", "--output", "-").stdout == printed


def test_output_makes_no_folder(check: Run, tmp_path: Path) -> None:
    result = check("--output", tmp_path / "mispelt" / "findings.txt")
    assert result.exit_code == 2 and result.stdout == ""
    assert f"error: {tmp_path / 'mispelt'}: No such file or directory" in result.stderr
    assert not (tmp_path / "mispelt").exists()


def test_output_that_cannot_be_written(check: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = check("--output", tmp_path / "file" / "x.txt")
    assert result.exit_code == 2 and "error:" in result.stderr


def test_several_releases_give_one_table_and_one_exit_code(
    check: Run, bench: Bench, tmp_path: Path
) -> None:
    other = Bench(tmp_path / "other", upstream=bench.upstream).version("0.5.18")
    other.resolver()
    second = ("--sglang", tmp_path / "other" / "release")
    result = check(*second)
    table = result.stdout[result.stdout.index("release  bound") :].splitlines()
    assert [row.split()[0] for row in table[:3]] == ["release", "0.5.19", "0.5.18"]
    assert result.exit_code == 1
    body = json.loads(check(*second, "--format", "json").stdout)
    assert [r["release"] for r in body["releases"]] == ["0.5.19", "0.5.18"]


def test_a_terminal_gets_colours_and_groups(check: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    result = check("--quiet")
    assert "\x1b[" in result.stdout and "KA101" in result.stdout and result.exit_code == 1
    assert result.stdout.count("platform_map.yaml\x1b") == 1

"""`render --check` of a folder that holds one folder for each release and profile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Run

pytestmark = pytest.mark.upstream


@pytest.fixture
def rendered(run: Run, tmp_path: Path) -> Path:
    """Two releases' folders, as they are now, and one that is for no release."""
    folder = tmp_path / "rendered"
    for release, profile in (("0.5.19", "card"), ("0.5.19", "simulator"), ("0.5.23", "card")):
        out = folder / release / profile
        options = ("--sglang", release, "--profile", profile, "--out", out, "--quiet")
        assert run("render", *options).exit_code == 0
    (folder / "notes" / "card").mkdir(parents=True)
    return folder


def said(folder: Path, release: str, profile: str) -> str:
    place = folder / release / profile
    return f"{place} is what sglang {release} ({profile}) renders to\n"


def again(folder: Path, release: str, profile: str) -> str:
    place = folder / release / profile
    how = f"--sglang {release} --profile {profile} --out {place}"
    return f"{place} is stale; try: kunlun-adapt render {how}\n"


def test_each_folder_is_compared_with_its_own_release(run: Run, rendered: Path) -> None:
    result = run("render", "--check", rendered, "--offline")
    assert result.exit_code == 0, result.stderr
    places = [("0.5.19", "card"), ("0.5.19", "simulator"), ("0.5.23", "card")]
    assert result.stdout == "".join(said(rendered, *place) for place in places)

    (rendered / "0.5.19" / "simulator" / "hooks.py").unlink()
    with (rendered / "0.5.23" / "card" / "platform.py").open("a") as file:
        file.write("# by hand\n")
    result = run("render", "--check", rendered)
    assert result.exit_code == 1
    assert said(rendered, "0.5.19", "card") in result.stdout
    assert "--- a/0.5.23/card/platform.py\n+++ b/0.5.23/card/platform.py\n" in result.stdout
    assert "+++ b/0.5.19/simulator/hooks.py\n" in result.stdout
    for place in (("0.5.19", "simulator"), ("0.5.23", "card")):
        assert again(rendered, *place) in result.stderr
    assert result.stderr.count("is stale") == 2


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (("--sglang", "0.5.19"), [("0.5.19", "card"), ("0.5.19", "simulator")]),
        (("--profile", "card"), [("0.5.19", "card"), ("0.5.23", "card")]),
        (("--sglang", "0.5.23", "--profile", "card"), [("0.5.23", "card")]),
    ],
)
def test_the_options_choose_among_the_folders(
    run: Run, rendered: Path, options: tuple[str, ...], places: list[tuple[str, str]]
) -> None:
    result = run("render", "--check", rendered, *options)
    assert result.exit_code == 0
    assert result.stdout == "".join(said(rendered, *place) for place in places)


def test_a_choice_that_no_folder_is_for(run: Run, rendered: Path) -> None:
    options = ("--sglang", "0.5.23", "--profile", "simulator")
    result = run("render", "--check", rendered, *options)
    assert result.exit_code == 2 and "holds no folder for sglang 0.5.23 simulator" in result.stderr
    out = rendered / "0.5.23" / "simulator"
    assert f"render {' '.join(options)} --out {out}\n" in result.stderr


def test_a_release_that_is_not_to_be_had(run: Run, rendered: Path) -> None:
    shutil.copytree(rendered / "0.5.19" / "card", rendered / "0.4.0.dev7" / "card")
    (rendered / "0.5.19" / "card" / "hooks.py").unlink()
    result = run("render", "--check", rendered, "--offline")
    assert result.exit_code == 2
    assert f"not compared: {rendered / '0.4.0.dev7' / 'card'}: " in result.stderr
    # What could be compared was.
    assert again(rendered, "0.5.19", "card") in result.stderr
    assert said(rendered, "0.5.23", "card") in result.stdout


def test_one_module_is_compared_in_each(run: Run, rendered: Path) -> None:
    (rendered / "0.5.19" / "card" / "platform.py").write_text("stale")
    assert run("render", "hooks", "--check", rendered).exit_code == 0
    result = run("render", "platform", "--check", rendered, "--profile", "card")
    place = rendered / "0.5.19" / "card"
    how = f"render platform --sglang 0.5.19 --profile card --out {place}"
    assert result.exit_code == 1
    assert f"{place / 'platform.py'} is stale; try: kunlun-adapt {how}\n" in result.stderr


def test_the_folders_that_come_along_are_such(run: Run) -> None:
    result = run("render", "--check", ROOT / "rendered", "--sglang", "0.5.23")
    places = [("0.5.23", "card"), ("0.5.23", "simulator")]
    spoken = f"{result.stdout}{result.stderr}"
    assert all(str(ROOT / "rendered" / r / p) in spoken for r, p in places)
    assert f"--out {ROOT / 'rendered'}\n" not in spoken

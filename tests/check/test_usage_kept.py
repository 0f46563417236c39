"""What is said of upstream's uses is found once for each state of the documents, then kept."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from kunlun_adapt.check import usage
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Resolver, open_release
from kunlun_adapt.upstream.answers import LATEST, USAGE, Answers
from tests.check.bench import MAP, Bench
from tests.check.examples_usage import CALL, ENGINE, used
from tests.check.said import codes

OTHER = CALL.replace("8)", "8, 2)")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("KUNLUN_ADAPT_CACHE", str(folder))
    return folder


def refuse(*_: object) -> tuple[Finding, ...]:
    raise AssertionError("found again, although nothing changed")


def wheel(bench: Bench) -> Resolver:
    """The release of the bench as a wheel, of which answers are kept."""
    bench.resolver()
    path = bench.root / "sglang-0.5.19-py3-none-any.whl"
    if not path.exists():
        with zipfile.ZipFile(path, "w") as archive:
            for name in sorted(bench.upstream):
                archive.write(bench.root / "release" / name, name)
            archive.writestr("sglang-0.5.19.dist-info/METADATA", "Version: 0.5.19\n")
    return Resolver(open_release(str(path)))


def test_a_second_run_replays_the_first(
    bench: Bench, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = used(bench).edit(ENGINE, CALL, OTHER)
    plain = changed.findings()
    assert codes(plain) == ["KA115"]
    assert changed.findings(facts=wheel(changed)) == plain
    monkeypatch.setattr(usage, "found", refuse)
    assert changed.findings(facts=wheel(changed)) == plain


def test_another_state_of_the_documents_is_another_answer(bench: Bench, cache: Path) -> None:
    changed = used(bench).edit(ENGINE, CALL, OTHER)
    refused = changed.findings(facts=wheel(changed))
    takes = changed.edit(MAP, "$any, nnodes: 1}", "$any, nnodes: 2}")
    assert takes.findings(facts=wheel(takes)) != refused
    assert changed.findings(facts=wheel(changed)) == refused


def test_of_many_states_the_latest_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "wheel-code.answers"
    for number in range(LATEST + 3):
        answers = Answers(path)
        assert answers.recall(USAGE, f"state {number}", lambda: {"findings": []})
        answers.keep()
    held = Answers(path)
    kept = [held.recall(USAGE, f"state {n}", lambda: None) for n in range(LATEST + 3)]
    assert [answer is None for answer in kept] == [True] * 3 + [False] * LATEST

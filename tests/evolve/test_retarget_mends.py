"""The edit that a finding carries is what its suggestion tells, and it mends the finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.check.wording import flow
from kunlun_adapt.diagnostics import EntryChange, Finding, ItemChange
from kunlun_adapt.evolve.retarget.yaml_text import Draft
from tests.check.all_examples import EXAMPLES
from tests.check.bench import Bench


def made(bench: Bench, finding: Finding) -> Bench:
    """Make the changes of a finding in the workspace's files."""
    assert finding.mend is not None
    files = dict(bench.workspace)
    for change in finding.mend.changes:
        draft = Draft(files[change.file])
        if isinstance(change, EntryChange):
            draft.set_values(change.document, change.path, change.values)
        else:
            draft.add_item(change.document, change.path, change.item)
        draft.prove()
        files[change.file] = draft.text
    return Bench(bench.root, bench.upstream, files, bench.used)


def carrying(bench: Bench) -> list[Finding]:
    return [f for f in bench.findings() if f.mend is not None and f.mend.changes]


def in_examples() -> list[str]:
    return sorted(EXAMPLES)


@pytest.mark.parametrize("code", in_examples())
def test_what_the_suggestion_says_is_what_is_done(code: str, tmp_path: Path) -> None:
    bench = EXAMPLES[code].change(Bench(tmp_path))
    for finding in carrying(bench):
        mend = finding.mend
        assert mend is not None and mend.text == finding.suggestion
        for change in mend.changes:
            if isinstance(change, ItemChange):
                assert all(
                    flow(v) in mend.text or str(v) in mend.text for v in change.item.values()
                )
                continue
            for key, value in change.values.items():
                if value is not None and key in ("target", "method", "field", "call"):
                    assert str(value) in mend.text, (key, value, mend.text)
                if key == "ignores" and value:
                    assert all(str(name) in mend.text for name in value), mend.text


@pytest.mark.parametrize("code", in_examples())
def test_an_edit_that_asks_nothing_mends_its_finding(code: str, tmp_path: Path) -> None:
    bench = EXAMPLES[code].change(Bench(tmp_path))
    for finding in carrying(bench):
        assert finding.mend is not None
        if finding.mend.asks or finding.code != code:
            continue
        after = made(bench, finding).findings()
        same = [f for f in after if (f.code, f.binding, f.target) == (
            finding.code, finding.binding, finding.target)]  # fmt: skip
        assert same == [], finding.suggestion


def test_enough_codes_carry_an_edit(tmp_path: Path) -> None:
    codes = set()
    for code in in_examples():
        folder = tmp_path / code
        folder.mkdir()
        codes |= {f.code for f in carrying(EXAMPLES[code].change(Bench(folder)))}
    wanted = {"KA102", "KA105", "KA108", "KA109", "KA114", "KA201", "KA407"}
    assert wanted <= codes, wanted - codes

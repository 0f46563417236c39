"""Two branches that each lock something merge by lines, and what is merged still holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kunlun_adapt.check.usage import row_digest, usage_digest
from kunlun_adapt.evolve import lock_changes, lock_for, usage_for
from kunlun_adapt.upstream import Lock, LockError, parse_lock
from tests.check.bench import MAP, Bench
from tests.check.test_usage import context

CHOICES = "  - id: choices\n"
OTHER = """\
  - id: {id}
    why: a branch needs it
    type: set
    value: false
    at:
      - {{target: sglang.srt.utils.common.{name}}}
"""
FLAGS = "\nALPHA = True\nOMEGA = True\n"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).add("sglang/srt/utils/common.py", FLAGS)


def locked(bench: Bench, held: Lock | None = None) -> Lock:
    catalog, resolver = bench.catalog(), bench.resolver()
    fresh, missing = lock_for(catalog, resolver)
    assert not missing
    merged = (held or Lock()).replaced(fresh)
    return merged.with_usage(resolver.version, usage_for(catalog, resolver, merged, None))


def adds(bench: Bench, name: str) -> Bench:
    return bench.edit(MAP, CHOICES, OTHER.format(id=name.lower(), name=name) + CHOICES)


def merged(folder: Path, base: Lock, ours: Lock, theirs: Lock, *how: str) -> tuple[int, str]:
    files = []
    for name, lock in (("ours", ours), ("base", base), ("theirs", theirs)):
        files.append(folder / name)
        files[-1].write_text(lock.text(), encoding="utf-8")
    done = subprocess.run(
        ["git", "merge-file", "-p", *how, *map(str, files)], capture_output=True, text=True
    )
    return done.returncode, done.stdout


def test_two_branches_that_each_add_a_binding(bench: Bench, tmp_path: Path) -> None:
    base = locked(bench)
    one, other = locked(adds(bench, "ALPHA")), locked(adds(bench, "OMEGA"))
    conflicts, text = merged(tmp_path, base, one, other)
    assert conflicts == 0, text
    both = adds(adds(bench, "ALPHA"), "OMEGA")
    whole = locked(both)
    assert parse_lock(text).text() == text == whole.text()
    # Nothing has to be locked again: what is merged is what the merged documents rest on.
    assert row_digest(parse_lock(text).usage["0.5.19"]) == usage_digest(context(both, whole))


def test_a_binding_and_a_release(bench: Bench, tmp_path: Path) -> None:
    base = locked(bench)
    one = locked(adds(bench, "ALPHA"))
    other = locked(bench.version("0.5.20"), base)
    conflicts, text = merged(tmp_path, base, one, other)
    assert conflicts == 0, text
    both = parse_lock(text)
    assert both.text() == text and both.releases == ("0.5.19", "0.5.20")
    assert both.symbol("0.5.19", "sglang.srt.utils.common.ALPHA") is not None
    # The new release does not know the new binding yet, and the check says so.
    changes = lock_changes(both, locked(adds(bench, "ALPHA").version("0.5.20"), both))
    assert "0.5.20: sglang.srt.utils.common.ALPHA is not locked" in changes
    assert "0.5.20: alpha: its uses are not locked" in changes


def test_two_releases_merge_by_union(bench: Bench, tmp_path: Path) -> None:
    base = locked(bench)
    one, other = (locked(bench.version(v), base) for v in ("0.5.20", "0.5.21"))
    conflicts, text = merged(tmp_path, base, one, other, "--union")
    assert conflicts == 0
    assert parse_lock(text).releases == ("0.5.19", "0.5.20", "0.5.21")


def test_a_union_of_what_both_changed_is_refused(bench: Bench, tmp_path: Path) -> None:
    base = locked(bench)
    one, other = (
        locked(bench.edit("sglang/srt/utils/common.py", "return gpu_id", f"return {n}"))
        for n in (1, 2)
    )
    conflicts, text = merged(tmp_path, base, one, other)
    assert conflicts > 0
    _, text = merged(tmp_path, base, one, other, "--union")
    with pytest.raises(LockError, match="locked twice"):
        parse_lock(text)


def test_what_differs_is_said_in_words(bench: Bench) -> None:
    base = locked(bench)
    changed = bench.edit("sglang/srt/utils/common.py", "tp_size, nnodes=1", "tp_size")
    said = lock_changes(base, locked(changed))
    assert (
        "0.5.19: sglang.srt.utils.common.set_affinity: signature (gpu_id, tp_size), "
        "was (gpu_id, tp_size, nnodes=1)" in said[0]
    )
    assert "0.5.19: sglang/srt/utils/common.py changed" in said
    assert lock_changes(base, base) == []
    assert lock_changes(base, base.without("0.5.19")) == ["0.5.19: is no longer locked"]
    assert "0.5.19: is not locked" in lock_changes(Lock(), base)[0]

# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA102's edit: for which releases it is, what it says of new parameters, and that it can be pasted."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import ACTIVATION, AFFINITY, COMMON
from tests.check.said import codes, only
from tests.check.test_claims import locked

OLD = "sglang.srt.server.args.set_affinity"
NEW = "sglang.srt.utils.common.set_affinity"
ENTRY = f"- {{{AFFINITY}, args: {{gpu_id: gpu_id}}, ignores: {{tp_size: $any, nnodes: 1}}}}"
RANGES = {"KA006", "KA007", "KA008"}


def moved(bench: Bench, own: str = ">=0.5.18", old: str = OLD) -> Bench:
    """The bench with a hook on the path at which the function was before."""
    return bench.edit(MAP, AFFINITY, f'sglang: "{own}", target: {old}')


def knows(bench: Bench, *releases: str) -> Lock:
    """A lock in which each of the releases has the old path, and 0.5.17 to 0.5.23 are locked."""
    lock = locked(bench, "0.5.17", "0.5.18", "0.5.21", "0.5.22", "0.5.23")
    entries = dict(lock.entries)
    for release in releases:
        entries[release, OLD] = replace(entries[release, NEW], target=OLD)
    return Lock(entries, lock.hashes)


def said(bench: Bench, lock: Lock | None = None, *, beyond: bool = False) -> Finding:
    findings = bench.findings(lock=lock, beyond=beyond)
    return only([f for f in findings if f.code == "KA102"], "KA102")


def parts(found: Finding) -> tuple[str, str]:
    """The entry and what the comment says."""
    entry, _, comment = (found.suggestion or "").partition("  # ")
    return entry, comment


@pytest.mark.parametrize(
    ("release", "own", "holding", "range_", "comment"),
    [
        ("0.5.22", ">=0.5.18", ["0.5.19", "0.5.21"], ">=0.5.22",
         'the entry there: `sglang: ">=0.5.18,<0.5.22"`; or from an earlier release on, after 0.5.21'),
        ("0.5.19", ">=0.5.18", ["0.5.22"], ">=0.5.18,<0.5.22", 'the entry there: `sglang: ">=0.5.22"`'),
        ("0.5.20", ">=0.5.18", ["0.5.19", "0.5.22"], ">=0.5.20,<0.5.22",
         'the entry there: `sglang: ">=0.5.18,<0.5.20"` and `sglang: ">=0.5.22"`; '
         "or from an earlier release on, after 0.5.19"),
        ("0.5.22", ">=0.5.18,<0.5.24", ["0.5.19"], ">=0.5.22,<0.5.24",
         'the entry there: `sglang: ">=0.5.18,<0.5.22"`; or from an earlier release on, after 0.5.19'),
        # What the lock never had may have moved at any time, or never was.
        ("0.5.20", ">=0.5.18", [], ">=0.5.20",
         'the entry there: `sglang: ">=0.5.18,<0.5.20"`; or from another release on: 0.5.20 was looked at'),
        ("0.5.18", ">=0.5.18", [], ">=0.5.18",
         "in place of the entry there; or from another release on: 0.5.18 was looked at"),
    ],
)  # fmt: skip
def test_the_range_follows_what_the_lock_has(
    bench: Bench, release: str, own: str, holding: list[str], range_: str, comment: str
) -> None:
    changed = moved(bench, own).version(release)
    lock = knows(bench, *holding)
    entry, notes = parts(said(changed, lock))
    assert entry.startswith(f'- {{sglang: "{range_}", target: {NEW}, ')
    assert notes == comment
    # The pasted entry meets no other, and leaves no gap.
    old = ENTRY.replace(AFFINITY, f'sglang: "{own}", target: {OLD}')
    kept = notes.split("`sglang: ")[1:]
    entries = [old.replace(f'"{own}"', text.split("`")[0]) for text in kept]
    pasted = changed.edit(MAP, old, "\n      ".join([*entries, entry]))
    for other in ("0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23"):
        there = pasted.edit("sglang/version.py", release, other)
        assert not RANGES & set(codes(there.findings(lock=lock))), other
    assert not {"KA101", "KA102", "KA105"} & set(codes(pasted.findings(lock=lock)))


@pytest.mark.parametrize("lock", [False, True])
def test_a_slip_is_mended_for_the_whole_range(bench: Bench, lock: bool) -> None:
    changed = moved(bench, old="sglang.srt.util.common.set_affinity")
    entry, notes = parts(said(changed, knows(bench) if lock else None))
    assert entry == ENTRY and notes == "in place of the entry there"
    pasted = changed.edit(MAP, ENTRY.replace("utils", "util"), entry)
    assert codes(pasted.findings()) == []
    whole = bench.edit(MAP, "{target: sglang.srt.utils.common.CHOICES}",
                       "{target: sglang.srt.util.common.CHOICES}")  # fmt: skip
    assert parts(said(whole))[0] == "- {target: sglang.srt.utils.common.CHOICES}"


def test_a_path_that_the_lock_has_was_no_slip(bench: Bench) -> None:
    lock = knows(bench)
    near = "sglang.srt.util.common.set_affinity"
    entries = {**lock.entries, ("0.5.18", near): replace(lock.entries["0.5.18", NEW], target=near)}
    found = said(moved(bench, old=near), Lock(entries, lock.hashes))
    assert parts(found)[0].startswith(f'- {{sglang: ">=0.5.19", target: {NEW}')


def test_beyond_the_claims_the_entry_there_stays(bench: Bench) -> None:
    changed = moved(bench, ">=0.5.18,<0.5.20").version("0.5.23")
    entry, notes = parts(said(changed, knows(bench, "0.5.19"), beyond=True))
    assert entry.startswith(f'- {{sglang: ">=0.5.23", target: {NEW}, ')
    assert notes == "or from an earlier release on, after 0.5.19"


def test_a_release_between_the_other_entries(bench: Bench) -> None:
    later = f'- {{sglang: ">=0.5.21", target: {NEW}, args: {{gpu_id: gpu_id}}, ignores: {{tp_size: $any, nnodes: 1}}}}'
    changed = moved(bench, ">=0.5.18,<0.5.21").edit(MAP, "    served", f"      {later}\n    served")
    entry, _ = parts(said(changed, knows(bench, "0.5.18")))
    assert entry.startswith('- {sglang: ">=0.5.19,<0.5.21", target: ')


def test_a_spelling_of_the_interface_meets_no_other(bench: Bench) -> None:
    old = "    - {call: sglang.srt.managers.scheduler.run_scheduler_process}\n"
    lines = (
        '    - {sglang: "<0.5.21", call: sglang.srt.scheduler.run_scheduler_process}\n'
        '    - {sglang: ">=0.5.21", call: sglang.srt.managers.scheduler.run_scheduler_process}\n'
    )
    changed = bench.edit(MAP, old, lines)
    entry, _ = parts(said(changed))
    assert entry == (
        '- {sglang: ">=0.5.19,<0.5.21", call: sglang.srt.managers.scheduler.run_scheduler_process}'
    )


@pytest.mark.parametrize(
    ("signature", "ignores", "notes"),
    [
        ("gpu_id, tp_size, nnodes=1", {"tp_size": "$any", "nnodes": 1}, ""),
        ("gpu_id, tp_size, nnodes=1, strict=False", {"tp_size": "$any", "nnodes": 1, "strict": False}, ""),
        ("gpu_id, tp_size", {"tp_size": "$any"}, ""),
        ("gpu_id", None, ""),
        ("gpu_id, node, tp_size", {"tp_size": "$any"}, "map node in `args` or ignore it; "),
        ("gpu_id, node, rank", None, "map node and rank in `args` or ignore them; "),
        ("device, tp_size", {"tp_size": "$any"}, "map device in `args` or ignore it; find what gpu_id reads there; "),
    ],
)  # fmt: skip
def test_new_parameters_are_in_the_edit(
    bench: Bench, signature: str, ignores: object, notes: str
) -> None:
    changed = moved(bench).edit(COMMON, "gpu_id, tp_size, nnodes=1", signature)
    entry, comment = parts(said(changed.edit(COMMON, "return gpu_id", "return 1")))
    (read,) = yaml.safe_load(entry)
    assert read["args"] == {"gpu_id": "gpu_id"} and read.get("ignores") == ignores
    assert comment.removeprefix(notes).startswith('the entry there: `sglang: ">=0.5.18,<0.5.19"`')


def test_the_edit_needs_no_second_one(bench: Bench) -> None:
    changed = moved(bench, old=OLD.replace("server.args", "util.common"))
    changed = changed.edit(COMMON, "nnodes=1)", "nnodes=1, strict=False)")
    entry, _ = parts(said(changed))
    pasted = changed.edit(MAP, ENTRY.replace("utils", "util"), entry)
    assert codes(pasted.findings()) == []


def test_a_list_of_what_is_ignored_stays_one_where_it_can(bench: Bench) -> None:
    changed = moved(bench).edit(
        MAP, "ignores: {tp_size: $any, nnodes: 1}", "ignores: [tp_size, nnodes]"
    )
    assert "ignores: [tp_size, nnodes]}" in parts(said(changed))[0]
    fewer = changed.edit(COMMON, ", nnodes=1)", ")")
    assert "ignores: [tp_size]}" in parts(said(fewer))[0]
    more = changed.edit(COMMON, "nnodes=1)", "nnodes=1, strict=False)")
    assert "ignores: {tp_size: $any, nnodes: $any, strict: false}}" in parts(said(more))[0]


def test_an_operator_has_the_parameters_of_its_forward(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "layers.activation.SiluAndMul", "layers.gone.SiluAndMul")
    changed = changed.edit("sglang/srt/layers/activation.py", "def forward_native(self, x)",
                           "def forward_native(self, x, limit=None)")  # fmt: skip
    entry, _ = parts(said(changed))
    assert entry.endswith("style: oot_forward, args: {x: x}, ignores: {limit: null}}")
    pasted = changed.edit(
        RECIPE,
        "  - target: sglang.srt.layers.gone.SiluAndMul\n    style: oot_forward\n    args: {x: x}\n",
        f"  {entry}\n",
    )
    assert codes(pasted.version("0.5.23").findings()) == []


def test_an_operator_on_a_function(bench: Bench) -> None:
    changed = bench.edit(
        RECIPE, "kernels.ops.activation.silu_and_mul", "kernels.ops.gone.silu_and_mul"
    )
    changed = changed.edit(
        ACTIVATION, "silu_and_mul(input, out=None)", "silu_and_mul(input, out=None, limit=None)"
    )
    assert "args: {x: input, out: out}, ignores: {limit: null}}" in parts(said(changed))[0]

"""The ranges of suggestions: by what is known of releases, and what they say when pasted."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.proposed import Proposed, around, possible
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import in_range
from kunlun_adapt.upstream import Lock, LockFacts
from tests.check.bench import MAP, Bench
from tests.check.examples import AFFINITY, lock_of
from tests.check.examples_combinations import CONFLICT
from tests.check.examples_combinations import EXAMPLES as COMBINATIONS
from tests.check.examples_usage import CALL, ENGINE, used
from tests.check.said import codes, only
from tests.check.test_claims import locked

RANGES = {"KA006", "KA007", "KA008"}
EXCLUDED = re.compile(r"`(excluded: \[\{sglang: \"(.*?)\", why: \"…\"\}\])`")


def context(bench: Bench, release: str, *releases: str, claim: str | None = None) -> Context:
    """A check of the bench's documents in a release, beside some that are locked."""
    catalog = bench.catalog()
    document = catalog.platform_map
    assert document is not None
    if claim is not None:
        document.model.sglang = claim
    one = lock_of(bench)
    lock = Lock({}, dict.fromkeys(releases, one.hashes["0.5.19"])) if releases else None
    return Context(catalog, document, LockFacts(lock or Lock(), release), (), lock)


@pytest.mark.parametrize(
    ("release", "releases", "taken", "range_"),
    [
        ("0.5.19", [], [], ">=0.5.19"),
        ("0.5.23", ["0.5.17", "0.5.19", "0.5.23"], [], ">=0.5.23"),
        ("0.5.19", ["0.5.17", "0.5.19", "0.5.23"], [], ">=0.5.19,<0.5.23"),
        # A post-release of the oldest is left out with it.
        ("0.5.17", ["0.5.17", "0.5.19", "0.5.23"], [], "<0.5.19"),
        ("0.5.19", ["0.5.17", "0.5.19.post1"], [], ">=0.5.19,<0.5.19.post1"),
        # Before and after the claims, which begin with 0.5.17 and end before 0.5.24.
        ("0.5.11", ["0.5.19"], [], "<0.5.17"),
        ("0.5.30", ["0.5.19"], [], ">=0.5.30"),
        ("0.6.0", [], [], ">=0.6.0"),
        # What is taken stays what it is.
        ("0.5.19", ["0.5.17", "0.5.23"], [">=0.5.21"], ">=0.5.19,<0.5.21"),
        ("0.5.19", ["0.5.17", "0.5.23"], [">0.5.20"], ">=0.5.19,<0.5.21"),
        ("0.5.19", [], ["<=0.5.18"], ">=0.5.19"),
        ("0.5.23", [], [">=0.5.30"], "<0.5.30"),
        # A release that was built by hand has a version that no range may name.
        ("0.5.20.dev3+g1234567", ["0.5.19"], [], ">=0.5.20.dev3"),
        ("0.5.19+cu129", ["0.5.18"], [], ">=0.5.19"),
        # What a commit after a release has is not what that release has.
        ("0.5.19+30.g1f2e3d4a5", ["0.5.19"], [], ">=0.5.20"),
        ("0.5.19+30.g1f2e3d4a5", ["0.5.19", "0.5.22"], [], ">=0.5.20,<0.5.22"),
        ("0.5.19.post1+3.g1f2e3d4a5", ["0.5.19"], ["<0.5.20"], ">=0.5.20"),
        ("0.5.18", ["0.5.17", "0.5.18+30.g1f2e3d4a5"], [], ">=0.5.18,<0.5.19"),
    ],
)
def test_the_range_around_a_release(
    bench: Bench, release: str, releases: list[str], taken: list[str], range_: str
) -> None:
    assert around(context(bench, release, *releases), taken).text == range_


@pytest.mark.parametrize(
    ("release", "releases", "taken", "range_"),
    [
        ("0.5.19", [], ["<0.5.18", ">=0.5.20"], ">=0.5.18,<0.5.20"),
        ("0.5.19", [], ["<=0.5.17", ">=0.5.20"], ">=0.5.17.post1,<0.5.20"),
        ("0.5.19", [], ["<0.5.18"], ">=0.5.18"),
        ("0.5.19", [], ["<0.5.19"], ">=0.5.19"),
        ("0.5.19", ["0.5.18", "0.5.22"], ["<0.5.18"], ">=0.5.19,<0.5.22"),
    ],
)
def test_a_gap_is_filled(
    bench: Bench, release: str, releases: list[str], taken: list[str], range_: str
) -> None:
    assert around(context(bench, release, *releases), taken, fill=True).text == range_


VERSIONS = st.builds(
    lambda micro, post: f"0.5.{micro}" + (f".post{post}" if post else ""),
    st.integers(9, 26),
    st.integers(0, 2),
)
OPERATORS = st.sampled_from(["<", "<=", ">", ">="])


def test_every_range_holds_for_its_release_and_for_no_other_that_is_known(bench: Bench) -> None:
    made = context(bench, "0.5.19", "0.5.19")

    @given(
        VERSIONS,
        st.lists(VERSIONS, max_size=4),
        st.lists(st.tuples(OPERATORS, VERSIONS), max_size=2),
        st.booleans(),
    )
    def check(release: str, known: list[str], bounds: list[tuple[str, str]], fill: bool) -> None:
        taken = [f"{operator}{version}" for operator, version in bounds]
        taken = [text for text in taken if not in_range(text, release)]
        here = Context(made.catalog, made.document, LockFacts(Lock(), release), ())
        found = around(here, taken, known=known, fill=fill).text
        assert in_range(found, release) and "==" not in found
        assert not any(in_range(found, other) for other in known if other != release)
        for other in possible(here, *taken):
            assert not (in_range(found, other) and any(in_range(t, other) for t in taken)), other

    check()


@pytest.mark.parametrize(
    ("low", "high", "own", "within", "rest"),
    [
        ("0.5.19", None, ">=0", ">=0.5.19", ["<0.5.19"]),
        ("0.5.19", None, ">=0.5.17,<0.5.24", ">=0.5.19,<0.5.24", [">=0.5.17,<0.5.19"]),
        ("0.5.19", None, ">=0.5.19", ">=0.5.19", []),
        (None, "0.5.19", ">=0.5.17", ">=0.5.17,<0.5.19", [">=0.5.19"]),
        ("0.5.19", "0.5.21", "<=0.5.23", ">=0.5.19,<0.5.21", ["<0.5.19", ">=0.5.21,<=0.5.23"]),
        (
            "0.5.19",
            None,
            ">0.5.18,!=0.5.20",
            ">=0.5.19,!=0.5.20",
            [],
        ),  # `>` is above its post-releases too
    ],
)
def test_a_part_of_a_range_and_what_is_left_of_it(
    bench: Bench, low: str | None, high: str | None, own: str, within: str, rest: list[str]
) -> None:
    part = Proposed(Version(low) if low else None, Version(high) if high else None)
    assert part.within(own) == within
    assert part.rest_of(own, possible(context(bench, "0.5.19"))) == rest


def heard(bench: Bench, lock: Lock | None, code: str) -> Finding:
    return only([f for f in bench.findings(lock=lock) if f.code == code], code)


def excluded(bench: Bench, found: Finding, before: str) -> Bench:
    """Apply the edit: the suggested line in front of another of the hook."""
    match = EXCLUDED.search(found.suggestion or "")
    assert match is not None, found.suggestion
    line = match[1].replace("…", "nothing calls it there")
    return bench.edit(MAP, before, f"    {line}\n{before}")


def vacuous(bench: Bench) -> Bench:
    return used(bench).edit(ENGINE, CALL, "pass")


def gap(bench: Bench) -> Bench:
    changed = AFFINITY.replace("set_affinity", "pin").replace(">=0.5.18", ">=0.5.23")
    return bench.edit(MAP, AFFINITY, changed)


AT = "    at:\n      - {sglang"
CASES: dict[str, tuple[Callable[[Bench], Bench], str]] = {
    "KA008": (gap, AT),
    "KA119": (vacuous, AT),
    "KA406": (COMBINATIONS["KA406"].change, "    value: [kunlun]\n"),
}


@pytest.mark.parametrize("code", sorted(CASES))
@pytest.mark.parametrize("release", ["0.5.18", "0.5.19", "0.5.19.post1", "0.5.22"])
@pytest.mark.parametrize("others", [(), ("0.5.18",), ("0.5.18", "0.5.23")])
def test_the_exclusion_mends_what_it_is_suggested_for(
    bench: Bench, code: str, release: str, others: tuple[str, ...]
) -> None:
    change, before = CASES[code]
    changed = change(bench).version(release)
    lock = locked(bench, *others) if others else None
    pasted = excluded(changed, heard(changed, lock, code), before)
    report = pasted.report(lock=lock)
    assert not {code, *RANGES} & set(codes(report.findings))
    assert report.excluded == 1
    # What is known of other releases stays as it was.
    for other in {*others, "0.5.17"} - {release}:
        there = {f.code for f in change(bench).version(other).findings(lock=lock)}
        here = {
            f.code for f in pasted.edit("sglang/version.py", release, other).findings(lock=lock)
        }
        assert here & RANGES <= there & RANGES


def test_a_second_exclusion_goes_to_the_first(bench: Bench) -> None:
    reason = '    excluded: [{sglang: "<0.5.18", why: it came later}]\n'
    changed = vacuous(bench).edit(MAP, AT, reason + AT)
    found = heard(changed, None, "KA119")
    entry = '{sglang: ">=0.5.19", why: "…"}'
    assert (found.suggestion or "").endswith(f"leave it out: add {entry} to its `excluded`")


def test_a_range_for_another_place_stays_that_place(bench: Bench) -> None:
    two = vacuous(bench).edit(MAP, AFFINITY, AFFINITY.replace(">=0.5.18", ">=0.5.18,<0.5.21"))
    entry = '      - {sglang: ">=0.5.21", target: sglang.srt.utils.common.pin}\n    served'
    two = two.edit(MAP, "    served", entry)
    assert 'sglang: ">=0.5.19,<0.5.21"' in (heard(two, None, "KA119").suggestion or "")


@pytest.mark.parametrize(
    ("release", "spelled", "others"),
    [
        ("0.5.19", '"<0.5.19"', ()),
        ("0.5.19", '">=0.5.21"', ("0.5.23",)),
        ("0.5.20", '"<0.5.18"', ("0.5.19",)),
    ],
)
@pytest.mark.parametrize("which", ["spelling", "default"])
def test_a_further_spelling_meets_no_other(
    bench: Bench, release: str, spelled: str, others: tuple[str, ...], which: str
) -> None:
    old = "    - {method: get_graph_runner_cls}\n"
    new = f"    - {{sglang: {spelled}, method: get_graph_runner_cls}}\n"
    changed = bench.edit(MAP, old, new).version(release)
    lock = locked(bench, *others) if others else None
    found = heard(changed, lock, "KA202")
    spelling, _, default = (found.suggestion or "").partition(", or left_at_default: add ")
    if which == "spelling":
        spelling = spelling.removeprefix("interface.graph_runner: add ")
        pasted = changed.edit(MAP, new, f"{new}    - {spelling}\n")
    else:
        default = default.replace("…", "upstream picks one")
        pasted = changed.edit(MAP, "left_at_default:\n", f"left_at_default:\n  - {default}\n")
    assert not {"KA202", "KA206", *RANGES} & set(codes(pasted.findings(lock=lock)))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("silu_and_mul", "each of its `binds`"),
        ("silu_and_mul/SiluAndMul", '`excluded: [{sglang: ">=0.5.19", why: "…"}]`'),
        ("kv_pool.mha", "give the map no kv_pool.mha"),
        ("factory/kv_pool.mha", "give the map no factory/kv_pool.mha"),
    ],
)
def test_only_what_has_exclusions_is_to_be_excluded(bench: Bench, name: str, says: str) -> None:
    row = CONFLICT.replace("[affinity, choices]", f"[affinity, {name}]")
    found = heard(bench.edit(MAP, "hooks:\n", f"{row}hooks:\n"), None, "KA406")
    assert says in (found.suggestion or "")


def test_an_argument_has_a_range_of_its_own(bench: Bench) -> None:
    row = CONFLICT.replace("[affinity, choices]", "[affinity, page_size]")
    argument = "server_args:\n  - {arg: page_size, default: 128, why: pages of the card}\n"
    found = heard(bench.edit(MAP, "hooks:\n", f"{row}{argument}hooks:\n"), None, "KA406")
    assert "a `sglang` that does not hold for >=0.5.19" in (found.suggestion or "")

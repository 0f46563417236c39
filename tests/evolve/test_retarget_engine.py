"""`retarget` on small releases, one change each: what is carried, proposed and left."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.diagnostics import AdaptError, Severity
from kunlun_adapt.evolve.retarget import Account, Job, Retargeted, read_texts, retarget
from kunlun_adapt.evolve.retarget.parts import OF_THE_LOCK
from kunlun_adapt.upstream import Lock, open_release
from kunlun_adapt.upstream.following import FollowingResolver
from tests.check.bench import MAP, RECIPE, UPSTREAM, WORKSPACE

COMMON = "sglang/srt/utils/common.py"
INTERFACE = "sglang/srt/platforms/interface.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"
RUNNER = "sglang/srt/runner.py"
ACTIVATION = "sglang/kernels/ops/activation.py"
AFFINITY = '      - {sglang: ">=0.5.18", target: sglang.srt.utils.common.set_affinity'
DOOR = "sglang/srt/plugins"
CLOSED = AFFINITY.replace('">=0.5.18"', '">=0.5.19,<0.5.20"')

Edits = Mapping[str, tuple[str, str]]
Carry = Callable[..., Retargeted]


def edited(files: Mapping[str, str], edits: Edits) -> dict[str, str]:
    made = {name: textwrap.dedent(text) for name, text in files.items()}
    for name, (old, new) in edits.items():
        assert made.get(name, "").count(old) == 1 or not old, (name, old)
        made[name] = made[name].replace(old, new) if old else new
    return made


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def carry(tmp_path: Path) -> Carry:
    """Carry a workspace, with some edits, from 0.5.19 through what each release changed."""

    def run(
        *changes: Edits,
        documents: Edits | None = None,
        proposals: bool = False,
        claim: bool = False,
        known: int = 1,
        drop: str = "nothing",
        start: Edits | None = None,
    ) -> Retargeted:
        claimed = {MAP: ('sglang: ">=0.5.17,<0.5.24"', 'sglang: ">=0.5.19,<0.5.20"')}
        files = edited(edited(WORKSPACE, claimed), documents or {})
        root = written(tmp_path / "workspace", files)
        opened, upstream = [], edited(UPSTREAM, {})
        for number, edits in enumerate((start or {}, *changes)):
            upstream = edited(upstream, edits)
            if number:
                upstream = {n: t for n, t in upstream.items() if not n.startswith(drop)}
            upstream["sglang/version.py"] = f'__version__ = "0.5.{19 + number}"\n'
            folder = written(tmp_path / str(number), upstream)
            opened.append(FollowingResolver(open_release(str(folder))))
        done = retarget(
            Job(
                root=root,
                texts=read_texts(root),
                lock=Lock(),
                known=tuple(opened[:known]),
                between=tuple(opened[known:-1]),
                new=opened[-1],
                choose=lambda account: proposals,
                claim=claim,
            )
        )
        assert unlisted(done) == set()
        return done

    return run


def unlisted(done: Retargeted) -> set[str]:
    """Bindings with a finding in the new release that are in no list of what was found."""
    said = {
        f.binding
        for report in done.before
        for f in report.findings
        if f.binding and f.code not in OF_THE_LOCK and f.severity is not Severity.INFO
    }
    listed = {a.binding for a in done.accounts}
    # A key of the interface goes by the member that is spelled so.
    return {
        b
        for b in said
        if not {b, b.replace("factory/", "interface."), b.replace("method/", "interface.methods.")}
        & listed
    }


def of(done: Retargeted, binding: str) -> Account:
    (account,) = [a for a in done.accounts if a.binding == binding]
    return account


def line(done: Retargeted, start: str) -> list[str]:
    return [row[1:] for row in done.patch.splitlines() if row.startswith(start)]


def test_nothing_changed(carry: Carry) -> None:
    done = carry({})
    assert done.counts["left"] == done.counts["proposed"] == 0
    assert done.claim == (">=0.5.19,<0.5.20", ">=0.5.19,<0.5.21")
    assert line(done, "+s") == ['sglang: ">=0.5.19,<0.5.21"']


def test_what_holds_throughout_gets_a_longer_range(carry: Carry) -> None:
    done = carry({}, {}, documents={MAP: (AFFINITY, CLOSED)})
    account = of(done, "affinity")
    assert (account.outcome, account.range, account.plain) == (
        "carried", ">=0.5.19,<0.5.22", True,
    )  # fmt: skip
    assert not [r for r in done.after if r.count(Severity.ERROR)]


def test_what_does_not_hold_on_the_way_gets_a_second_range(carry: Carry) -> None:
    body = "def set_affinity(gpu_id, tp_size, nnodes=1):\n    return gpu_id\n"
    done = carry({COMMON: (body, "")}, {COMMON: ("ENABLED", f"{body}ENABLED")},
                 documents={MAP: (AFFINITY, CLOSED)})  # fmt: skip
    account = of(done, "affinity")
    assert account.outcome == "proposed"  # a release in between is left without an entry
    assert account.range == ">=0.5.21,<0.5.22"
    assert any("no entry holds for sglang 0.5.20" in said for said in account.review)


def test_a_symbol_that_is_gone_is_left_out_from_there_on(carry: Carry) -> None:
    gone = {ACTIVATION: ("def silu_and_mul(input, out=None):\n    return input\n", "")}
    export = {"sglang/kernels/ops/__init__.py": ("from", "# from")}
    done = carry({**gone, **export}, {}, proposals=True)
    account = of(done, "silu_and_mul/silu_and_mul")
    assert account.outcome == "proposed" and account.codes == ("KA101",)
    assert account.added["sglang"] == ">=0.5.20"
    assert not [r for r in done.after if r.count(Severity.ERROR)]
    assert line(done, "+ ") == [
        '    excluded: [{sglang: ">=0.5.20", why: "upstream has no '
        'sglang.kernels.ops.activation.silu_and_mul from there on"}]'
    ]


def test_an_entry_reaches_up_to_where_it_is_left_out(carry: Carry) -> None:
    """A closed range would leave the releases between without an entry and without a reason."""
    gone = {COMMON: ("def set_affinity", "def is_ok")}
    done = carry({}, {}, gone, documents={MAP: (AFFINITY, CLOSED)}, proposals=True)
    account = of(done, "affinity")
    assert account.outcome == "proposed" and account.added["sglang"] == ">=0.5.22"
    assert account.range == ">=0.5.19,<0.5.22" and not account.review
    assert '">=0.5.19,<0.5.22", target: sglang.srt.utils.common.set_affinity' in done.patch
    assert [r.count(Severity.ERROR) for r in done.after] == [0, 0, 0, 0]


def test_what_does_not_hold_before_it_is_left_out_is_named(carry: Carry) -> None:
    done = carry(
        {},
        {COMMON: ("nnodes=1)", "nnodes=1, strict=False)")},
        {COMMON: ("def set_affinity", "def is_ok")},
        documents={MAP: (AFFINITY, CLOSED)},
        proposals=True,
    )
    account = of(done, "affinity")
    assert account.added["sglang"] == ">=0.5.22" and account.range == ">=0.5.19,<0.5.21"
    assert account.review == ("no entry holds for sglang 0.5.21",)


def test_what_was_left_out_before_is_not_carried(carry: Carry) -> None:
    rest = ", args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}\n"
    out = '    excluded: [{sglang: ">=0.5.19,<0.5.20", why: it crashes there}]\n'
    done = carry({}, documents={MAP: (AFFINITY + rest, f"{CLOSED}{rest}{out}")})
    assert of(done, "affinity").outcome == "left"  # nothing calls it: validate says so too
    assert "affinity" not in done.patch


def test_an_entry_that_begins_after_the_claim_is_followed_from_there(carry: Carry) -> None:
    """A step to a release that was not claimed leaves such an entry behind."""
    body = "def set_affinity(gpu_id, tp_size, nnodes=1):\n    return gpu_id\n"
    rest = ", args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}"
    made = f"{CLOSED}{rest}".replace("19,<0.5.20", "20,<0.5.21").replace("utils.common", "cores")
    done = carry(
        {COMMON: (body, ""), "sglang/srt/cores.py": ("", body)},
        {},
        documents={MAP: (AFFINITY + rest, f"{CLOSED}{rest}\n{made}")},
    )
    account = of(done, "affinity")
    assert (account.outcome, account.range) == ("carried", ">=0.5.20,<0.5.22")
    assert line(done, "+ ") == [made.replace("<0.5.21", "<0.5.22")]


def test_an_edit_that_would_change_another_entry_is_left_and_the_rest_is_made(carry: Carry) -> None:
    """The range of one entry is an anchor that a row of the stack repeats."""
    text = WORKSPACE[MAP].replace('sglang: ">=0.5.17,<0.5.24"', 'sglang: ">=0.5.19,<0.5.20"')
    choices = "{target: sglang.srt.utils.common.CHOICES}"
    text = text.replace(AFFINITY, AFFINITY.replace('sglang: "', 'sglang: &held "'))
    text = text.replace(choices, choices.replace("{", '{sglang: ">=0.5.19,<0.5.20", '))
    text = text.replace('{sglang: ">=0", verified', "{sglang: *held, verified")
    done = carry({COMMON: ("nnodes=1)", "nnodes=1, strict=False)")}, documents={MAP: ("", text)})
    left, made = of(done, "affinity"), of(done, "choices")
    assert (left.outcome, left.taken) == ("left", False)
    assert left.review == (
        "taken back, since it leaves the text cannot be changed there without changing something "
        "else",
    )
    assert (made.outcome, made.range) == ("carried", ">=0.5.19,<0.5.21")
    assert "&held" not in "".join(line(done, "+") + line(done, "-"))


def test_a_new_parameter_that_nobody_passes(carry: Carry) -> None:
    done = carry({COMMON: ("nnodes=1)", "nnodes=1, strict=False)")})
    account = of(done, "affinity")
    assert account.outcome == "carried"
    assert account.values == {"ignores": {"tp_size": "$any", "nnodes": 1, "strict": False}}
    assert account.range == ">=0.5.20"
    assert line(done, "- ") == [
        AFFINITY + ", args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}"
    ]


def test_a_new_parameter_without_a_default_is_for_a_person(carry: Carry) -> None:
    done = carry({COMMON: ("tp_size, nnodes", "tp_size, stream, nnodes")}, proposals=True)
    account = of(done, "affinity")
    assert account.outcome == "left" and set(account.codes) == {"KA105"}
    assert "stream" in account.evidence
    assert line(done, "- ") == []


def test_a_parameter_that_goes_and_one_that_stays(carry: Carry) -> None:
    done = carry({COMMON: ("gpu_id, tp_size, nnodes=1", "gpu_id, nnodes=1")})
    account = of(done, "affinity")
    assert account.outcome == "carried"
    assert account.values == {"ignores": {"nnodes": 1}}


def test_parameters_that_come_one_by_one(carry: Carry) -> None:
    done = carry(
        {COMMON: ("nnodes=1)", "nnodes=1, strict=False)")},
        {COMMON: ("strict=False)", "strict=False, spread=0)")},
    )
    account = of(done, "affinity")
    assert account.outcome == "carried" and account.range == ">=0.5.21"
    assert account.between == (
        (">=0.5.20,<0.5.21", {"ignores": {"tp_size": "$any", "nnodes": 1, "strict": False}}),
    )
    assert [r.count(Severity.ERROR) for r in done.after] == [0, 0, 0]
    added = line(done, "+ ")
    assert ['">=0.5.18,<0.5.20"' in added[0], '">=0.5.20,<0.5.21"' in added[1]] == [True, True]
    assert '">=0.5.21"' in added[2]


def test_a_method_that_a_capability_replaces(carry: Carry) -> None:
    spelled = (
        '    - {sglang: "<0.5.18", method: support_cuda_graph}\n'
        '    - {sglang: ">=0.5.18", field: capabilities.graph_capture}\n'
    )
    done = carry({}, documents={MAP: (spelled, "    - {method: support_cuda_graph}\n")})
    account = of(done, "interface.capabilities.graph_capture")
    assert account.codes == ("KA201",) and account.outcome == "proposed"
    assert account.values == {
        "method": None, "argument": None, "field": "capabilities.graph_capture",
    }  # fmt: skip
    assert not account.added  # the documents say already what the capabilities are


LEFT = "left_at_default:\n"
TRITON = "    - {field: capabilities.supports_triton}\n"


def leaving_triton(member: str, text: str) -> str:
    """A map that claims 0.5.19 and 0.5.20, where the second has no such capability any more."""
    left = f'{LEFT}  - {{member: {member}, sglang: "{text}", why: the question is gone}}\n'
    ended = TRITON.replace("{", '{sglang: "<0.5.20", ')
    whole = WORKSPACE[MAP].replace(TRITON, ended).replace(LEFT, left)
    return whole.replace('sglang: ">=0.5.17,<0.5.24"', 'sglang: ">=0.5.19,<0.5.21"')


GONE = {INTERFACE: ("    supports_triton: bool = False\n", "")}


def test_a_key_that_is_left_at_its_default_is_not_taken_up(carry: Carry) -> None:
    text = leaving_triton("capabilities.triton", ">=0.5.20")
    done = carry(GONE, {}, documents={MAP: ("", text)}, known=2)
    assert done.counts["proposed"] == done.counts["left"] == 0
    assert line(done, "+s") == ['sglang: ">=0.5.19,<0.5.22"'] and not line(done, "+ ")
    assert [r.count(Severity.ERROR) for r in done.after] == [0, 0, 0]


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ("capabilities.triton", ">=0.5.20,<0.5.21"),
        ("capabilities.supports_triton", ">=0.5.20"),
    ],
)
def test_a_key_that_the_newest_known_release_leaves_is_only_listed(
    carry: Carry, member: str, text: str
) -> None:
    documents = {MAP: ("", leaving_triton(member, text))}
    done = carry(GONE, {}, documents=documents, proposals=True, known=2)
    account = of(done, "factory/capabilities.triton")
    assert (account.outcome, account.codes) == ("left", ("KA201",))
    assert done.counts["proposed"] == 0 and not line(done, "+ ")


def test_an_edit_that_gives_what_is_left_is_taken_back(carry: Carry) -> None:
    """A member is left by its own name, which is the one that the edit would give it."""
    name, renamed = "get_device_total_memory", "get_devices_total_memory"
    spelled = f"  methods.{name}:\n    - {{method: {name}}}\n"
    left = f'  - {{member: {renamed}, sglang: ">=0.5.20", why: upstream counts it}}\n'
    mixin = INTERFACE.replace("interface", "device_mixin")
    said = ("def supports_mamba", f"# It was {name}.\n    def supports_mamba")
    done = carry(
        {mixin: (f"def {name}", f"def {renamed}"), INTERFACE: said},
        documents={MAP: (LEFT, f"{spelled}{LEFT}{left}")},
        proposals=True,
    )
    account = of(done, f"interface.methods.{name}")
    assert (account.outcome, account.taken, account.codes) == ("left", False, ("KA201",))
    assert "taken back, since it leaves KA206" in account.review[-1]
    assert renamed not in "".join(line(done, "+"))


def test_a_key_that_is_spelled_and_left_goes_on(carry: Carry) -> None:
    """It is not given, and its spelling still says what the left member is."""
    closed = '  mamba:\n    - {sglang: ">=0.5.19,<0.5.20", method: supports_mamba}\n'
    done = carry({}, documents={MAP: (LEFT, f"{closed}{LEFT}")})
    assert of(done, "interface.mamba").range == ">=0.5.19,<0.5.21"


def test_a_process_that_loads_plugins_now(carry: Carry) -> None:
    start = "def run_detokenizer_process(server_args):\n    pass\n"
    place = "sglang/srt/managers/detokenizer_manager.py"
    call = "sglang.srt.managers.detokenizer_manager.run_detokenizer_process"
    spelled = f"  process.detokenizer:\n    - {{call: {call}, loads_plugins: false}}\n"
    done = carry(
        {place: ("", start)},
        {place: ("pass", "load_plugins()")},
        documents={MAP: ("left_at_default:", f"{spelled}left_at_default:")},
    )
    account = of(done, "interface.process.detokenizer")
    assert account.codes == ("KA407",) and account.outcome == "carried"
    assert (account.values, account.range) == ({"loads_plugins": None}, ">=0.5.21")
    assert account.rates[0].is_certain


def test_a_hooked_function_that_asks_the_platform_now(carry: Carry) -> None:
    asks = "return current_platform.affinity(gpu_id)"
    done = carry({}, {COMMON: ("return gpu_id", asks)}, proposals=True)
    account = of(done, "affinity")
    assert account.outcome == "proposed"
    assert account.added == {"sglang": ">=0.5.21", "why": "upstream asks the platform there"}
    assert [r.count(Severity.ERROR) for r in done.after] == [0, 0, 0]


def test_a_body_that_changed_is_carried_and_named(carry: Carry) -> None:
    done = carry({COMMON: ("return gpu_id", "return gpu_id + 1")})
    account = of(done, "affinity")
    assert account.outcome == "held"
    assert any("its body is not what it was in 0.5.19" in said for said in account.review)


def test_a_class_that_a_factory_hands_out_has_no_range(carry: Carry) -> None:
    done = carry({RUNNER: ("class GraphRunner", "class DecodeRunner")}, proposals=True)
    account = of(done, "factory/graph_runner")
    assert account.outcome == "left" and account.codes == ("KA101",)
    assert line(done, "- ") == []


REPLACED = (
    '  - {id: pool, why: ours, type: replace, impl: "our_impls:Pool", '
    "at: [{target: sglang.srt.pool.Pool}]}\n"
)
POOL = """\
class Pool:
    def take(self, count, size):
        taken = [row for row in self.rows if row % size < count]
        self.rows = [row for row in self.rows if row not in taken]
        return taken


def pad_rows(rows, width):
    while len(rows) % width:
        rows = [*rows, 0]
    return rows
"""


@pytest.mark.parametrize(
    ("place", "outcome"), [("sglang/srt/kv.py", "carried"), (None, "proposed")]
)
def test_a_class_that_is_replaced_is_carried_as_all_else(
    carry: Carry, place: str | None, outcome: str
) -> None:
    user, pool = "sglang/srt/user.py", "sglang/srt/pool.py"
    old = {pool: ("", POOL), user: ("", "from sglang.srt.pool import Pool\n\nROWS = Pool()\n")}
    new = {pool: (POOL, ""), user: ("srt.pool", "srt.kv")}
    moved = {**new, place: ("", POOL)} if place else new
    documents = {MAP: ("hooks:\n", f"hooks:\n{REPLACED}")}
    account = of(carry(moved, documents=documents, start=old), "pool")
    assert account.outcome == outcome, (account.says, account.evidence)
    if place:
        assert account.values == {"target": "sglang.srt.kv.Pool"}
        assert account.rates and all(rate.is_certain for rate in account.rates)
    else:
        assert account.added["sglang"] == ">=0.5.20"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("count, size)", "count, size, draft=False)", "take"),
        ("class Pool:\n", "class Pool:\n    def close(self):\n        self.rows = []\n\n", "close"),
        ("class Pool:\n", "class Pool:\n    def __init__(self, n):\n        pass\n\n", "__init__"),
        ("class Pool:", "class Pool(dict):", "its bases or decorators"),
        ("size < count", "size <= count", None),
    ],
)
def test_a_replaced_class_with_other_members_is_proposed(
    carry: Carry, old: str, new: str, named: str | None
) -> None:
    user, pool, place = "sglang/srt/user.py", "sglang/srt/pool.py", "sglang/srt/kv.py"
    start = {pool: ("", POOL), user: ("", "from sglang.srt.pool import Pool\n\nROWS = Pool()\n")}
    moved = {pool: (POOL, ""), user: ("srt.pool", "srt.kv"), place: ("", POOL.replace(old, new))}
    documents = {MAP: ("hooks:\n", f"hooks:\n{REPLACED}")}
    account = of(carry(moved, documents=documents, start=start), "pool")
    assert account.values == {"target": "sglang.srt.kv.Pool"}
    if named is None:
        assert account.outcome == "carried"
        assert any("its body is not what it was in 0.5.19" in said for said in account.review)
    else:
        assert account.outcome == "proposed"
        said = f"not as in sglang 0.5.19: {named}"
        assert any(line.startswith(said) for line in account.evidence)


def test_a_claim_is_raised_over_what_is_left_when_asked_for(carry: Carry) -> None:
    lost = {RUNNER: ("class GraphRunner", "class DecodeRunner")}
    assert carry(lost, claim=True).claim[1] == ">=0.5.19,<0.5.21"


def test_a_release_without_a_door_for_plugins(carry: Carry) -> None:
    with pytest.raises(AdaptError, match=r"has no sglang\.srt\.pl.*: nothing can be bound there"):
        carry({}, drop=DOOR)


def test_there_is_no_way_back(carry: Carry, tmp_path: Path) -> None:
    done = carry({})
    root = tmp_path / "workspace"
    older = FollowingResolver(open_release(str(tmp_path / "0")))
    job = Job(root, read_texts(root), Lock(), (), (), older, lambda account: False)
    with pytest.raises(AdaptError, match=r"no claimed release is older than 0\.5\.19"):
        retarget(job)
    assert done.start == "0.5.19"


def test_the_operators_other_places_stay_as_they_are(carry: Carry) -> None:
    done = carry(
        {
            ACTIVATION: (
                "def silu_and_mul(input, out=None)",
                "def silu_and_mul(input, out=None, limit=0.0)",
            )
        }
    )
    account = of(done, "silu_and_mul/silu_and_mul")
    assert account.outcome == "carried"
    before, after = WORKSPACE[RECIPE], done.texts[RECIPE]
    entry = before[
        before.index("  - target: sglang.kernels") : before.index("  - target: sglang.srt")
    ]
    ended = entry.replace("  - target", '  - sglang: "<0.5.20"\n    target')
    new = (
        entry.replace("  - target", '  - sglang: ">=0.5.20"\n    target')
        + "    ignores: {limit: 0.0}\n"
    )
    assert after == before.replace(entry, ended + new)

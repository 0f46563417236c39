"""Edits that `retarget` must not make by itself: copies, guards, short bodies, bare heirs."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

import pytest

from kunlun_adapt.evolve.retarget import Account
from tests.evolve import test_retarget_engine as engine
from tests.evolve.test_retarget_engine import (
    AFFINITY,
    CLOSED,
    COMMON,
    MAP,
    UPSTREAM,
    Carry,
    Edits,
    carry,
    of,
)

__all__ = ["carry"]  # a fixture of the engine's tests

USER = "sglang/srt/user.py"
SHORT = "def set_affinity(gpu_id, tp_size, nnodes=1):\n    return gpu_id\n"
LONG = """\
def set_affinity(gpu_id, tp_size, nnodes=1):
    total = 0
    for node in range(nnodes):
        total += gpu_id * tp_size if node % 2 else node - gpu_id
        if total > 100 and tp_size:
            total = total // 2 + node * 3
    return [total, gpu_id, tp_size, nnodes]
"""
LIKE = LONG.replace("total // 2", "total // 4")
OTHER = SHORT.replace("return gpu_id", "return tp_size")
USED = "from sglang.srt.utils.common import set_affinity\n\n\ndef run():\n    set_affinity(1, 2)\n"
HERE, A, B = "sglang.srt.utils.common", "sglang.srt.a", "sglang.srt.b"
IN_A, IN_B = "sglang/srt/a.py", "sglang/srt/b.py"
IMPORT = "from sglang.srt.utils.common import set_affinity"
RENAMED = {
    "imported under another name": (f"{IMPORT} as pin", "pin(1, 2, strict=True)"),
    "in its place": (f"{IMPORT} as pin", "pin(1, 2, 1, True)"),
    "given another name": (f"{IMPORT}\n\npin = set_affinity", "pin(1, 2, strict=1)"),
    "chosen": (f"{IMPORT}\n\npin = set_affinity if 1 else None", "pin(1, 2, strict=1)"),
    "wrapped": (f"{IMPORT}\n\npin = partial(set_affinity, 1)", "pin(2, strict=1)"),
}
HELPER = "\n\ndef is_ok():\n    return False\n"
TELLING = """

def masks(total):
    found = []
    for i in range(total):
        found += [i]
    return found
"""
EITHER = (
    "try:\n    from sglang.srt.a import set_affinity\n"
    "except ImportError:\n    from sglang.srt.b import set_affinity\n"
)
WITHOUT = "\nexcept ImportError:\n    set_affinity = None\n\n\n"
GUARDED = (
    "import torch\n\nif torch.cuda.is_available():\n    from sglang.srt.a import set_affinity\n"
    "else:\n    from sglang.srt.b import set_affinity\n"
)


@dataclass(frozen=True)
class Case:
    """What the old release has beside the bench's, with which body, and what the new one edits."""

    edits: Edits
    body: str = LONG
    old: dict[str, str] = field(default_factory=lambda: {USER: USED})
    later: Edits = field(default_factory=dict)


def goes_to(module: str) -> tuple[str, str]:
    return HERE, module


SURE = {
    "moved with its user": Case({COMMON: (LONG, ""), IN_A: ("", LONG), USER: goes_to(A)}),
    "moved with a user that does without": Case(
        {COMMON: (LONG, ""), IN_A: ("", LONG), USER: (HERE, A)},
        old={USER: "try:\n    " + USED.replace("\n\n\n", WITHOUT, 1)},
    ),
    "changed, moved with its user": Case({COMMON: (LONG, ""), IN_A: ("", LIKE), USER: goes_to(A)}),
    "imported back": Case({COMMON: (LONG, f"from {A} import set_affinity\n"), IN_A: ("", LONG)}),
    "moved with a neighbour": Case(
        {COMMON: (SHORT + TELLING, ""), IN_A: ("", SHORT + TELLING)}, SHORT + TELLING, {}
    ),
}
DOUBTED = {
    "two new places, the user goes to the changed one": Case(
        {COMMON: (LONG, ""), IN_A: ("", LONG), IN_B: ("", LIKE), USER: goes_to(B)}
    ),
    "the user takes it from either place": Case(
        {
            COMMON: (LONG, ""),
            IN_A: ("", LONG),
            IN_B: ("", LIKE),
            USER: (USED.splitlines(keepends=True)[0], EITHER),
        }
    ),
    "imported from what was there before": Case(
        {COMMON: (LONG, f"from {A} import set_affinity\n")}, old={IN_A: LIKE}
    ),
    "imported from another under another guard": Case(
        {COMMON: (LONG, GUARDED), IN_A: ("", LONG), IN_B: ("", LIKE)}
    ),
    "a namesake beside a line that stands anywhere": Case(
        {COMMON: (SHORT + HELPER, ""), IN_A: ("", OTHER + HELPER)}, SHORT + HELPER, {}
    ),
    "a copy that was there": Case(
        {COMMON: (LONG, ""), USER: goes_to(A)}, old={USER: USED, IN_A: LONG}
    ),
}


def carried(case: Case, carry: Carry, monkeypatch: pytest.MonkeyPatch, target: str = "") -> Account:
    upstream = {name: textwrap.dedent(text) for name, text in UPSTREAM.items()}
    upstream[COMMON] = upstream[COMMON].replace(SHORT, case.body)
    monkeypatch.setattr(engine, "UPSTREAM", {**upstream, **case.old})
    entry = CLOSED.replace(f"{HERE}.set_affinity", target) if target else CLOSED
    return of(carry(case.edits, case.later, documents={MAP: (AFFINITY, entry)}), "affinity")


@pytest.mark.parametrize("name", SURE)
def test_a_move_is_made(name: str, carry: Carry, monkeypatch: pytest.MonkeyPatch) -> None:
    account = carried(SURE[name], carry, monkeypatch)
    assert (account.outcome, account.values) == ("carried", {"target": f"{A}.set_affinity"})


@pytest.mark.parametrize("name", DOUBTED)
def test_a_doubtful_one_is_not(name: str, carry: Carry, monkeypatch: pytest.MonkeyPatch) -> None:
    account = carried(DOUBTED[name], carry, monkeypatch)
    assert account.outcome in ("proposed", "left") and not account.taken


def test_a_member_that_is_only_inherited_now(carry: Carry, monkeypatch: pytest.MonkeyPatch) -> None:
    method = textwrap.indent(SHORT.replace("(gpu_id", "(self, gpu_id"), "    ")
    old, user = f"class Pin:\n{method}", USED.replace("set_affinity", "Pin")
    base = "class Base:\n" + method.replace("return gpu_id", "return tp_size")
    inherits = f"{base}\n\nclass Pin(Base):\n    pass\n"
    moves = {"sglang/srt/old.py": (old, ""), IN_A: ("", old), USER: ("sglang.srt.old", A)}
    before = {"sglang/srt/old.py": old, USER: user.replace(HERE, "sglang.srt.old")}
    case = Case(moves, SHORT, before)
    account = carried(case, carry, monkeypatch, "sglang.srt.old.Pin.set_affinity")
    assert account.outcome == "carried"
    case = Case(moves, SHORT, before, {IN_A: (old, inherits)})
    account = carried(case, carry, monkeypatch, "sglang.srt.old.Pin.set_affinity")
    assert account.outcome == "proposed"
    assert account.values["target"] == f"{A}.Pin.set_affinity"
    assert account.evidence[-1] == f"it is only inherited there, from {A}.Base"


@pytest.mark.parametrize("name", RENAMED)
def test_a_call_by_another_name_passes_what_it_passes(name: str, carry: Carry) -> None:
    """It does so on the way only: in the new release KA115 would tell."""
    head, call = RENAMED[name]
    user = f"{head}\n\n\ndef run():\n    {call}\n"
    taken = {COMMON: ("nnodes=1)", "nnodes=1, strict=False)"), USER: ("", user)}
    account = of(carry(taken, {USER: (user, "")}), "affinity")
    assert account.outcome == "proposed"
    assert any(f"strict is passed in sglang 0.5.20, {USER}" in said for said in account.evidence)

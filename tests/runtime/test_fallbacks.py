"""Fallbacks: said once with their reason, recorded with their stack, and refused when asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kunlun_adapt.runtime import fallbacks, ledger
from tests.runtime.stage import MAP, RECIPE, STARTED, Stage, fine, refused

SERVE = STARTED + "import ours\n"
CALL = "x=float16[2, 3], out=None"
REASON = "x=float16[*, *], out=None"
WHY = "dtypes that the vendor's op does not take"


def with_why(stage: Stage) -> Stage:
    return stage.edit(RECIPE, "golden, fallback: true,", f'golden, fallback: true, why: "{WHY}",')


def test_a_fallback_is_said_once_and_recorded_with_reason_place_and_stack(stage: Stage) -> None:
    code = SERVE + (
        "def caller():\n    return layers.silu(ours.Thing())\n"
        "print([caller(), caller(), layers.silu(ours.Thing())])\n"
        "import json; from kunlun_adapt.runtime import ledger\n"
        "print(json.dumps(ledger.snapshot()['fallbacks']))\n"
    )
    done = with_why(stage).run(code)
    served, recorded = fine(done).splitlines()
    assert served == "['ours', 'ours', 'ours']"
    assert done.stderr.count(f"using fallback implementation golden for {CALL} ({WHY})") == 1
    (first,) = json.loads(recorded)
    assert (first["operator"], first["tier"], first["reason"]) == ("silu", "golden", REASON)
    assert first["call"] == CALL
    assert (first["calls"], first["refused"], first["why"]) == (3, 0, WHY)
    assert first["at"] == f"{RECIPE}:14"
    assert first["stack"][-1].endswith(" in bind_silu") and "silu.py:" in first["stack"][-1]
    assert first["stack"][-2].endswith(" in caller")


def test_a_fallback_is_an_error_every_time_when_asked_for(stage: Stage) -> None:
    code = SERVE + (
        "for _ in range(3):\n"
        "    try:\n        layers.silu(ours.Thing())\n"
        "    except RuntimeError as error:\n        print(error)\n"
        "from kunlun_adapt.runtime import ledger\n"
        "found = ledger.snapshot()\n"
        "print(found['operators'], found['fallbacks'][0]['refused'])\n"
    )
    done = with_why(stage).run(code, KUNLUN_ADAPT_NO_FALLBACK="1")
    *errors, counts = fine(done).splitlines()
    assert len(errors) == 3 and len(set(errors)) == 1
    for needle in ("silu", f"only the fallback golden ({RECIPE}:14)", CALL, WHY, "NO_FALLBACK=1"):
        assert needle in errors[0]
    assert counts == "{'silu': {'golden': 0}} 3"
    said = f"silu: refused, not served by the fallback implementation golden for {CALL}"
    assert done.stderr.count(said) == 1
    assert "using fallback" not in done.stderr


def test_each_reason_is_said_once_and_counted(stage: Stage) -> None:
    code = SERVE + (
        "def thing(shape, dtype='torch.float16'):\n"
        "    return type('T', (), {'shape': shape, 'ndim': len(shape), 'dtype': dtype})()\n"
        "for one in (thing((2, 3)), thing((4, 5)), thing((2, 3), 'torch.int8'), thing((9, 9))):\n"
        "    layers.silu(one)\n"
        "layers.silu(thing((1, 1)), out=thing((1, 1)))\n"
        "from kunlun_adapt.runtime import ledger\n"
        "found = ledger.snapshot()\n"
        "print(found['operators'])\n"
        "for f in found['fallbacks']:\n    print(f['calls'], f['reason'], '/', f['call'])\n"
    )
    done = stage.run(code)
    assert fine(done).splitlines() == [
        "{'silu': {'golden': 5}}",
        "3 x=float16[*, *], out=None / x=float16[2, 3], out=None",
        "1 x=float16[*, *], out=float16[*, *] / x=float16[1, 1], out=float16[1, 1]",
        "1 x=int8[*, *], out=None / x=int8[2, 3], out=None",
    ]
    assert done.stderr.count("using fallback implementation") == 3


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LEDGER", ledger.Ledger())


def fall_back(**arguments: Any) -> ledger.Fallback:
    """Stands for a generated function and what it calls."""

    def called() -> ledger.Fallback:
        return fallbacks.count("silu", "golden", arguments)

    return called()


def reasons() -> list[tuple[str, int]]:
    return [(f.reason, f.calls) for f in ledger.LEDGER.fallbacks.values()]


def test_numbers_make_no_reason_and_words_do(fresh: None) -> None:
    for eps, kind in ((1e-6, "silu"), (1e-5, "silu"), (1e-6, "gelu"), (None, "gelu")):
        fall_back(eps=eps, n=3, kind=kind, fast=True)
    assert reasons() == [
        ("eps=float, n=int, kind=silu, fast=True", 2),
        ("eps=float, n=int, kind=gelu, fast=True", 1),
        ("eps=None, n=int, kind=gelu, fast=True", 1),
    ]


def test_too_many_reasons_are_counted_together_and_that_is_said(
    fresh: None, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        for number in range(fallbacks.MOST + 5):
            fall_back(kind=f"kind{number}")
    *told_apart, others = reasons()
    assert len(told_apart) == fallbacks.MOST and {calls for _, calls in told_apart} == {2}
    assert others == (fallbacks.OTHERS, 10)
    assert len(caplog.messages) == fallbacks.MOST + 1
    assert caplog.messages[-1].endswith(f"{fallbacks.OTHERS} are counted together from here on")
    fallbacks.count("gelu", "golden", {"kind": "kind"})
    assert reasons()[-1] == ("kind=kind", 1), "of another operator there are none yet"


@pytest.mark.parametrize("name", ["KUNLUN_ADAPT_NO_FALLBACK", "KUNLUN_ADAPT_DEBUG"])
def test_a_switch_that_says_neither_yes_nor_no_is_refused(stage: Stage, name: str) -> None:
    refused(stage.run(STARTED, **{name: "yes"}), f"{name}='yes' says neither yes nor no")


def test_a_frame_of_nobodys_text_says_nothing_of_a_tier() -> None:
    import sys

    # operator_recipes/no.yaml:1
    assert fallbacks.said_of_tier(sys._getframe()) == ("", "")


DEBUG = (
    SERVE
    + """
from sglang.srt.plugins import load_plugins
load_plugins()
for _ in range(2):
    layers.silu(ours.Thing(), out=None)
    layers.Silu._oot_forward_registry["tinykey"][layers.Silu](None, ours.Thing())
    common.affinity(3)
"""
)
HOOK = """\
  - id: near
    why: a test calls it
    type: replace
    impl: "ours:affinity"
    at: [{target: sglang.srt.utils.common.affinity, args: {gpu_id: gpu_id}, ignores: [nodes]}]
"""


def test_the_first_call_of_each_binding_is_logged_when_asked_for(stage: Stage) -> None:
    stage = stage.edit(MAP, "hooks:\n", f"hooks:\n{HOOK}")
    assert "first call" not in stage.run(DEBUG).stderr
    done = stage.run(DEBUG, KUNLUN_ADAPT_DEBUG="1")
    fine(done)
    said = [line for line in done.stderr.splitlines() if "first call of" in line]
    assert said == [
        "first call of silu/silu in the main process: input=float16[2, 3], out=None",
        "first call of silu/Silu in the main process: self=None, x=float16[2, 3]",
        "first call of near in the main process: gpu_id=3",
    ]


def test_the_platforms_methods_log_their_first_call_too(stage: Stage) -> None:
    code = STARTED + (
        "from sglang.srt.platforms import current_platform as platform\n"
        "print(platform.get_dispatch_key_name(), platform.get_dispatch_key_name())\n"
        "from kunlun_adapt.runtime import ledger\n"
        "print({b['state'] for b in ledger.snapshot()['bindings'] if b['member']})\n"
    )
    done = stage.run(code, KUNLUN_ADAPT_DEBUG="1")
    assert fine(done).splitlines() == ["tinykey tinykey", "{'applied'}"]
    said = "first call of factory/device.dispatch_key in the main process: self="
    assert done.stderr.count(said) == 1


def test_what_is_bound_is_the_generated_function_unless_debugging(stage: Stage) -> None:
    code = STARTED + (
        "import kunlun_adapt_generated.operators.silu as made\n"
        "print(layers.silu is made.bind_silu, type(made.served).__name__)\n"
    )
    assert fine(stage.run(code)) == "True list\n"
    assert fine(stage.run(code, KUNLUN_ADAPT_DEBUG="1")) == "False list\n"
    assert fine(stage.run(code, KUNLUN_ADAPT_NO_FALLBACK="1")) == "True list\n"

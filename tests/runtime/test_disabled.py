"""`KUNLUN_ADAPT_DISABLE`: what is switched off, what cannot be, and what is said of it."""

from __future__ import annotations

import dataclasses
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.runtime import disabled
from tests.runtime.stage import MAP, RECIPE, SHOW, STARTED, Stage, fine, refused

STATES = STARTED + SHOW


def started(stage: Stage, disable: str, code: str = "") -> tuple[Any, str]:
    done = stage.run(STATES + code, KUNLUN_ADAPT_DISABLE=disable)
    lines = fine(done).splitlines()
    return lines, done.stderr


def test_a_disabled_binding_is_held_back_and_that_is_a_warning(stage: Stage) -> None:
    lines, said = started(stage, " silu/silu, choices ,", "print(common.CHOICES, layers.silu(1))")
    assert "'silu/silu': 'disabled'" in lines[0] and "'choices': 'disabled'" in lines[0]
    assert "'silu/Silu': 'applied'" in lines[0]
    assert lines[1] == "['triton'] upstream"
    assert "KUNLUN_ADAPT_DISABLE: 2 binding(s) are switched off in this process" in said
    assert "silu/silu, choices" in said


def test_a_disabled_binding_that_would_fail_stops_nothing(stage: Stage) -> None:
    broken = stage.edit(MAP, "sglang.srt.utils.common.CHOICES", "sglang.srt.utils.common.LIMIT")
    refused(broken.run(STATES), "choices")
    assert "'choices': 'disabled'" in started(broken, "choices")[0][0]


def test_an_unknown_id_stops_the_start_with_the_nearest(stage: Stage) -> None:
    done = stage.run(STATES, KUNLUN_ADAPT_DISABLE="silu/sliu")
    refused(done, "there is no binding 'silu/sliu'", "did you mean silu/silu")


def test_what_the_release_does_without_needs_no_switching_off(stage: Stage) -> None:
    ranged = stage.edit(
        RECIPE,
        "{target: sglang.srt.layers.Silu, style: oot_forward",
        '{target: sglang.srt.layers.Silu, sglang: ">=1.5", style: oot_forward',
    )
    lines, said = started(ranged, "silu/Silu,silu/silu")
    assert "'silu/silu': 'disabled'" in lines[0] and "silu/Silu" not in lines[0]
    assert "silu/Silu is not bound here and needs no switching off: excluded" in said
    said = started(ranged, "silu/Silu")[1]
    assert "needs no switching off" in said and "are switched off" not in said


def test_the_device_itself_cannot_be_switched_off(stage: Stage) -> None:
    done = stage.run(STATES, KUNLUN_ADAPT_DISABLE="factory/device.name")
    refused(done, "factory/device.name cannot be switched off", "SGLang knows the device by it")


LABEL = """\
            def get_dispatch_key_name(self):
                return "native"

            def label(self):
                return "upstream"
"""


def test_a_member_is_taken_off_so_that_upstreams_own_serves(stage: Stage) -> None:
    interface = "sglang/srt/platforms/interface.py"
    with_label = stage.edit(
        interface, LABEL[: LABEL.index("\n\n") + 1].rstrip("\n"), LABEL.rstrip("\n")
    ).edit(MAP, "hooks:\n", 'methods:\n  label: "ours:device"\nhooks:\n')
    code = (
        "from sglang.srt.platforms import current_platform\n"
        "print(type(current_platform.label()).__name__, current_platform.device_name)"
    )
    assert started(with_label, "", code)[0][1] == "function tiny"
    lines, said = started(with_label, "method/label", code)
    assert lines[1] == "str tiny" and "'method/label': 'disabled'" in lines[0]
    assert "method/label" in said


class FakePlatform:
    """Upstream's flags as a struct, and a method that serves several keys."""

    @dataclasses.dataclass(frozen=True)
    class Flags:
        graphs: bool = False
        triton: bool = False

    capabilities = Flags(graphs=True, triton=True)


def test_one_flag_goes_back_to_upstreams_default() -> None:
    platform = type("P", (FakePlatform,), {"capabilities": FakePlatform.capabilities})
    disabled._take_off(platform, ["capabilities.graphs"])
    assert platform.capabilities == FakePlatform.Flags(graphs=False, triton=True)  # type: ignore[attr-defined]
    assert FakePlatform.capabilities.graphs, "only our class was changed"


def test_what_shares_a_member_is_switched_off_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(binder: Any) -> None:
        binder.environment("TINY", "1")
        binder.member("factory/kv_pool.mha", "get_kv_pool_cls", "ours:A")
        binder.member("factory/kv_pool.mla", "get_kv_pool_cls", "ours:B")
        binder.own("attention/backend", "attention")

    bindings = SimpleNamespace(install=install, PLATFORM="no_such_module:P")
    hooks = SimpleNamespace(install=lambda hooks: None)
    monkeypatch.setitem(sys.modules, f"{disabled.PACKAGE}.hooks", hooks)  # type: ignore[arg-type]
    both = "factory/kv_pool.mha,factory/kv_pool.mla"
    monkeypatch.setenv(disabled.DISABLE, both)
    assert disabled.disabled(bindings) == set(both.split(","))  # type: ignore[arg-type]
    for asked, said in (
        ("factory/kv_pool.mla", "get_kv_pool_cls serves factory/kv_pool.mha as well"),
        ("attention/backend", "our own classes call it"),
    ):
        monkeypatch.setenv(disabled.DISABLE, asked)
        with pytest.raises(AdaptError, match="cannot be switched off") as refusal:
            disabled.disabled(bindings)  # type: ignore[arg-type]
        assert said in refusal.value.message


def test_the_ledger_says_what_can_be_switched_off(stage: Stage) -> None:
    code = "import json; print(json.dumps(ledger.snapshot()['bindings']))"
    lines, _ = started(stage, "choices", code)
    found = {b["id"]: b for b in json.loads(lines[1])}
    assert found["choices"]["state"] == "disabled" and found["choices"]["required"]
    assert "KUNLUN_ADAPT_DISABLE" in found["choices"]["detail"]
    assert found["factory/device.name"]["kept"] and not found["silu/silu"]["kept"]
    assert found["factory/device.name"]["member"] == "device_name"

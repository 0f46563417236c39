# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA201 to KA205: what the release's platform class has."""

from __future__ import annotations

from kunlun_adapt.upstream import LockFacts
from tests.check.bench import MAP, Bench
from tests.check.examples import EXAMPLES, INTERFACE, lock_of
from tests.check.said import codes, only

MIXIN = "sglang/srt/platforms/device_mixin.py"


def test_a_method_of_the_map_that_upstream_renamed(bench: Bench) -> None:
    changed = bench.edit(MIXIN, "def get_device_total_memory", "def get_total_device_memory")
    findings = changed.findings()
    assert codes(findings) == ["KA201", "KA204"] or codes(findings) == ["KA204", "KA201"]
    found = next(f for f in findings if f.code == "KA201")
    assert str(found.position) == changed.place(MAP, "get_device_total_memory:")
    assert found.suggestion == (
        'interface.methods.get_device_total_memory: add {sglang: ">=0.5.19", '
        "method: get_total_device_memory}"
    )


def test_a_capability_that_upstream_renamed(bench: Bench) -> None:
    changed = bench.edit(INTERFACE, "supports_triton: bool", "triton_kernels: bool")
    findings = {f.code: f for f in changed.findings()}
    assert sorted(findings) == ["KA201", "KA203"]
    assert str(findings["KA201"].position) == changed.place(MAP, "capabilities.supports_triton")
    assert "field: capabilities.triton_kernels" in (findings["KA203"].suggestion or "")


def test_a_member_that_is_gone_without_a_like(bench: Bench) -> None:
    changed = bench.edit(INTERFACE, "def get_graph_runner_cls", "def zzz")
    found = only(changed.findings(), "KA201")
    assert "left_at_default: [{member: graph_runner" in (found.suggestion or "")


def test_a_key_that_the_release_does_without_is_quiet(bench: Bench) -> None:
    changed = bench.edit(MAP, "- {method: get_graph_runner_cls}",
                         '- {sglang: "<0.5.19", method: get_graph_runner_cls}')  # fmt: skip
    assert codes(changed.findings()) == ["KA202"]
    left = changed.edit(
        MAP, "left_at_default:\n",
        'left_at_default:\n  - {member: graph_runner, sglang: ">=0.5.19", why: upstream picks it}\n',
    )  # fmt: skip
    assert codes(left.findings()) == []


def test_a_map_that_does_not_name_the_platform_class(bench: Bench) -> None:
    changed = bench.edit(MAP, "- {call: sglang.srt.platforms.interface.SRTPlatform}",
                         '- {sglang: "<0.5.19", call: sglang.srt.platforms.interface.SRTPlatform}')  # fmt: skip
    found = only(changed.findings(), "KA202")
    assert str(found.position) == changed.place(MAP, "platform:\n")


def test_capabilities_that_are_methods(bench: Bench) -> None:
    changed = bench.edit(MAP, "{member: supports_mamba,", "{member: supports_mumba,")
    found = only(changed.findings(), "KA203")
    assert "interface.capabilities.mamba: [{method: supports_mamba}]" in (found.suggestion or "")
    assert found.severity.value == "warning"


def test_a_capability_may_be_left_by_its_key_or_its_name(bench: Bench) -> None:
    changed = EXAMPLES["KA203"].change(bench)
    for member in ("capabilities.pynccl", "pynccl"):
        left = changed.edit(
            MAP, "left_at_default:\n",
            f"left_at_default:\n  - {{member: {member}, why: torch does the collectives}}\n",
        )  # fmt: skip
        assert codes(left.findings()) == []


def test_planned_members_need_nothing(bench: Bench) -> None:
    assert "[Planned]" in bench.upstream[MIXIN]
    assert codes(bench.findings()) == []
    active = bench.edit(MIXIN, "[Planned] Identifier", "[Active] Identifier")
    found = only(active.findings(), "KA204")
    assert found.target == "sglang.srt.platforms.interface.SRTPlatform.get_device_uuid"
    assert str(found.upstream).startswith(MIXIN)


def test_a_member_that_does_more_than_raise_needs_nothing(bench: Bench) -> None:
    changed = bench.edit(MIXIN, '"""[Planned] Identifier."""\n',
                         'if device_id:\n                    return "x"\n')  # fmt: skip
    assert codes(changed.findings()) == []


def test_a_raising_member_may_be_left_by_its_key(bench: Bench) -> None:
    changed = bench.edit(INTERFACE, "def get_graph_runner_cls(self):\n                return None",
                         "def get_graph_runner_cls(self):\n                raise NotImplementedError('x')")  # fmt: skip
    changed = changed.edit(MAP, '  graph_runner: "sglang.srt.runner:GraphRunner"\n', "")
    assert codes(changed.findings()) == ["KA204"]
    left = changed.edit(
        MAP, "left_at_default:\n",
        "left_at_default:\n  - {member: graph_runner, why: no graphs here}\n",
    )  # fmt: skip
    assert codes(left.findings()) == []


def test_a_release_without_the_interface_says_so_once(bench: Bench) -> None:
    changed = bench.drop("sglang/srt/platforms/").drop("sglang/srt/plugins/")
    assert codes(changed.findings()) == ["KA205"]
    unclaimed = changed.version("0.5.9")
    assert sorted(codes(unclaimed.findings())) == ["KA009", "KA205"]
    assert codes(bench.drop("sglang/srt/plugins/").findings()) == ["KA205"]


def test_the_lock_alone_does_not_tell_what_upstream_lacks(bench: Bench) -> None:
    facts = LockFacts(lock_of(bench), "0.5.19")
    changed = EXAMPLES["KA204"].change(bench)
    assert codes(changed.findings(facts=facts)) == []

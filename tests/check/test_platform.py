# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA201 to KA205: what the release's platform class has."""

from __future__ import annotations

import pytest

from kunlun_adapt.upstream import LockFacts
from tests.check.bench import MAP, Bench
from tests.check.examples import EXAMPLES, INTERFACE, lock_of
from tests.check.said import codes, only

LEFT = "left_at_default:\n  - {member: supports_mamba, why: no recurrent model is bound}\n"
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


def test_a_question_that_became_a_capability(bench: Bench) -> None:
    spelled = '{sglang: "<0.5.18", method: support_cuda_graph}\n    - {sglang: ">=0.5.18", field: capabilities.graph_capture}'
    changed = bench.edit(MAP, spelled, "{method: support_cuda_graph}")
    found = only([f for f in changed.findings() if f.code == "KA201"], "KA201")
    assert found.suggestion == (
        'interface.capabilities.graph_capture: add {sglang: ">=0.5.19", '
        "field: capabilities.graph_capture}"
    )


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
    changed = bench.edit(MAP, LEFT, "")
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


BY_PROFILE = """\
methods:
  get_device_total_memory: {card: "our_impls:total_memory"}
"""


def test_a_member_that_one_profile_lacks(bench: Bench) -> None:
    given = 'methods:\n  get_device_total_memory: "our_impls:total_memory"\n'
    changed = bench.edit(MAP, given, BY_PROFILE)
    found = only(changed.findings(), "KA204")
    assert "gives it nothing for the profile simulator" in found.message
    assert str(found.position) == changed.place(MAP, "get_device_total_memory:")
    assert found.suggestion == "methods.get_device_total_memory: add `simulator: …`"


def test_a_capability_that_one_profile_lacks(bench: Bench) -> None:
    changed = bench.edit(MAP, "{card: true, simulator: false}", "{card: true}")
    found = only(changed.findings(), "KA203")
    assert "leaves for the profile simulator at upstream's default (False)" in found.message
    assert str(found.position) == changed.place(MAP, "graph_capture: {card")


def test_what_a_key_is_spelled_as_is_given_under_that_key(bench: Bench) -> None:
    raising = bench.edit(
        INTERFACE,
        "def get_graph_runner_cls(self):\n                return None",
        "def get_graph_runner_cls(self):\n                raise NotImplementedError",
    )
    changed = raising.edit(MAP, '  graph_runner: "sglang.srt.runner:GraphRunner"\n', "")
    found = only(changed.findings(), "KA204")
    assert str(found.position) == changed.place(MAP, "graph_runner:\n")
    assert (found.suggestion or "").startswith("`factories: {graph_runner: …}`, or left_at_default")
    changed = bench.edit(MAP, "  triton: false\n", "")
    found = next(f for f in changed.findings() if f.code == "KA203")
    assert (found.suggestion or "").startswith("give `capabilities: {triton: …}`, or left_at")


@pytest.mark.parametrize(
    ("old", "new", "code", "meant"),
    [
        ("  triton: false", "  tritn: false", "KA202", "capabilities.triton"),
        ("  get_device_total_memory:", "  get_device_total_memry:", "KA201",
         "methods.get_device_total_memory"),
    ],
)  # fmt: skip
def test_a_misspelt_key_is_one_finding(
    bench: Bench, old: str, new: str, code: str, meant: str
) -> None:
    served = f"served: {{{meant}: {{simulator: true}}}}\nhooks:\n"
    changed = bench.edit(MAP, old, new).edit(MAP, "hooks:\n", served)
    found = only(changed.findings(), code)
    assert found.suggestion == f"did you mean {meant}?"


def test_a_name_that_the_lock_knows_is_no_slip(bench: Bench) -> None:
    lock = lock_of(bench)
    renamed = bench.edit(MIXIN, "def get_device_total_memory", "def get_devices_total_memory")
    found = next(f for f in renamed.findings(lock=lock) if f.code == "KA201")
    assert "method: get_devices_total_memory" in (found.suggestion or "")


@pytest.mark.parametrize(
    "member", ["graph_runner", "get_graph_runner_cls", "get_device_total_memory", "kv_pool.mha"]
)
def test_what_is_given_is_not_left(bench: Bench, member: str) -> None:
    changed = bench.edit(MAP, LEFT, f"{LEFT}  - {{member: {member}, why: upstream does it}}\n")
    found = only(changed.findings(), "KA206")
    assert str(found.position) == changed.place(MAP, f"{{member: {member}, why: upstream", 9)
    key = {"get_graph_runner_cls": "graph_runner"}.get(member, member)
    assert found.binding in (f"factory/{key}", f"method/{key}")
    elsewhere = bench.edit(
        MAP, LEFT, f'{LEFT}  - {{member: {member}, sglang: "<0.5.18", why: upstream does it}}\n'
    )
    assert codes(elsewhere.findings()) == []


def test_a_map_that_leaves_the_platform_alone(bench: Bench) -> None:
    """A map of hooks alone says so once: no member is asked for, none that comes later either."""
    changed = EXAMPLES["KA204"].change(bench).edit(MAP, LEFT, "left_at_default: []\n")
    assert {"KA203", "KA204"} <= set(codes(changed.findings()))
    alone = changed.edit(
        MAP, "left_at_default: []\n",
        "left_at_default:\n  - {member: platform, why: hooks alone}\n",
    )  # fmt: skip
    assert codes(alone.findings()) == []
    before = changed.edit(
        MAP, "left_at_default: []\n",
        'left_at_default:\n  - {member: platform, sglang: "<0.5.18", why: hooks alone}\n',
    )  # fmt: skip
    assert {"KA203", "KA204"} <= set(codes(before.findings()))


def test_a_misspelt_member_is_not_left(bench: Bench) -> None:
    changed = bench.edit(MAP, "{member: supports_mamba,", "{member: supports_mumba,")
    found = only(changed.findings(), "KA005")
    assert found.suggestion == "did you mean supports_mamba?"
    assert str(found.position) == changed.place(MAP, "supports_mumba")


def test_a_member_that_is_left_in_no_claimed_release(bench: Bench) -> None:
    changed = bench.edit(
        MAP, LEFT, f'{LEFT}  - {{member: old_one, sglang: "<0.5.10", why: upstream does it}}\n'
    )
    found = only(changed.findings(), "KA005")
    assert str(found.position) == changed.place(MAP, '"<0.5.10"')


def test_a_member_of_another_locked_release_is_known(bench: Bench) -> None:
    lock = lock_of(bench)
    gone = bench.edit(INTERFACE, "def supports_mamba", "def asks_nothing")
    assert codes(gone.findings()) == ["KA005"]
    assert "KA005" not in codes(gone.findings(lock=lock))

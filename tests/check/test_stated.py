"""Model classes out of tree and the communication warm-up: what the map says of them, checked."""

from __future__ import annotations

import pytest

from tests.check.bench import IMPLS, MAP, Bench
from tests.check.said import codes, only

REGISTRY = {
    "sglang/srt/models/registry.py": "ModelRegistry = object()\n",
    "sglang/srt/models/one.py": "class One:\n    pass\n\nEntryClass = One\n",
    "sglang/srt/models/many.py": """\
        class Many:
            pass

        class Inner:
            pass

        EntryClass = [Many]
        """,
}
SPELLED = "interface:\n  models: [{call: sglang.srt.models.registry.ModelRegistry}]\n"


def with_model(bench: Bench, architecture: str, cls: str = "Ours", more: str = "") -> Bench:
    for file, text in REGISTRY.items():
        bench = bench.add(file, text)
    entry = f'{{architecture: {architecture}, class: "our_impls:{cls}", why: a test{more}}}'
    bench = bench.add(IMPLS, "class Ours:\n    pass\n")
    bench = bench.edit(MAP, "interface:\n", SPELLED)
    return bench.edit(MAP, "hooks:\n", f"models:\n  - {entry}\nhooks:\n")


@pytest.mark.parametrize("architecture", ["One", "Many"])
def test_an_architecture_that_upstream_has_a_class_for(bench: Bench, architecture: str) -> None:
    found = only(with_model(bench, architecture).findings(), "KA210")
    assert f"has a class for {architecture} itself" in found.message
    assert found.binding == f"factory/models.{architecture}"
    assert found.suggestion == "models[0]: add `replaces: true`, or name another architecture"
    assert str(found.upstream).startswith(f"sglang/srt/models/{architecture.lower()}.py:1")


@pytest.mark.parametrize("architecture", ["Inner", "Other"])
def test_one_that_upstream_does_not_hand_out_is_free(bench: Bench, architecture: str) -> None:
    assert codes(with_model(bench, architecture).findings()) == []


def test_replacing_it_on_purpose_is_no_finding(bench: Bench) -> None:
    assert codes(with_model(bench, "One", more=", replaces: true").findings()) == []


def test_another_release_s_entry_is_not_looked_at(bench: Bench) -> None:
    assert codes(with_model(bench, "One", more=', sglang: "<0.5.19"').findings()) == []


def test_a_class_that_is_not_there(bench: Bench) -> None:
    found = only(with_model(bench, "Other", "Nothing").findings(), "KA301")
    assert found.binding == "factory/models.Other"


WARM = "communication: {{warmup_bytes: 64, groups: [tp], hook: {}, why: a test}}\nhooks:\n"


def test_the_warm_up_s_hook_and_groups_have_to_be_there(bench: Bench) -> None:
    changed = bench.edit(MAP, "hooks:\n", WARM.format("no-such"))
    found = [f for f in changed.findings() if f.code == "KA005"]
    assert [f.message for f in found] == [
        "interface.group.tp does not say what hands out the group",
        "no hook is called 'no-such'",
    ]

"""Names that an assignment gives upstream anew: each is told, and a slip is not bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evolve.plugin_bench import COMMON, PluginBench, hooks, left, the_map

RUNNER = "sglang.srt.runner.GraphRunner"
OURS = "from sglang.srt.runner import GraphRunner\n\ndef ours(*args):\n    return None\n\n"


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    return PluginBench(tmp_path)


def told(bench: PluginBench, body: str) -> dict[str, str]:
    """Return the status of each hook by its target, after adopting a plugin that does `body`."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    found = bench.adopt(f"{OURS}def register():\n{lines}")
    return {target: hook.get("status", "active") for target, hook in hooks(found).items()}


def news(bench: PluginBench) -> list[str]:
    assert bench.adoption is not None
    return [str(x).partition(": new: ")[2] for x in bench.adoption.left if x.reason == "new"]


@pytest.mark.parametrize(
    ("body", "target", "owner", "near"),
    [
        ("common.set_afinity = ours", f"{COMMON}.set_afinity", COMMON, "set_affinity"),
        ("setattr(common, 'set_affinty', ours)", f"{COMMON}.set_affinty", COMMON, "set_affinity"),
        ("vars(common)['set_afinnity'] = ours", f"{COMMON}.set_afinnity", COMMON, "set_affinity"),
        ("GraphRunner.replya = ours", f"{RUNNER}.replya", RUNNER, "replay"),
    ],
)
def test_a_misspelt_name_is_not_bound(
    bench: PluginBench, body: str, target: str, owner: str, near: str
) -> None:
    assert told(bench, body) == {target: "planned"}
    assert bench.adoption is not None
    (id,) = [hook["id"] for hook in the_map(bench.adoption)["hooks"]]
    leaf = target.rpartition(".")[2]
    text = f"upstream's {owner} has no {leaf}; it is planned, not bound; did you mean {near}?"
    assert news(bench) == [f"{text} ({id})"]
    assert [t.status for t in bench.adoption.taken if t.id == id] == ["planned"]


def test_a_name_of_the_plugins_own_is_added_and_listed_once(bench: PluginBench) -> None:
    body = "common.ours_helper = ours\ncommon.ours_helper = ours\nprint(common.ours_helper)"
    assert told(bench, body) == {f"{COMMON}.ours_helper": "active"}
    assert news(bench) == [
        f"upstream's {COMMON} has no ours_helper; it is added (ours-helper)",
    ]
    assert bench.adoption is not None
    assert left(bench.adoption) == [("new", "ours/install.py", 10)]


def test_a_name_that_is_only_like_one_is_added_with_a_question(bench: PluginBench) -> None:
    assert told(bench, "common.set_affinity_ours = ours") == {
        f"{COMMON}.set_affinity_ours": "active"
    }
    (said,) = news(bench)
    assert "it is added; did you mean set_affinity?" in said


def test_upstreams_own_under_a_second_name_is_no_slip(bench: PluginBench) -> None:
    assert told(bench, "common._set_affinity = common.set_affinity") == {
        f"{COMMON}._set_affinity": "active"
    }
    assert news(bench) == [f"upstream's {COMMON} has no _set_affinity; it is added (set-affinity)"]


def test_a_constant_under_a_misspelt_name_is_asked_about(bench: PluginBench) -> None:
    assert told(bench, "common.ENABELD = False") == {}
    assert bench.adoption is not None
    (one,) = [x for x in bench.adoption.left if x.reason == "unsupported"]
    assert one.what.endswith("= …; did you mean ENABLED?")


def test_a_name_that_upstream_has_is_not_listed(bench: PluginBench) -> None:
    assert told(bench, "common.set_affinity = ours") == {f"{COMMON}.set_affinity": "active"}
    assert news(bench) == []

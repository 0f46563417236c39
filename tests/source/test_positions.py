"""Each generated block says which line of which document it comes from, and why it is there."""

from __future__ import annotations

import re

import pytest

from tests.source.conftest import ROOT, Compile

PLACE = re.compile(r"^ *# ((?:platform_map|operator_recipes/[\w/-]+|recipes/[\w/-]+)\.yaml):(\d+)$")
BLOCK = re.compile(r" *(hooks|binder)\.\w+\($| *(hooks|binder)\.\w+\(.+\)$")
PROFILES = ("card", "simulator")


def comments_above(lines: list[str], index: int) -> list[str]:
    found: list[str] = []
    while index > 0 and lines[index - 1].lstrip().startswith("#"):
        index -= 1
        found.insert(0, lines[index])
    return found


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("module", ["bindings", "hooks"])
def test_each_statement_has_its_place_and_its_reason(
    compiled: Compile, module: str, profile: str
) -> None:
    lines = compiled("0.5.19", profile).modules[module].splitlines()
    blocks = [i for i, line in enumerate(lines) if BLOCK.match(line)]
    assert len(blocks) >= 5
    for index in blocks:
        place, *why = comments_above(lines, index)
        assert PLACE.match(place), lines[index]
        assert len(" ".join(why)) > 5, lines[index]


@pytest.mark.parametrize("profile", PROFILES)
def test_each_member_and_tier_has_its_place(compiled: Compile, profile: str) -> None:
    modules = compiled("0.5.19", profile).modules
    platform = modules["platform"].splitlines()
    methods = [i for i, line in enumerate(platform) if line.startswith("    def ")]
    assert methods
    assert all(PLACE.match(platform[i + 1]) for i in methods)
    norm = modules["operators/rms_norm"].splitlines()
    tiers = [
        i for i, line in enumerate(norm) if re.match(r"    # (xpu_\w+|golden \(fallback\))$", line)
    ]
    assert len(tiers) >= 3
    assert all(PLACE.match(norm[i - 1]) for i in tiers)


def test_the_places_are_those_of_the_documents(compiled: Compile) -> None:
    modules = compiled("0.5.19", "card").modules
    wanted = {
        "worker-affinity": "target: sglang.srt.utils.common.set_gpu_proc_affinity",
        "rms_norm/RMSNorm": "target: sglang.srt.layers.layernorm.RMSNorm",
        "factory/kv_pool.mha": "mha:",
        "shim/sgl_kernel": "module: sgl_kernel",
    }
    text = modules["bindings"] + modules["hooks"]
    lines = text.splitlines()
    for id, statement in wanted.items():
        index = next(i for i, line in enumerate(lines) if f"'{id}'" in line)
        index = index if "(" in lines[index] else index - 1
        found = PLACE.match(comments_above(lines, index)[0])
        assert found, id
        yaml = (ROOT / found[1]).read_text(encoding="utf-8").splitlines()
        assert statement in yaml[int(found[2]) - 1], id

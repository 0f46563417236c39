from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kunlun_adapt.upstream import Missing, Resolver, Symbol

Make = Callable[[Mapping[str, str]], Resolver]

FILES = {
    "sglang/srt/utils/__init__.py": "from sglang.srt.utils.common import *\n",
    "sglang/srt/utils/common.py": "def set_gpu_proc_affinity(gpu_id):\n    return gpu_id\n",
    "sglang/srt/mem/pool.py": "class Pool:\n    def take(self):\n        return 1\n",
    "sglang/other/place.py": "class Pool:\n    def take(self):\n        return 2\n",
    "sglang/other/text.py": "X = '''\ndef phantom(): ...\n'''\n",
    "sglang/test/t.py": "def phantom(): ...\n",
}


def _suggest(facts: Resolver, path: str, fingerprint: str | None = None) -> Missing:
    found = facts.resolve(path)
    assert isinstance(found, Missing) and not found.suggestions
    return facts.suggest(found, fingerprint)


def test_a_misspelt_name_is_found_where_it_was_meant(resolver: Make) -> None:
    found = _suggest(resolver(FILES), "sglang.srt.utils.set_gpu_proc_afinity")
    best = found.suggestions[0]
    assert best.path == "sglang.srt.utils.set_gpu_proc_affinity"
    assert str(best.location) == "sglang/srt/utils/common.py:1"
    assert 0.9 < best.score < 1


def test_a_moved_name_is_found_elsewhere_nearest_first(resolver: Make) -> None:
    found = _suggest(resolver(FILES), "sglang.srt.mem.pools.Pool.take")
    assert [item.path for item in found.suggestions] == [
        "sglang.srt.mem.pool.Pool.take",
        "sglang.other.place.Pool.take",
    ]


def test_the_same_body_beats_a_nearer_path(resolver: Make) -> None:
    facts = resolver(FILES)
    twin = facts.resolve("sglang.other.place.Pool.take")
    assert isinstance(twin, Symbol)
    best = _suggest(facts, "sglang.srt.mem.pools.Pool.take", twin.fingerprint).suggestions[0]
    assert best.path == "sglang.other.place.Pool.take"
    assert "same body" in best.why


def test_a_module_may_have_the_name_of_the_function_that_moved_out_of_it(resolver: Make) -> None:
    facts = resolver({**FILES, "sglang/jit/gate.py": "def gate(x):\n    return x\n"})
    best = _suggest(facts, "sglang.srt.ops.gate.gate").suggestions[0]
    assert best.path == "sglang.jit.gate.gate"
    assert best.why == "function of the same name"


def test_a_misspelt_name_is_found_in_another_module(resolver: Make) -> None:
    found = _suggest(resolver(FILES), "sglang.srt.gone.set_gpu_proc_afinity")
    assert found.suggestions[0].path == "sglang.srt.utils.common.set_gpu_proc_affinity"


@pytest.mark.parametrize(
    "path", ["sglang.srt.mem.pool.phantom", "torch.Pool", "sglang.srt.mem.pool.zzz", "sglang..x"]
)
def test_nothing_is_made_up(resolver: Make, path: str) -> None:
    assert _suggest(resolver(FILES), path).suggestions == ()

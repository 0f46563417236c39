"""Host facts and the division of cores, on texts and layouts of other machines."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.hooks import host, rope

TWO_NODES = [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]


def test_the_simulated_device_is_the_host():
    available, total = host.simulated_available_memory()
    assert 0 < available <= total == host.simulated_total_memory()
    assert 0 <= host.simulated_memory_usage() <= total
    assert host.simulated_device(1) == "cpu" and "simulator" in host.simulated_device_name()


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0-3,8,10-11\n", [0, 1, 2, 3, 8, 10, 11]), ("5", [5]), ("\n", [])],
)
def test_the_kernels_core_list(text, cores):
    assert host.parse_cpu_list(text) == cores


def test_cards_of_a_node_share_its_cores():
    everything = set(range(16))
    shares = [host.cores_of_card(card, 8, TWO_NODES, everything) for card in range(8)]
    assert shares[0] == {0, 1} and shares[3] == {10, 11} and shares[4] == {4, 5}
    assert set().union(*shares) == everything


def test_a_core_outside_the_allowed_set_is_never_used():
    assert host.cores_of_card(0, 2, TWO_NODES, {2, 3, 4}) == {2, 3}
    assert host.cores_of_card(0, 2, TWO_NODES, {4}) == set()


def test_more_cards_than_cores_share_the_node():
    assert host.cores_of_card(3, 4, [[0, 1]], {0, 1}) == {0, 1}


@given(st.integers(1, 16), st.integers(1, 4), st.integers(1, 16))
def test_shares_of_one_node_do_not_overlap(cards, nodes, cores_per_node):
    layout = [list(range(n * cores_per_node, (n + 1) * cores_per_node)) for n in range(nodes)]
    allowed = {core for node in layout for core in node}
    shares = [host.cores_of_card(card, cards, layout, allowed) for card in range(cards)]
    per_node = -(-cards // nodes)
    assert all(shares)
    if cores_per_node >= per_node:
        assert sum(map(len, shares)) == len(set().union(*shares))


def test_no_node_is_an_error():
    with pytest.raises(ValueError, match="NUMA"):
        host.cores_of_card(0, 1, [], {0})


def test_affinity_pins_this_process(monkeypatch):
    pinned = []
    monkeypatch.setattr(host, "_visible_cards", lambda: 2)
    monkeypatch.setattr(host, "numa_nodes", lambda: [[0], [1]])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: pinned.append((pid, cores)))
    host.set_proc_affinity(SimpleNamespace(args={"gpu_id": 1}))
    assert pinned == [(0, {1})]


def test_rope_is_built_without_a_device():
    changes = {}
    call = SimpleNamespace(args={"device": "cpu"}, original=lambda **c: changes.update(c) or "rope")
    assert rope.rope_wrapper_device(call) == "rope" and changes == {"device": None}


def test_a_card_is_named_with_and_without_a_number():
    assert host.device(3) == "cuda:3" and host.device(None) == "cuda"

"""Slot arithmetic against a loop on the host that thinks one token at a time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from kunlun_adapt.kernels.kv_cache.pages import decode_slots, extend_slots, pages_of  # noqa: E402

pytestmark = pytest.mark.torch


def host_loop(prefixes, lengths, lasts, free, page_size):
    """The slots of all new tokens, and how many free pages they took."""
    slots, taken = [], 0
    for prefix, length, last in zip(prefixes, lengths, lasts, strict=True):
        slot = last
        for position in range(prefix, length):
            if position % page_size == 0:
                slot = free[taken] * page_size
                taken += 1
            else:
                slot += 1
            slots.append(slot)
    return slots, taken


@st.composite
def batches(draw):
    page_size = draw(st.sampled_from([1, 2, 3, 16]))
    count = draw(st.integers(1, 5))
    prefixes = draw(st.lists(st.integers(0, 40), min_size=count, max_size=count))
    news = draw(st.lists(st.integers(0, 40), min_size=count, max_size=count))
    # Pages that the prefixes end in come first, so that they are not free.
    lasts = [
        (index + 1) * page_size + (prefix - 1) % page_size if prefix else -1
        for index, prefix in enumerate(prefixes)
    ]
    free = draw(st.permutations(range(count + 1, count + 1 + 5 * 42)))
    return page_size, prefixes, [p + n for p, n in zip(prefixes, news, strict=True)], lasts, free


@given(batches())
def test_extend_equals_the_host_loop(batch):
    page_size, prefixes, lengths, lasts, free = batch
    want, taken = host_loop(prefixes, lengths, lasts, free, page_size)
    before, after = torch.tensor(prefixes), torch.tensor(lengths)
    got = extend_slots(before, after, torch.tensor(lasts), torch.tensor(free), page_size, len(want))
    assert got.tolist() == want
    assert got.dtype == torch.int64
    assert int((pages_of(after, page_size) - pages_of(before, page_size)).sum()) == taken


@given(batches())
def test_decode_equals_the_host_loop(batch):
    page_size, prefixes, _, lasts, free = batch
    lengths = [p + 1 for p in prefixes]
    want, taken = host_loop(prefixes, lengths, lasts, free, page_size)
    after = torch.tensor(lengths)
    got = decode_slots(after, torch.tensor(lasts), torch.tensor(free), page_size)
    assert got.tolist() == want
    assert int(((after - 1) % page_size == 0).sum()) == taken


def test_the_rest_of_a_page_needs_no_free_page():
    none = torch.empty(0, dtype=torch.int64)
    before, after, last = torch.tensor([5]), torch.tensor([8]), torch.tensor([12])
    assert extend_slots(before, after, last, none, 4, 3).tolist() == [13, 14, 15]
    assert decode_slots(torch.tensor([6]), last, none, 4).tolist() == [13]

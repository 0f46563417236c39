"""Which slots new tokens get in a paged cache, by tensor arithmetic only."""

from __future__ import annotations

import torch
from torch import Tensor


def pages_of(lengths: Tensor, page_size: int) -> Tensor:
    """Pages that hold each of ``lengths`` tokens; same shape and integer dtype."""
    return (lengths + (page_size - 1)) // page_size


def extend_slots(
    prefix_lens: Tensor,
    seq_lens: Tensor,
    last_loc: Tensor,
    free_pages: Tensor,
    page_size: int,
    tokens: int,
) -> Tensor:
    """Slots for the new tokens of each request, request by request: int64 ``[tokens]``.

    ``prefix_lens``, ``seq_lens`` and ``last_loc`` are int64 ``[batch]``: lengths before and
    after, and the slot of the last cached token (-1 without one). A request first fills the
    rest of its last page, then takes pages from the head of ``free_pages`` in batch order.
    The caller guarantees enough free pages. No value is read back from the device.
    """
    device = free_pages.device
    new = seq_lens - prefix_lens
    first_token = torch.cumsum(new, 0) - new
    old_pages = pages_of(prefix_lens, page_size)
    new_pages = pages_of(seq_lens, page_size) - old_pages
    first_page = torch.cumsum(new_pages, 0) - new_pages

    owner = torch.repeat_interleave(
        torch.arange(new.numel(), device=device), new, output_size=tokens
    )
    offset = torch.arange(tokens, device=device) - first_token[owner]
    position = prefix_lens[owner] + offset
    in_last_page = position < old_pages[owner] * page_size
    # Tokens of the last page need no free page; index 0 keeps the gather in range for them.
    rank = first_page[owner] + position // page_size - old_pages[owner]
    rank = torch.where(in_last_page, 0, rank)
    pages = free_pages[rank] if free_pages.numel() else torch.zeros_like(rank)
    fresh = pages * page_size + position % page_size
    return torch.where(in_last_page, last_loc[owner] + 1 + offset, fresh)


def decode_slots(seq_lens: Tensor, last_loc: Tensor, free_pages: Tensor, page_size: int) -> Tensor:
    """The slot of one new token per request: int64 ``[batch]``.

    ``seq_lens`` counts the new token; ``last_loc`` is the slot before it. A request whose
    new token opens a page takes the next of ``free_pages``; the caller guarantees enough.
    """
    opens = (seq_lens - 1) % page_size == 0
    rank = torch.where(opens, torch.cumsum(opens.long(), 0) - 1, 0)
    pages = free_pages[rank] if free_pages.numel() else torch.zeros_like(rank)
    return torch.where(opens, pages * page_size, last_loc + 1)

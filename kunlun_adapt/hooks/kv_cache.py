"""Hooks around upstream's slot bookkeeping."""

from __future__ import annotations

from typing import Any

import torch


def get_last_loc(call: Any) -> torch.Tensor:
    """The slot of the last cached token of each request, -1 where there is none.

    ``call.args``: ``req_to_token`` ``[requests, context]``, ``req_pool_indices`` and
    ``prefix_lens`` integer ``[batch]``. Returns ``prefix_lens``'s dtype, ``[batch]``. Upstream
    launches a Triton kernel for every backend name that it does not know.
    """
    prefix_lens = call.args["prefix_lens"]
    rows = call.args["req_to_token"][call.args["req_pool_indices"], (prefix_lens - 1).clamp(min=0)]
    return torch.where(prefix_lens > 0, rows.to(prefix_lens.dtype), -1)

"""The first collective of each process group, run before a request has to wait for it."""

from __future__ import annotations

import importlib
import logging
import time
from typing import Any

import torch
import torch.distributed as dist

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.call import Call
from kunlun_adapt.runtime.generated import PACKAGE

logger = logging.getLogger("kunlun_adapt")


def warm_up(call: Call) -> Any:
    """Run one all-reduce in each group that the map names, now that upstream's groups exist.

    What the groups are and how much is sent stands in the generated bindings. A group of one rank
    has nothing to set up. Ranks meet in the order of the map's list, which is the same for all.
    """
    size, groups = importlib.import_module(f"{PACKAGE}.bindings").COMMUNICATION
    counts = ledger.tally(call.id, tuple(name for name, _, _ in groups))
    said = []
    for index, (name, module, accessor) in enumerate(groups):
        group = getattr(importlib.import_module(module), accessor)()
        if group.world_size == 1:
            said.append(f"{name}: one rank, nothing to do")
            continue
        seconds = _all_reduce(group, size)
        counts[index] += 1
        said.append(f"{name}: {group.world_size} ranks in {seconds * 1e3:.1f} ms")
    ledger.enter(call.id, True).detail = f"warmed up {size} bytes; {'; '.join(said)}"
    logger.info("%s: %d bytes; %s", call.id, size, "; ".join(said))
    return call.result


def _all_reduce(group: Any, size: int) -> float:
    """Return the seconds that a blocking all-reduce took; the device's own queue is waited for."""
    data = torch.zeros(-(-size // 4), dtype=torch.float32, device=group.device)
    started = time.perf_counter()
    dist.all_reduce(data, group=group.device_group)
    # Reading a value waits for the device, whatever its runtime calls that.
    data[:1].cpu()
    return time.perf_counter() - started

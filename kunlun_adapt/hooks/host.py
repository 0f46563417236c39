"""The platform's methods about memory, device identity and processor affinity.

Two devices stand behind them. In the simulator the "device" is the host itself, and the kernel
answers. On a card the vendor's runtime answers through the ``torch.cuda`` names that it takes over;
that half was written from the public plugins' use of these names and has not been run on a card.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_NODES = Path("/sys/devices/system/node")


def simulated_total_memory(device_id: int = 0) -> int:
    """Return the memory in bytes of the simulated device: the host's, unless a fault makes it less.

    Every simulated device shares it.
    """
    return simulated_available_memory(device_id)[1]


def simulated_memory_usage(device: Any = None) -> float:
    """Return the bytes of the simulated device's memory that nobody can have any more.

    Upstream subtracts this from the total to learn what is free, so it is the whole host's use and
    not this process's.
    """
    available, total = simulated_available_memory()
    return float(total - available)


def simulated_available_memory(device_id: int = 0) -> tuple[int, int]:
    """Return the available and total memory of the simulated device in bytes."""
    from kunlun_adapt.simulator.memory import available_memory

    return available_memory()


def simulated_device(device_id: int | None = 0) -> str:
    """Return the torch device string of every simulated device."""
    return "cpu"


def device_of_rank(local_rank: int) -> Any:
    """Return the `torch.device` of a rank's card, as the interface before 0.5.13 asks for it."""
    import torch

    return torch.device("cuda", local_rank)


def simulated_device_of_rank(local_rank: int) -> Any:
    """Return the `torch.device` of every simulated rank, as asked for before 0.5.13."""
    import torch

    return torch.device("cpu")


def simulated_device_name(device_id: int = 0) -> str:
    """Return a name that no report can mistake for a card's."""
    return "Kunlun simulator (host CPU)"


def device_total_memory(device_id: int = 0) -> int:
    """Return the card's memory in bytes (not verified on a card)."""
    import torch

    return int(torch.cuda.mem_get_info(device_id)[1])


def current_memory_usage(device: Any = None) -> float:
    """Return the card's used bytes, by all processes (not verified on a card)."""
    import torch

    free, total = torch.cuda.mem_get_info(device)
    return float(total - free)


def available_memory(device_id: int = 0) -> tuple[int, int]:
    """Return the card's free and total memory in bytes (not verified on a card)."""
    import torch

    free, total = torch.cuda.mem_get_info(device_id)
    return int(free), int(total)


def device(device_id: int | None = 0) -> str:
    """Return the torch device string of a card under the CUDA masquerade.

    Upstream passes None for "whichever card this process has".
    """
    return "cuda" if device_id is None else f"cuda:{device_id}"


def device_name(device_id: int = 0) -> str:
    """Return the card's name as its runtime reports it (not verified on a card)."""
    import torch

    return str(torch.cuda.get_device_name(device_id))


def set_proc_affinity(call: Any) -> None:
    """Pin this worker to the cores of its card's NUMA node (replaces upstream's).

    ``call.args``: gpu_id. Upstream splits all physical cores of the host evenly between workers,
    which ignores where a card sits. Cards are taken to be spread evenly over the NUMA nodes in
    order, and the workers of one node share its cores evenly; cores outside this process's allowed
    set are left out. Nothing is changed when that leaves no core. Not verified on a card.
    """
    gpu_id = int(call.args["gpu_id"])
    allowed = set(os.sched_getaffinity(0))
    cores = cores_of_card(gpu_id, _visible_cards(), numa_nodes(), allowed)
    if cores:
        os.sched_setaffinity(0, cores)


def cores_of_card(card: int, cards: int, nodes: list[list[int]], allowed: set[int]) -> set[int]:
    """Return the cores for one card: its share of its node's allowed cores.

    ``nodes`` lists each NUMA node's logical cores. With fewer cores than cards on a node, the
    cards share the whole node. Raises ValueError when there are no nodes or no cards.
    """
    if not nodes or cards < 1:
        raise ValueError("no NUMA node or no card to divide")
    per_node = -(-cards // len(nodes))
    node = nodes[min(card % cards // per_node, len(nodes) - 1)]
    usable = [core for core in node if core in allowed]
    share = len(usable) // per_node
    if share == 0:
        return set(usable)
    start = (card % cards % per_node) * share
    return set(usable[start : start + share])


def numa_nodes() -> list[list[int]]:
    """Return each NUMA node's logical cores; one node of all cores where the kernel tells none."""
    found = sorted(_NODES.glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    nodes = [parse_cpu_list((path / "cpulist").read_text(encoding="ascii")) for path in found]
    with_cores = [node for node in nodes if node]
    return with_cores or [list(range(os.cpu_count() or 1))]


def parse_cpu_list(text: str) -> list[int]:
    """Read the kernel's list format, such as ``0-3,8,10-11``."""
    cores: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cores.extend(range(int(first), int(last or first) + 1))
    return cores


def _visible_cards() -> int:
    import torch

    return max(int(torch.cuda.device_count()), 1)

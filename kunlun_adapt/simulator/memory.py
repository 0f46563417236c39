"""How much memory the simulated device has: the host's, unless a fault makes it less."""

from __future__ import annotations

from pathlib import Path

from kunlun_adapt.simulator.faults import total_memory

_MEMINFO = Path("/proc/meminfo")


def available_memory() -> tuple[int, int]:
    """Return the available and total memory of the simulated device in bytes.

    A device that a fault makes smaller than the host is empty as long as the host has that much.
    """
    available, total = host_memory()
    total = min(total, total_memory() or total)
    return min(available, total), total


def host_memory(text: str | None = None) -> tuple[int, int]:
    """Return the host's available and total memory in bytes, from the kernel's ``meminfo`` text."""
    if text is None:
        text = _MEMINFO.read_text(encoding="ascii")
    kib = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in text.splitlines())
        if rest
    }
    return kib["MemAvailable"] * 1024, kib["MemTotal"] * 1024

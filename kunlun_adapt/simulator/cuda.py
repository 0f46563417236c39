"""What ``torch.cuda`` answers under the masquerade: devices, memory, streams and events.

All of it is the host's. Streams order nothing, since each call ends before the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import yaml
from torch.utils import _triton

from kunlun_adapt.simulator.memory import available_memory

_FACTS: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_bytes())
DEVICES: int = _FACTS["devices"]
CAPABILITY: tuple[int, ...] = tuple(_FACTS["capability"])
NAME = "Kunlun simulator (host CPU as CUDA)"

_current = 0


class Stream:
    """A stream that is always up to date."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device("cuda", _index(device))
        self.priority = priority
        self.cuda_stream = self.stream_id = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def synchronize(self) -> None:
        """Return at once."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once."""

    def wait_event(self, event: Any) -> None:
        """Return at once."""

    def query(self) -> bool:
        """True: all work is done."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one unless it is given."""
        event = event if event is not None else Event()
        event.record(self)
        return event


class Event:
    """An event that has happened as soon as it is recorded."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Take the time."""
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once."""

    def query(self) -> bool:
        """True: the work before it is done."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds between two recorded events. Raises RuntimeError otherwise."""
        if self._at is None or end._at is None:
            raise RuntimeError("kunlun_adapt simulator: both events must be recorded first")
        return (end._at - self._at) * 1000


class Device:
    """The context in which another device is the current one."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        set_device(self.prev_idx)


class StreamContext:
    """The context of a stream; None is the current one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Stream | None:
        return self.stream

    def __exit__(self, *_: object) -> None:
        return None


def device_count() -> int:
    """Return how many simulated devices there are."""
    return DEVICES


def current_device() -> int:
    """Return the index of the current device."""
    return _current


def set_device(device: Any) -> None:
    """Make a device the current one. Raises RuntimeError for one that is not simulated."""
    global _current
    index = _index(device)
    if not 0 <= index < DEVICES:
        raise RuntimeError(f"kunlun_adapt simulator: there is no device {index} of {DEVICES}")
    _current = index


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and total memory in bytes, which all simulated devices share."""
    return available_memory()


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Return what SGLang asks of a device's properties."""
    return SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=available_memory()[1],
        multi_processor_count=1,
        warp_size=32,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=49152,
        shared_memory_per_multiprocessor=49152,
        max_threads_per_multi_processor=1024,
        L2_cache_size=0,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
    )


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Return the state of the CPU's generator, which is each device's."""
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the CPU's generator, which is each device's."""
    torch.set_rng_state(state)


def install() -> None:
    """Put these answers into ``torch.cuda``."""
    for name, answer in ANSWERS.items():
        setattr(torch.cuda, name, answer)
    # `torch.cuda.memory` has its own names for some of them.
    for name in ("mem_get_info", "memory_allocated", "empty_cache"):
        setattr(torch.cuda.memory, name, ANSWERS[name])
    # torch.compile would look for Triton's backend for the device, and finds none: it is the CPU's.
    _triton.has_triton = _always(False)


def _index(device: Any) -> int:
    """Return the index that a device is meant by. Raises RuntimeError for a device of no CUDA."""
    if device is None:
        return _current
    if isinstance(device, int):
        return device if device >= 0 else _current
    asked = torch.device(device)
    return _current if asked.index is None else asked.index


def _always(value: Any) -> Callable[..., Any]:
    """Return a function that takes anything and gives one answer."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def _stream(device: Any = None) -> Stream:
    """Return the one stream of a device."""
    return Stream(device)


ANSWERS: dict[str, Any] = {
    "is_available": _always(True),
    "is_initialized": _always(True),
    "init": _always(None),
    "device_count": device_count,
    "current_device": current_device,
    "set_device": set_device,
    "device": Device,
    "get_device_name": _always(NAME),
    "get_device_capability": _always(CAPABILITY),
    "get_device_properties": get_device_properties,
    "get_arch_list": list,
    "can_device_access_peer": _always(False),
    "is_bf16_supported": _always(True),
    "synchronize": _always(None),
    "Stream": Stream,
    "StreamContext": StreamContext,
    "stream": StreamContext,
    "Event": Event,
    "current_stream": _stream,
    "default_stream": _stream,
    "set_stream": _always(None),
    "is_current_stream_capturing": _always(False),
    "mem_get_info": mem_get_info,
    "memory_allocated": _always(0),
    "max_memory_allocated": _always(0),
    "memory_reserved": _always(0),
    "max_memory_reserved": _always(0),
    "memory_stats": lambda device=None: {},
    "reset_peak_memory_stats": _always(None),
    "empty_cache": _always(None),
    "ipc_collect": _always(None),
    # torch.compile keeps them aside while it traces.
    "get_rng_state": get_rng_state,
    "set_rng_state": set_rng_state,
    "manual_seed": _always(None),
    "manual_seed_all": _always(None),
}
"""What replaces what in ``torch.cuda``. Graphs are not here: the profile captures none."""

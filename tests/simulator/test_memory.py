"""The memory of the simulated device, on another machine's text."""

from __future__ import annotations

from kunlun_adapt.simulator import memory


def test_memory_is_read_in_bytes():
    text = "MemTotal:       2048 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\nHugePages_Total: 0\n"
    assert memory.host_memory(text) == (1024 * 1024, 2048 * 1024)


def test_a_smaller_device_is_empty_while_the_host_has_that_much(monkeypatch):
    monkeypatch.setattr(memory, "host_memory", lambda: (300, 1000))
    monkeypatch.setattr(memory, "total_memory", lambda: 200)
    assert memory.available_memory() == (200, 200)
    monkeypatch.setattr(memory, "total_memory", lambda: None)
    assert memory.available_memory() == (300, 1000)

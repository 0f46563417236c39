"""Decode steps that are compiled, where a CPU stands in for the device."""

from __future__ import annotations

from typing import Any

from sglang.srt.model_executor.cpu_graph_runner import CPUGraphRunner, set_torch_compile_config


class CompiledDecodeRunner(CPUGraphRunner):
    """Upstream's runner of ``--enable-torch-compile``, on a host without ``sgl_kernel``.

    Upstream first describes to the compiler the CPU operators of ``sgl_kernel``, which no package
    on PyPI has, and stops at the first that is missing. Ours describe themselves.
    """

    # Upstream asks this for that one step; the other step of it is taken here.
    enable_torch_compile = property(lambda self: False, lambda self, value: None)

    def __init__(self, model_runner: Any) -> None:
        set_torch_compile_config()
        super().__init__(model_runner)

"""Starts the real processes of the installed SGLang, each until a hook of ours ends it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import multiprocessing
import os
import sys
from typing import Any

MANAGERS = "sglang.srt.managers"
ENCODERS = "sglang.srt.disaggregation"
# Where a function moved, both places.
FUNCTIONS = {
    "detokenizer": [f"{MANAGERS}.detokenizer_manager.run_detokenizer_process"],
    "dp_controller": [f"{MANAGERS}.data_parallel_controller.run_data_parallel_controller_process"],
    "tokenizer": ["tests.runtime.processes_here.serve"],
    "encoder": [
        f"{ENCODERS}.encoder.server.launch_encoder",
        f"{ENCODERS}.encode_server.launch_encoder",
    ],
    "encoder_dp": [
        f"{ENCODERS}.encoder.runtime.launch_dp_worker",
        f"{ENCODERS}.encode_server.launch_dp_worker",
    ],
}


def arrived(call: Any) -> None:
    """Stand for a hook: say in which process it is, and end it before upstream goes on."""
    from kunlun_adapt.runtime import ledger, roles

    states = {e.id: e.state for e in ledger.LEDGER.entries.values() if e.id.startswith("in-")}
    print("arrived", roles.current(), states[f"in-{roles.current()}"], flush=True)
    os._exit(7)


def serve() -> None:
    """Do what a worker of the HTTP server does, whose process is not started by SGLang itself."""
    import asyncio

    server = importlib.import_module("sglang.srt.entrypoints.http_server")
    asyncio.run(server.init_multi_tokenizer())


def found(places: list[str]) -> Any:
    """Return the function at the first place that this release has."""
    for place in places:
        module, _, name = place.rpartition(".")
        with contextlib.suppress(ModuleNotFoundError):
            return getattr(importlib.import_module(module), name)
    raise LookupError(f"none of {places}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        target = found(FUNCTIONS[name])
        required = [
            p for p in inspect.signature(target).parameters.values() if p.default is p.empty
        ]
        nothing = (None,) * len(required)
        child = multiprocessing.get_context("spawn").Process(target=target, args=nothing)
        child.start()
        child.join()
        print("ended", name, child.exitcode, flush=True)

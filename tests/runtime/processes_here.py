"""Starts the real processes of the installed SGLang, each until a hook of ours ends it."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from typing import Any

FUNCTIONS = {
    "detokenizer": "sglang.srt.managers.detokenizer_manager.run_detokenizer_process",
    "dp_controller": (
        "sglang.srt.managers.data_parallel_controller.run_data_parallel_controller_process"
    ),
    "tokenizer": "tests.runtime.processes_here.serve",
}


def arrived(call: Any) -> None:
    """Stand for a hook: say in which process it is, and end it before upstream goes on."""
    from kunlun_adapt.runtime import ledger, roles

    states = {e.id: e.state for e in ledger.LEDGER.entries.values() if e.id.startswith("in-")}
    print("arrived", roles.current(), states[f"in-{roles.current()}"], flush=True)
    os._exit(7)


def serve(*_: Any) -> None:
    """Do what a worker of the HTTP server does, whose process is not started by SGLang itself."""
    import asyncio

    server = importlib.import_module("sglang.srt.entrypoints.http_server")
    asyncio.run(server.init_multi_tokenizer())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        module, _, function = FUNCTIONS[name].rpartition(".")
        target = getattr(importlib.import_module(module), function)
        nothing = (None, None, None) if name == "dp_controller" else (None, None)
        child = multiprocessing.get_context("spawn").Process(target=target, args=nothing)
        child.start()
        child.join()
        print("ended", name, child.exitcode, flush=True)

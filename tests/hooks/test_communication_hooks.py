"""The warm-up in two processes over gloo: who meets, what is skipped, what is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What upstream's group coordinators are to the warm-up: a size, a device, a process group.
GROUPS = """
from types import SimpleNamespace

import torch
import torch.distributed as dist

made = {}

def make():
    cpu = torch.device("cpu")
    made["tp"] = SimpleNamespace(world_size=2, device=cpu, device_group=dist.group.WORLD)
    alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
    made["ep"] = SimpleNamespace(world_size=1, device=cpu, device_group=alone)

def tp():
    return made["tp"]

def ep():
    return made["ep"]
"""
RANK = """
import json, logging, os, sys
import torch.distributed as dist
import groups
from kunlun_adapt.hooks import communication
from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.call import Call
from kunlun_adapt.runtime.generated import publish

logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
groups.make()
text = "COMMUNICATION = (1026, (('tp', 'groups', 'tp'), ('ep', 'groups', 'ep')))\\n"
publish({"bindings": text}, "test")
reduced = []
original = dist.all_reduce

def all_reduce(tensor, **how):
    reduced.append([tensor.numel() * tensor.element_size(), how["group"] is dist.group.WORLD])
    return original(tensor, **how)

dist.all_reduce = all_reduce
entry = ledger.enter("warm", True)
call = Call("warm", lambda: None, (), {}, {}, (), {}, result="upstream's")
result = communication.warm_up(call)
names, counts = ledger.LEDGER.tallies["warm"]
print(json.dumps([result, reduced, list(names), counts, entry.detail]))
# Neither ends under the other, and how gloo's threads end at exit is not what is tested.
dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.torch
def test_every_group_of_several_ranks_meets_once(tmp_path: Path) -> None:
    (tmp_path / "groups.py").write_text(GROUPS, encoding="utf-8")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RANK), str(rank), f"file://{tmp_path}/meet"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in ranks:
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0, out + errors
        *logged, last = out.splitlines()
        result, reduced, names, counts, detail = json.loads(last)
        assert result == "upstream's"
        assert reduced == [[1028, True]], "whole float32 values, in the group that has two ranks"
        assert (names, counts) == (["tp", "ep"], [1, 0])
        assert detail.startswith("warmed up 1026 bytes; tp: 2 ranks in ")
        assert detail.endswith("ms; ep: one rank, nothing to do")
        assert any(line.startswith("warm: 1026 bytes; tp: 2 ranks in ") for line in logged)

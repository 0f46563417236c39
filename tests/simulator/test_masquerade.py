"""The CUDA masquerade: CUDA's names run on this CPU, only when asked for, and never over a GPU."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from kunlun_adapt.runtime.probe import DEVICE
from kunlun_adapt.simulator import standin_paths
from tests.simulator.test_asked_for import START, python

pytestmark = pytest.mark.torch

PUT_ON = "import torch\nfrom kunlun_adapt.simulator.masquerade import put_on\nput_on()\nput_on()\n"


def answers(code):
    """Return what the code prints in a process that wears the mask, line by line."""
    pytest.importorskip("torch")
    done = python(PUT_ON + code)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "made",
    [
        "torch.zeros(2, device='cuda')",
        "torch.zeros(2, device=torch.device('cuda', 3))",
        "torch.zeros(2, device=0)",
        "torch.zeros(2).cuda()",
        "torch.zeros(2).to('cuda:1', non_blocking=True)",
        "torch.nn.Linear(2, 2).to('cuda').weight",
        "torch.nn.Linear(2, 2).cuda().weight",
        "torch.zeros(2, pin_memory=True)",
        "torch.zeros(2).pin_memory()",
        "torch.zeros(2, device='cuda', generator=None) if 0 else torch.rand(2, device='cuda', "
        "generator=torch.Generator(device='cuda').manual_seed(0))",
    ],
)
def test_what_is_asked_of_cuda_is_made_on_the_host(made):
    assert answers(f"print(({made}).device)") == ["cpu"]


def test_it_holds_under_a_device_context_and_as_the_default_device():
    code = (
        "with torch.device('cuda'):\n    print(torch.zeros(2).device)\n"
        "torch.set_default_device('cuda:1')\nprint(torch.zeros(2).device)\n"
    )
    assert answers(code) == ["cpu", "cpu"]


def test_other_devices_and_texts_are_left_alone():
    code = (
        "print(torch.zeros(2, device='meta').device, torch.zeros(2).to(torch.float64).dtype)\n"
        "print(torch.einsum('i,i->', torch.ones(3), torch.ones(3)).item())\n"
    )
    assert answers(code) == ["meta torch.float64", "3.0"]


def test_threads_and_pools_wear_it_too():
    code = (
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "def made(): print(torch.zeros(2, device='cuda').device)\n"
        "class Own(threading.Thread):\n    def run(self): made()\n"
        "for thread in (threading.Thread(target=made), Own()): thread.start(); thread.join()\n"
        "with ThreadPoolExecutor(1) as pool: pool.submit(made).result()\n"
    )
    assert answers(code) == ["cpu"] * 3


def test_a_forked_child_wears_it_too():
    code = (
        "import os, sys\n"
        "child = os.fork()\n"
        "if child == 0:\n    print(torch.zeros(2, device='cuda').device, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    assert answers(code) == ["cpu"]


def test_streams_and_events_are_there_and_wait_for_nothing():
    code = (
        "stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)\n"
        "with torch.cuda.stream(stream), torch.cuda.device(1):\n"
        "    print(torch.cuda.current_device())\n"
        "    event.record()\n"
        "    torch.cuda.current_stream().wait_stream(stream)\n"
        "end = stream.record_event(torch.cuda.Event())\n"
        "print(torch.cuda.current_device(), event.query(), event.elapsed_time(end) >= 0)\n"
        "print(torch.get_device_module('cuda').Stream is torch.cuda.Stream)\n"
    )
    assert answers(code) == ["1", "0 True True", "True"]


def test_the_device_is_named_as_simulated_and_has_the_hosts_memory():
    code = (
        "free, total = torch.cuda.mem_get_info()\n"
        "print(0 < free <= total == torch.cuda.get_device_properties(0).total_memory)\n"
        "print('simulator' in torch.cuda.get_device_name(0), torch.cuda.get_device_capability())\n"
        "try: torch.cuda.set_device(99)\nexcept RuntimeError as error: print(error)\n"
        "print(torch.version.cuda)\n"
    )
    assert answers(code) == [
        "True",
        "True (8, 0)",
        "kunlun_adapt simulator: there is no device 99 of 8",
        "None",
    ]


def test_a_cuda_device_is_never_hidden():
    pytest.importorskip("torch")
    done = python(
        "import torch\ntorch.cuda.is_available = lambda: True\n"
        "from kunlun_adapt.diagnostics import AdaptError\n"
        "from kunlun_adapt.simulator.masquerade import put_on\n"
        "try: put_on()\nexcept AdaptError as error: print(error)\n"
        "try: torch.zeros(2, device='cuda')\nexcept Exception as error: print('still CUDA')\n"
    )
    first, second = done.stdout.splitlines()
    assert "there is a CUDA device, which it would hide" in first and second == "still CUDA"


@pytest.fixture(scope="module")
def upstream():
    if find_spec("sglang") is None:
        pytest.skip("SGLang is not installed")
    return standin_paths()


@pytest.mark.upstream
@pytest.mark.parametrize(("device", "profile"), [("cpu", "simulator"), ("cuda", "simulator_cuda")])
def test_the_environment_chooses_what_is_reported(upstream, tmp_path, device, profile):
    done = python(
        f"{START}print(p.current_platform.device_type, p.current_platform.get_device())",
        *upstream,
        KUNLUN_ADAPT_SIMULATOR="1",
        KUNLUN_ADAPT_RUN_DIR=str(tmp_path),
        **{DEVICE: device},
    )
    assert done.stdout.splitlines()[-1].split(":")[0] == f"{device} {device}", done.stderr
    (report,) = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    assert report["profile"] == profile and report["simulator"] is True


def test_a_device_that_nobody_can_report_ends_the_start():
    done = python(
        "from kunlun_adapt.plugin import activate\nactivate()",
        KUNLUN_ADAPT_SIMULATOR="1",
        **{DEVICE: "xpu"},
    )
    assert done.returncode == 1
    assert "the simulator can report no such device" in done.stderr
    assert "one of cpu, cuda" in done.stderr

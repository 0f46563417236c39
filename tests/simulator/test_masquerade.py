"""The CUDA masquerade: CUDA's names run on this CPU, only when asked for, and never over a GPU."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from kunlun_adapt.runtime.probe import DEVICE
from kunlun_adapt.simulator import standin_paths
from tests.simulator.test_asked_for import START, python

pytestmark = pytest.mark.torch

MADE_ON_CUDA = {
    "text": "torch.zeros(2, device='cuda')",
    "device": "torch.zeros(2, device=torch.device('cuda', 3))",
    "index": "torch.zeros(2, device=0)",
    "cuda": "torch.zeros(2).cuda()",
    "to": "torch.zeros(2).to('cuda:1', non_blocking=True)",
    "module": "torch.nn.Linear(2, 2).to('cuda').weight",
    "module_cuda": "torch.nn.Linear(2, 2).cuda().weight",
    "pinned": "torch.zeros(2, pin_memory=True)",
    "pin": "torch.zeros(2).pin_memory()",
    "generator": "torch.rand(2, device='cuda', generator=torch.Generator(device='cuda'))",
}
# One process for all that is asked: most of its time is the import of torch.
ASKED = f"""
import json, os, threading
import torch
from concurrent.futures import ThreadPoolExecutor
from kunlun_adapt.simulator.masquerade import put_on
put_on()
put_on()  # once more changes nothing
said = {{name: str(eval(code).device) for name, code in {MADE_ON_CUDA!r}.items()}}

def made():
    return str(torch.zeros(2, device="cuda").device)

with torch.device("cuda"):
    said["context"] = str(torch.zeros(2).device)
said["meta"] = str(torch.zeros(2, device="meta").device)
said["named"] = [str(torch.device("cuda", 1)), torch.get_device_module("cuda") is torch.cuda]
said["dtype"] = str(torch.zeros(2).to(torch.float64).dtype)

found = []
class Own(threading.Thread):
    def run(self):
        found.append(made())
for thread in (threading.Thread(target=lambda: found.append(made())), Own()):
    thread.start()
    thread.join()
with ThreadPoolExecutor(1) as pool:
    found.append(pool.submit(made).result())
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.write(writer, made().encode())
    os._exit(0)
os.waitpid(child, 0)
said["threads"] = [*found, os.read(reader, 9).decode()]

stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(stream), torch.cuda.device(1):
    inside = torch.cuda.current_device()
    event.record()
    torch.cuda.current_stream().wait_stream(stream)
end = stream.record_event(torch.cuda.Event())
said["streams"] = [inside, torch.cuda.current_device(), event.query(), event.elapsed_time(end) >= 0]

free, total = torch.cuda.mem_get_info()
said["memory"] = 0 < free <= total == torch.cuda.get_device_properties(0).total_memory
said["name"], said["capability"] = torch.cuda.get_device_name(0), torch.cuda.get_device_capability()
said["version"] = torch.version.cuda
try:
    torch.cuda.set_device(99)
except RuntimeError as error:
    said["absent"] = str(error)

@torch.compile(backend="eager", fullgraph=True)
def compiled(x):
    return x + torch.ones(2, device="cuda")

state = torch.cuda.get_rng_state()
said["compiled"] = [str(compiled(torch.zeros(2, device="cuda")).device)]
torch.rand(1)
torch.cuda.set_rng_state(state)
said["compiled"] += [torch.equal(torch.get_rng_state(), state)]
from torch.utils._triton import has_triton
said["compiled"] += [has_triton()]
torch.set_default_device("cuda:1")
said["default"] = str(torch.zeros(2).device)
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said():
    pytest.importorskip("torch")
    done = python(ASKED)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("how", [*MADE_ON_CUDA, "context", "default"])
def test_what_is_asked_of_cuda_is_made_on_the_host(said, how):
    assert said[how] == "cpu"


def test_devices_keep_their_names_and_others_are_left_alone(said):
    assert said["named"] == ["cuda:1", True]
    assert said["meta"] == "meta" and said["dtype"] == "torch.float64"


def test_threads_pools_and_forked_children_wear_it_too(said):
    assert said["threads"] == ["cpu"] * 4


def test_streams_and_events_are_there_and_wait_for_nothing(said):
    assert said["streams"] == [1, 0, True, True]


def test_the_device_is_named_as_simulated_and_has_the_hosts_memory(said):
    assert said["memory"] is True
    assert "simulator" in said["name"] and said["capability"] == [8, 0]
    assert said["absent"] == "kunlun_adapt simulator: there is no device 99 of 8"
    assert said["version"] is None


def test_torch_compile_traces_and_looks_for_no_triton_of_the_device(said):
    assert said["compiled"] == ["cpu", True, False]


def test_a_cuda_device_is_never_hidden():
    pytest.importorskip("torch")
    done = python(
        "import torch\ntorch.cuda.is_available = lambda: True\n"
        "from kunlun_adapt.diagnostics import AdaptError\n"
        "from kunlun_adapt.simulator.masquerade import put_on\n"
        "try: put_on()\nexcept AdaptError as error: print(error)\n"
        "print(torch.cuda.device_count.__module__)\n"
    )
    first, second = done.stdout.splitlines()
    assert "there is a CUDA device, which it would hide" in first and second == "torch.cuda"


@pytest.fixture(scope="module")
def upstream():
    if find_spec("sglang") is None:
        pytest.skip("SGLang is not installed")
    return standin_paths()


@pytest.mark.upstream
def test_the_environment_chooses_what_is_reported(upstream, tmp_path):
    done = python(
        f"{START}print(p.current_platform.device_type, p.current_platform.get_device())",
        *upstream,
        KUNLUN_ADAPT_SIMULATOR="1",
        KUNLUN_ADAPT_RUN_DIR=str(tmp_path),
        **{DEVICE: "cuda"},
    )
    assert done.stdout.splitlines()[-1] == "cuda cuda:0", done.stderr
    (report,) = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    assert report["profile"] == "simulator_cuda" and report["simulator"] is True


def test_a_device_that_nobody_can_report_ends_the_start():
    done = python(
        "from kunlun_adapt.plugin import activate\nactivate()",
        KUNLUN_ADAPT_SIMULATOR="1",
        **{DEVICE: "xpu"},
    )
    assert done.returncode == 1
    assert "the simulator can report no such device" in done.stderr
    assert "one of cpu, cuda" in done.stderr

"""Faults in the simulated device: what is asked for happens, and what is not understood is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.simulator.contract import contracts
from kunlun_adapt.simulator.fault_syntax import SETTINGS, VARIABLE, parse

ROOT = Path(__file__).resolve().parents[2]
torch_needed = pytest.mark.torch


def python(code, faults, **env):
    """Run code in a fresh interpreter: faults are read once per process."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(ROOT), VARIABLE: faults, **env},
    )


INSTALL = "import kunlun_adapt.simulator as s, torch; report = s.install(); import kunlun_ops\n"
NORM = (
    "def norm(rows, dtype=torch.float32):\n"
    "    x, out = torch.ones(rows, 8, dtype=dtype), torch.empty(rows, 8, dtype=dtype)\n"
    "    kunlun_ops.rmsnorm(x, torch.ones(8, dtype=dtype), out, 1e-6)\n"
    "    return out.float().mean().item()\n"
)


@pytest.mark.parametrize(
    "line",
    [
        "missing kunlun_ops.swiglu",
        "wrong kunlun_ops.rmsnorm x.shape=[7,_] x.dtype=bfloat16 add=0.5",
        "nan kunlun_ops.swiglu after=3",
        "slow kunlun_ops.moe_fc sort_mode=True ms=50",
        "memory kunlun_ops.moe_fc bytes=1048576",
        "total_memory bytes=1024",
    ],
)
def test_a_fault_is_said_as_it_was_written(line):
    (fault,) = parse(line)
    assert str(fault) == line


def test_sizes_take_units():
    found = parse("memory kunlun_ops.moe_fc bytes=1.5KiB; total_memory bytes=2GiB")
    assert [fault.settings["bytes"] for fault in found] == [1536, 2 * 1024**3]


def test_a_file_says_the_same_as_a_line(tmp_path):
    file = tmp_path / "faults.yaml"
    file.write_text(
        "faults:\n"
        "  - {fault: missing, op: kunlun_ops.swiglu}\n"
        "  - fault: wrong\n"
        "    op: kunlun_ops.rmsnorm\n"
        "    where: {x.shape: [7, _]}\n"
    )
    line = "missing kunlun_ops.swiglu; wrong kunlun_ops.rmsnorm x.shape=[7,_]"
    assert parse(str(file)) == parse(line)


@pytest.mark.parametrize(
    ("spec", "problem", "hint"),
    [
        ("nam kunlun_ops.swiglu", "there is no fault 'nam'", "did you mean nan?"),
        ("nan kunlun_ops.swigly", "no simulated op 'kunlun_ops.swigly'", "kunlun_ops.swiglu?"),
        ("nan", "needs an op", None),
        ("nan kunlun_ops.swiglu z.dtype=float16", "has no argument 'z'", None),
        ("nan kunlun_ops.swiglu x=1", "x is a tensor; write x.shape=", None),
        ("nan kunlun_ops.swiglu x.shape=7", "is no shape", None),
        ("nan kunlun_ops.swiglu x.dtype=int8", "can never be; the op takes float16", None),
        ("nan kunlun_ops.moe_fc sort_mode.shape=[1]", "sort_mode is no tensor", None),
        ("nan kunlun_ops.swiglu ms=3", "the fault nan takes no 'ms'", None),
        ("nan kunlun_ops.swiglu twice", "'twice' is neither the op nor key=value", None),
        ("nan kunlun_ops.swiglu x.shape=[", "'[' is not a value", None),
        ("nan kunlun_ops.gen_block_statistic", "no floating output", None),
        ("slow kunlun_ops.swiglu", "needs ms=", None),
        ("slow kunlun_ops.swiglu ms=-1", "no number from 0 up", None),
        ("wrong kunlun_ops.swiglu add=much", "add='much' is no number", None),
        ("memory kunlun_ops.swiglu bytes=3MB", "no size such as", None),
        ("missing kunlun_ops.swiglu; nan kunlun_ops.swiglu", "says that the op is missing", None),
        ("total_memory bytes=1; total_memory bytes=2", "given twice", None),
        ("/nowhere/faults.yaml", "cannot be read: No such file", None),
    ],
)
def test_what_is_not_understood_is_refused(spec, problem, hint):
    with pytest.raises(AdaptError) as caught:
        parse(spec)
    assert caught.value.message.startswith(VARIABLE) and problem in caught.value.message
    assert hint is None or hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("faults: [", "not readable as YAML"),
        ("- {fault: nan}", "the one key `faults`"),
        ("faults: {fault: nan}", "must be a list"),
        ("faults: [{fault: nan, op: kunlun_ops.swiglu, where: 3}]", "`where` must be a mapping"),
        ("faults: [{fault: nan, op: kunlun_ops.swiglu, wheer: {}}]", "takes no 'wheer'"),
        ("x: " + "y" * 70_000, "larger than"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(tmp_path, text, problem):
    file = tmp_path / "faults.yml"
    file.write_text(text)
    with pytest.raises(AdaptError) as caught:
        parse(str(file))
    assert problem in caught.value.message


def test_no_argument_bears_the_name_of_a_setting():
    names = {arg.name for contract in contracts().values() for arg in contract.args}
    assert not names & SETTINGS


@torch_needed
def test_a_missing_op_is_absent_from_the_module_and_from_torch_ops():
    pytest.importorskip("torch")
    moe = "torch.ops.xspeedgate_ops.fused_moe"
    done = python(
        INSTALL + "from kunlun_adapt.runtime.dispatch import exists\n"
        f"print(exists('kunlun_ops.swiglu'), exists('{moe}'), exists('kunlun_ops.rmsnorm'))\n"
        "print('kunlun_ops.swiglu' in report.ops)\n"
        "kunlun_ops.swiglu",
        f"missing kunlun_ops.swiglu; missing {moe}",
    )
    assert done.stdout.split() == ["False", "False", "True", "False"], done.stderr
    assert f"kunlun_ops.swiglu is missing, as {VARIABLE} asks" in done.stderr


@torch_needed
def test_wrong_nan_and_after_change_only_the_calls_that_they_name():
    pytest.importorskip("torch")
    done = python(
        INSTALL + NORM + "from kunlun_adapt.simulator.faults import active\n"
        "print(norm(7), norm(3), norm(7, torch.float16), norm(3, torch.float16))\n"
        "print([fault['fired'] for fault in active()])",
        "wrong kunlun_ops.rmsnorm x.shape=[7,_] add=2; "
        "nan kunlun_ops.rmsnorm x.dtype=float16 after=1",
    )
    first, second = done.stdout.splitlines()
    assert [round(float(v), 3) for v in first.split()[:3]] == [3, 1, 3], done.stderr
    assert first.split()[3] == "nan" and second == "[2, 1]"


@torch_needed
def test_returned_tensors_are_spoiled_too_through_torch_ops():
    pytest.importorskip("torch")
    done = python(
        INSTALL + "ids = torch.zeros(2, 1, dtype=torch.int32)\n"
        "pre = torch.ops.xspeedgate_ops.moe_pre_small\n"
        "index, bounds, rows = pre(ids, 4, False, True, torch.ones(2, 8, dtype=torch.bfloat16))\n"
        "print(index.dtype, bool(rows.isnan().all()))",
        "nan torch.ops.xspeedgate_ops.moe_pre_small",
    )
    assert done.stdout.split() == ["torch.int32", "True"], done.stderr


@torch_needed
def test_an_op_without_the_memory_raises_what_upstream_catches():
    pytest.importorskip("torch")
    done = python(
        INSTALL + NORM + "print(norm(3))\n"
        "try:\n    norm(64)\nexcept torch.cuda.OutOfMemoryError as error:\n    print(error)",
        "memory kunlun_ops.rmsnorm bytes=1KiB",
    )
    assert "kunlun_ops.rmsnorm: out of memory: the call's tensors hold 4128 bytes" in done.stdout
    assert f"{VARIABLE} allows 1024" in done.stdout, done.stderr


@torch_needed
def test_a_slow_op_waits_before_it_computes():
    pytest.importorskip("torch")
    done = python(
        "import time\nslept = []\ntime.sleep = slept.append\n" + INSTALL + NORM + "norm(3)\n"
        "print(slept)",
        "slow kunlun_ops.rmsnorm ms=40",
    )
    assert done.stdout.strip() == "[0.04]", done.stderr


def test_the_simulated_device_reports_the_memory_that_a_fault_leaves_it():
    done = python(
        "from kunlun_adapt.hooks import host\n"
        "print(host.simulated_total_memory(), host.simulated_memory_usage(),"
        " *host.simulated_available_memory())",
        "total_memory bytes=64MiB",
    )
    size = 64 * 1024**2
    assert [float(word) for word in done.stdout.split()] == [size, 0, size, size], done.stderr


@torch_needed
def test_faults_are_said_loudly_once_per_process():
    pytest.importorskip("torch")
    done = python(INSTALL + "s.install()", "nan kunlun_ops.swiglu; total_memory bytes=1GiB")
    lines = done.stderr.splitlines()
    assert sum("has no card" in line for line in lines) == 1
    said = [line.partition(f"FAULT INJECTED by {VARIABLE}: ")[2] for line in lines]
    assert [text for text in said if text] == [
        "nan kunlun_ops.swiglu",
        "total_memory bytes=1073741824",
    ]


@torch_needed
def test_nothing_is_installed_when_a_fault_is_not_understood():
    pytest.importorskip("torch")
    done = python(
        "import sys, kunlun_adapt.simulator as s\n"
        "try:\n    s.install()\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
        "print('kunlun_ops' in sys.modules)",
        "nan kunlun_ops.swigly",
    )
    assert done.stdout.splitlines()[0].startswith("AdaptError KUNLUN_ADAPT_SIMULATOR_FAULTS: ")
    assert done.stdout.splitlines()[1] == "False", done.stderr

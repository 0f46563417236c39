"""The simulator is there only when asked for, and then says so in each process and report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kunlun_adapt.runtime.probe import FAULTS
from kunlun_adapt.simulator import standin_paths
from kunlun_adapt.simulator.fault_syntax import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
HELD = "print([n for n in sys.modules if n.startswith('kunlun_adapt.simulator')])"
START = "import sglang.srt.platforms as p; print(type(p.current_platform).__name__)\n"


def python(code, *path, **env):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KUNLUN_ADAPT_", "SGLANG_"))}
    if "KUNLUN_ADAPT_CACHE" in os.environ:
        kept["KUNLUN_ADAPT_CACHE"] = os.environ["KUNLUN_ADAPT_CACHE"]
    kept["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, *path)))
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**kept, **env},
    )


def test_both_doors_know_the_variable_by_one_name():
    assert FAULTS == VARIABLE


@pytest.mark.parametrize("asked", [{}, {"KUNLUN_ADAPT_SIMULATOR": "0"}])
def test_a_process_that_does_not_ask_has_nothing_of_it(asked):
    done = python(
        "from kunlun_adapt.plugin import activate, register\n"
        f"print(activate(), register())\n{HELD}\n"
        "print([n for n in ('torch_xmlir', 'kunlun_ops', 'xspeedgate_ops') if n in sys.modules])",
        **asked,
    )
    assert done.stdout.splitlines() == ["None None", "[]", "[]"] and done.stderr == ""


@pytest.fixture(scope="module")
def upstream():
    if find_spec("sglang") is None:
        pytest.skip("SGLang is not installed")
    return standin_paths()


@pytest.mark.upstream
@pytest.mark.torch
def test_a_process_that_asks_says_so_loudly_and_in_its_report(upstream, tmp_path):
    done = python(
        START,
        *upstream,
        KUNLUN_ADAPT_SIMULATOR="1",
        KUNLUN_ADAPT_RUN_DIR=str(tmp_path),
        **{VARIABLE: "nan kunlun_ops.swiglu"},
    )
    assert done.stdout == "KunlunPlatform\n", done.stderr
    assert done.stderr.count("has no card") == 1
    assert done.stderr.count(f"FAULT INJECTED by {VARIABLE}: nan kunlun_ops.swiglu") == 1
    (report,) = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    assert report["simulator"] is True
    assert report["simulator_faults"] == [{"fault": "nan kunlun_ops.swiglu", "fired": 0}]


@pytest.mark.upstream
@pytest.mark.torch
def test_a_fault_that_is_not_understood_ends_the_start(upstream):
    done = python(
        START, *upstream, KUNLUN_ADAPT_SIMULATOR="1", **{VARIABLE: "nan kunlun_ops.swigly"}
    )
    assert done.returncode == 1 and "the start is refused" in done.stderr
    assert "no simulated op 'kunlun_ops.swigly'" in done.stderr
    assert "What to do: did you mean kunlun_ops.swiglu?" in done.stderr


@pytest.mark.upstream
@pytest.mark.torch
def test_a_vendor_op_that_is_missing_ends_the_start_and_names_the_tier(upstream):
    done = python(
        START + "import sglang.srt.layers.activation",
        *upstream,
        KUNLUN_ADAPT_SIMULATOR="1",
        **{VARIABLE: "missing kunlun_ops.swiglu"},
    )
    assert done.returncode == 1 and "the start is refused" in done.stderr
    assert "needs kunlun_ops.swiglu, which the vendor runtime does not have" in done.stderr

"""The stand-ins for triton and torchvision: when they are used, and that they refuse by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kunlun_adapt.simulator import STANDINS

ROOT = Path(__file__).resolve().parents[2]


def python(code, *path, isolated=True):
    """Run code with these folders on PYTHONPATH; isolated from what this environment installed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    flags = ["-S"] if isolated else []
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        env=env, cwd=os.sep, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


REPORT = (
    "from kunlun_adapt.simulator._paths import standin_report\n"
    "for r in standin_report(): print(r.package, r.used, r.why)"
)


def paths_module(tmp_path):
    """Copy the module alone: with -S its package's YAML dependency is not importable."""
    package = tmp_path / "alone" / "kunlun_adapt" / "simulator"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    text = (ROOT / "kunlun_adapt" / "simulator" / "_paths.py").read_text()
    (package / "_paths.py").write_text(text)
    return tmp_path / "alone"


def test_absent_packages_get_stand_ins(tmp_path):
    done = python(REPORT, paths_module(tmp_path))
    assert "triton True triton is not installed" in done.stdout, done.stderr
    assert "torchvision True torchvision is not installed" in done.stdout


def test_a_package_that_does_not_import_gets_a_stand_in_with_its_error(tmp_path):
    broken = tmp_path / "broken" / "torchvision"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('operator nms does not exist')")
    done = python(REPORT, paths_module(tmp_path), tmp_path / "broken")
    assert "torchvision True" in done.stdout and "operator nms does not exist" in done.stdout


def test_a_package_that_imports_is_left_alone(tmp_path):
    real = tmp_path / "real" / "triton"
    real.mkdir(parents=True)
    (real / "__init__.py").touch()
    (real / "language.py").touch()
    done = python(REPORT, paths_module(tmp_path), tmp_path / "real")
    assert "triton False" in done.stdout, done.stderr


KERNEL = """
import triton, triton.language as tl

@triton.autotune(configs=[triton.Config({'B': 8}, num_warps=2)], key=['n'])
@triton.heuristics({'EVEN': lambda a: True})
@triton.jit(do_not_specialize=['n'])
def scale_kernel(x, n: tl.int32, B: tl.constexpr, EVEN: tl.constexpr = tl.constexpr(True)):
    tl.store(x, tl.load(x))

assert triton.cdiv(9, 4) == 3
assert [triton.next_power_of_2(n) for n in (1, 5, 8)] == [1, 8, 8]
assert isinstance(scale_kernel.fn.fn, triton.runtime.jit.JITFunction)
try:
    scale_kernel[(1,)](None, 4, B=8)
except RuntimeError as error:
    print(error)
"""


def test_a_launched_kernel_names_itself_and_the_stand_in():
    done = python(KERNEL, STANDINS / "triton")
    assert "kunlun_adapt simulator stand-in" in done.stdout, done.stderr
    assert "scale_kernel" in done.stdout and "operator recipe" in done.stdout


def test_a_missing_name_of_triton_is_an_ordinary_miss_that_names_the_stand_in():
    code = "import triton; print(hasattr(triton, 'nope')); triton.nope"
    done = python(code, STANDINS / "triton")
    assert done.stdout.strip() == "False"
    assert "kunlun_adapt simulator stand-in" in done.stderr and "'nope'" in done.stderr


def test_there_is_no_active_driver():
    """Upstream asks for the driver's backend and takes a RuntimeError for "none"."""
    code = (
        "import triton\n"
        "try: triton.runtime.driver.active.get_current_target()\n"
        "except RuntimeError as error: print(error)"
    )
    assert "no active Triton driver" in python(code, STANDINS / "triton").stdout


def test_torchvision_has_a_real_enum_and_refuses_calls():
    code = (
        "from enum import Enum\n"
        "from torchvision.transforms import InterpolationMode, functional\n"
        "from torchvision.transforms.v2 import functional as newer\n"
        "from torchvision.io import decode_jpeg\n"
        "assert issubclass(InterpolationMode, Enum) and InterpolationMode('bicubic')\n"
        "assert newer.InterpolationMode is InterpolationMode\n"
        "for call in (decode_jpeg, functional.resize):\n"
        "    try: call(None)\n"
        "    except RuntimeError as error: print(error)"
    )
    done = python(code, STANDINS / "torchvision")
    assert done.stdout.count("kunlun_adapt simulator stand-in") == 2, done.stderr
    assert "decode_jpeg" in done.stdout and "functional.resize" in done.stdout


@pytest.mark.torch
def test_torch_compile_still_works_beside_the_stand_in():
    """torch looks for triton's insides as soon as a triton is importable."""
    pytest.importorskip("torch")
    code = "import torch._inductor.runtime.triton_compat as c; print(c.HAS_TRITON)"
    done = python(code, STANDINS / "triton", isolated=False)
    assert done.stdout.strip() == "True", done.stderr

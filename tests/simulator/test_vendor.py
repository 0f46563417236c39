"""install(): what it puts in place, and that it never hides a real vendor module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kunlun_adapt.simulator.contract import ABSENT, Argument, Contract
from kunlun_adapt.simulator.vendor import torch_schema

ROOT = Path(__file__).resolve().parents[2]
torch_needed = pytest.mark.torch


def python(code, *path):
    """Run code in a fresh interpreter: install() changes the whole process."""
    prelude = "".join(f"sys.path.insert(0, {str(p)!r}); " for p in (ROOT, *path))
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {prelude}\n{code}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_importing_the_simulator_loads_neither_torch_nor_sglang():
    done = python(
        "import kunlun_adapt.simulator\n"
        "print(sorted({'torch', 'sglang', 'kunlun_ops'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_install_refuses_a_real_module_that_is_only_installed(tmp_path):
    (tmp_path / "kunlun_ops.py").write_text("raise SystemExit('was imported')")
    done = python("import kunlun_adapt.simulator as s; s.install()", tmp_path)
    assert done.returncode == 1
    assert "the real kunlun_ops is installed" in done.stderr and "kunlun_ops.py" in done.stderr


def test_install_refuses_a_real_module_that_is_imported(tmp_path):
    (tmp_path / "torch_xmlir.py").write_text("")
    code = "import torch_xmlir, kunlun_adapt.simulator as s; s.install()"
    done = python(code, tmp_path)
    assert done.returncode == 1 and "the real torch_xmlir is already imported" in done.stderr


def test_install_refuses_names_that_are_no_vendor_modules():
    done = python("import kunlun_adapt.simulator as s; s.install(['numpy'])")
    assert done.returncode == 1 and "'numpy' is no vendor module" in done.stderr


@torch_needed
def test_install_puts_marked_modules_in_place_and_may_run_twice():
    pytest.importorskip("torch")
    done = python(
        "import kunlun_adapt.simulator as s, importlib.util\n"
        "first, second = s.install(), s.install()\n"
        "assert first == second, (first, second)\n"
        "assert 'kunlun_ops' in s.VENDOR_MODULES\n"
        "for name, version in s.VENDOR_MODULES.items():\n"
        "    module = __import__(name)\n"
        "    assert module.__simulator__ and module.__version__ == f'{version}+simulator'\n"
        "    assert importlib.util.find_spec(name) is not None\n"
        "import torch, kunlun_ops\n"
        "assert kunlun_ops.swiglu.__simulator__\n"
        "print(torch.ops.xspeedgate_ops.fused_moe)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "xspeedgate_ops.fused_moe" in done.stdout


@torch_needed
def test_an_op_that_is_not_simulated_names_the_simulator_and_the_way_out():
    pytest.importorskip("torch")
    done = python(
        "import kunlun_adapt.simulator as s; s.install()\n"
        "import kunlun_ops\n"
        "assert not hasattr(kunlun_ops, 'no_such_op')\n"
        "kunlun_ops.no_such_op"
    )
    assert "kunlun_adapt simulator: kunlun_ops.no_such_op is not simulated" in done.stderr
    assert "contracts/<family>.yaml" in done.stderr and "operator_recipes/" in done.stderr


@torch_needed
def test_a_breach_keeps_its_type_through_torch_ops():
    pytest.importorskip("torch")
    done = python(
        "import kunlun_adapt.simulator as s; s.install()\n"
        "import torch\n"
        "from kunlun_adapt.simulator.contract import ContractError\n"
        "ids = torch.zeros(2, 2, dtype=torch.int64)\n"
        "try:\n"
        "    torch.ops.xspeedgate_ops.moe_active_expert_balance(ids, 4, False)\n"
        "except ContractError as error:\n"
        "    print(error)\n"
    )
    assert "topk_ids is int64, the op takes int32" in done.stdout, done.stderr


def test_the_torch_schema_follows_the_contract():
    args = (
        Argument("x", "in"),
        Argument("n", "param", type="int", default=3),
        Argument("y", "out", optional=True),
        Argument("flag", "param", type="bool"),
        Argument("z", "inout", optional=True, default=ABSENT),
        Argument("mode", "param", type="str", default="a"),
    )
    contract = Contract("torch.ops.space.op", "f", "d", "s", args, (), 2)
    # Defaults before a required argument are dropped: torch has no place for them.
    assert torch_schema(contract) == (
        "op(Tensor x, int n, Tensor(a!)? y, bool flag, Tensor(b!)? z=None, "
        'str mode="a") -> (Tensor, Tensor)'
    )

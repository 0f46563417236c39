"""The cost of generated dispatch, as a ratio to the same conditions written by hand.

Both call the same kernel, which does nothing, so that only dispatch is timed. Needs torch.
"""

from __future__ import annotations

import statistics
import sys
import timeit
import types
from pathlib import Path

import torch

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import find_workspace
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import LockFacts, read_lock

ROUNDS = 15
CALLS = 50_000


def generated(root: Path, operator: str, function: str, release: str) -> types.FunctionType:
    """Return a generated function whose kernels do nothing; the text is otherwise as it runs."""
    lock = read_lock(root / "adapt.lock")
    plan = make_plan(load_catalog(root), LockFacts(lock, release), "simulator")
    text = compile_plan(plan, template_folder(root)).modules[f"operators/{operator}"]
    lines = []
    for line in text.splitlines():
        if line.startswith(("from kunlun_adapt.golden", "from kunlun_adapt.kernels")):
            name = line.rpartition(" as ")[2]
            lines.append(f"def {name}(*a, **k): return a[0]")
        elif not line.startswith("require("):
            lines.append(line)
    module = types.ModuleType("measured")
    exec(compile("\n".join(lines), "<measured>", "exec"), module.__dict__)
    found: types.FunctionType = getattr(module, function)
    return found


def nothing(*arguments: object, **keywords: object) -> object:
    return arguments[0]


class Norm:
    """What the generated function reads of an upstream RMSNorm."""

    variance_epsilon = 1e-6
    variance_size_override = None
    cast_x_before_out_mul = False
    fp32_residual = False
    override_orig_dtype = None

    def __init__(self) -> None:
        self.weight = torch.ones(512)


def by_hand(self, x, residual=None, post_residual_addition=None, quant_linear=None):
    """The tiers of rms_norm as one would write them in a plugin."""
    if x.dtype in (torch.float16, torch.bfloat16, torch.float32):
        if (
            residual is None
            and self.variance_size_override is None
            and self.cast_x_before_out_mul is False
            and self.override_orig_dtype is None
        ):
            return nothing(x.contiguous(), self.weight, self.variance_epsilon)
        if (
            residual is not None
            and post_residual_addition is None
            and self.variance_size_override is None
            and self.cast_x_before_out_mul is False
            and self.fp32_residual is False
            and self.override_orig_dtype is None
        ):
            return nothing(
                x.contiguous(), self.weight, self.variance_epsilon, residual.contiguous()
            )
    return nothing(x, self.weight, self.variance_epsilon, residual)


def main() -> int:
    ours = generated(find_workspace(), "rms_norm", "bind_RMSNorm", "0.5.19")
    norm, x = Norm(), torch.zeros(7, 512)
    for name, arguments in (("rms_norm", (x,)), ("rms_norm with residual", (x, x))):
        ratios, times = [], []
        for _ in range(ROUNDS):
            hand = timeit.timeit(lambda a=arguments: by_hand(norm, *a), number=CALLS)
            mine = timeit.timeit(lambda a=arguments: ours(norm, *a), number=CALLS)
            ratios.append(mine / hand)
            times.append(mine / CALLS * 1e9)
        print(
            f"{name}: generated / by hand = {statistics.median(ratios):.2f} "
            f"({statistics.median(times):.0f} ns a call)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

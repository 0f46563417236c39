"""The cost of generated dispatch, as a ratio to the same conditions written by hand.

Both call one kernel, which has the operator's parameters and does nothing, so that only dispatch is
timed; the peers are in `by_hand.py`. A second ratio is that of the generated text without what a
plugin written by hand lacks, the counters and the question whether torch.compile traces the call.
Needs torch.
"""

from __future__ import annotations

import inspect
import re
import statistics
import sys
import timeit
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arguments import at_least, parser

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import find_workspace
from kunlun_adapt.plan import Plan, make_plan
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import LockFacts, read_lock

if TYPE_CHECKING:  # the help needs no torch
    import torch

RELEASE = "0.5.19"
ROUNDS = 101
CALLS = 2_000
LEAN = (
    (re.compile(r"\bis_compiling\(\)"), "False"),
    (re.compile(r"\bserved\[\d+\] \+= 1"), "pass"),
)


@dataclass(frozen=True)
class Case:
    """One call of one generated function, and the same by hand."""

    name: str
    operator: str
    function: str
    hand: Callable[..., Callable[..., Any]]
    arguments: tuple[Any, ...] = field(repr=False)


class Norm:
    """What the generated function reads of an upstream RMSNorm."""

    variance_epsilon = 1e-6
    variance_size_override = None
    cast_x_before_out_mul = False
    fp32_residual = False
    override_orig_dtype = None

    def __init__(self) -> None:
        import torch

        self.weight = torch.ones(512)


class Rotary:
    """What the generated function reads of an upstream RotaryEmbedding."""

    head_size = rotary_dim = 64
    is_neox_style = True

    def __init__(self, dtype: torch.dtype) -> None:
        import torch

        self.cos_sin_cache = torch.ones(16, 64, dtype=dtype)


def cases() -> list[Case]:
    import by_hand
    import torch

    x = torch.zeros(7, 512)
    places = torch.arange(7)
    narrow = x.to(torch.bfloat16)
    norm, silu, topk = by_hand.rms_norm, by_hand.silu_and_mul, by_hand.moe_topk
    turn = by_hand.rotary_embedding
    return [
        Case("rms_norm", "rms_norm", "bind_RMSNorm", norm, (Norm(), x)),
        Case("rms_norm with residual", "rms_norm", "bind_RMSNorm", norm, (Norm(), x, x)),
        Case("silu_and_mul", "silu_and_mul", "bind_SiluAndMul", silu, (None, x)),
        Case(
            "rotary_embedding, first tier", "rotary_embedding", "bind_RotaryEmbedding", turn,
            (Rotary(torch.bfloat16), places, narrow, narrow),
        ),
        Case(
            "rotary_embedding, third tier", "rotary_embedding", "bind_RotaryEmbedding", turn,
            (Rotary(torch.float32), places, x, x),
        ),
        Case("moe_topk, first tier", "moe_topk", "bind_fused_topk_native", topk, (x, x, 2, True)),
        Case("moe_topk, second tier", "moe_topk", "bind_fused_topk_native", topk, (x, x, 2, False)),
    ]  # fmt: skip


def kernel_of(plan: Plan, operator: str) -> Callable[..., Any]:
    """Return a function that takes what the operator's kernels take and does nothing."""
    model = next(r.model for r in plan.operators if r.model.name == operator)
    fixed = {name: None for tier in model.kernels for name in tier.fixed}
    made: dict[str, Any] = {}
    parameters = ", ".join([*model.params, *(f"{name}=None" for name in fixed)])
    exec(f"def kernel({parameters}):\n    return {next(iter(model.params))}", made)
    return made["kernel"]


def generated(text: str, kernel: Callable[..., Any], lean: bool = False) -> types.ModuleType:
    """Return a generated module whose kernels do nothing; the text is otherwise as it runs."""
    module = types.ModuleType("measured")
    lines = []
    for line in text.splitlines():
        if line.startswith(("from kunlun_adapt.golden", "from kunlun_adapt.kernels")):
            setattr(module, line.rpartition(" as ")[2], kernel)
        elif not line.startswith("require("):
            lines.append(line)
    text = "\n".join(lines)
    for pattern, instead in LEAN if lean else ():
        text = pattern.sub(instead, text)
    exec(compile(text, "<measured>", "exec"), module.__dict__)
    return module


def seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """Return the time of some calls, with nothing around a call but the loop."""
    names = [f"a{i}" for i in range(len(arguments))]
    values = dict(zip(names, arguments, strict=True))
    timer = timeit.Timer(f"f({', '.join(names)})", globals={"f": function, **values})
    return timer.timeit(CALLS)


def main() -> int:
    taken = parser(__doc__)
    taken.add_argument(
        "rounds", nargs="?", type=at_least(3), default=ROUNDS, help="default: %(default)s"
    )
    rounds = taken.parse_args().rounds
    root = find_workspace()
    plan = make_plan(
        load_catalog(root), LockFacts(read_lock(root / "adapt.lock"), RELEASE), "simulator"
    )
    texts = compile_plan(plan, template_folder(root)).modules
    print("generated / by hand (middle half of the rounds); without asking and counting")
    for case in cases():
        kernel, text = kernel_of(plan, case.operator), texts[f"operators/{case.operator}"]
        # The lean one first: the op of the later replaces that of the earlier.
        lean = getattr(generated(text, kernel, lean=True), case.function)
        ours = getattr(generated(text, kernel), case.function)
        hand = case.hand(*[kernel] * len(inspect.signature(case.hand).parameters))
        ratios, leans, times = [], [], []
        for _ in range(rounds):
            by, mine, less = (seconds(f, case.arguments) for f in (hand, ours, lean))
            ratios.append(mine / by)
            leans.append(less / by)
            times.append((by, mine))
        low, middle, high = statistics.quantiles(ratios, n=4)
        by, mine = (statistics.median(t[i] for t in times) / CALLS * 1e9 for i in (0, 1))
        print(
            f"{case.name}: {middle:.2f} ({low:.2f} to {high:.2f}); {statistics.median(leans):.2f}; "
            f"{mine:.0f} and {by:.0f} ns a call"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

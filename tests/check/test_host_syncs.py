"""KA314: adapters of operators that may be captured do not wait for the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.check.host_syncs import host_syncs
from kunlun_adapt.check.implementations import Implementation, Implementations
from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.upstream import Lock, LockFacts
from tests.check.bench import IMPLS, RECIPE, Bench
from tests.check.said import codes, only

BODY = "turn):\n    return x\n"


def with_body(bench: Bench, *lines: str) -> Bench:
    """Give the adapter another body."""
    return bench.edit(IMPLS, BODY, "turn):\n" + "".join(f"    {line}\n" for line in lines))


WAITS = [
    ("return x.item()", "x.item()"),
    ("return x.cpu()", "x.cpu()"),
    ("return known.lengths.tolist()", "known.lengths.tolist()"),
    ("return x.detach().numpy()", "x.detach().numpy()"),
    ("return x.to('cpu')", "x.to('cpu')"),
    ("return x.to(device='cpu')", "x.to(device='cpu')"),
    ("torch.cuda.synchronize()", "torch.cuda.synchronize()"),
    ("print(x)", "print(x)"),
    ("log(f'{x} is odd')", "x"),
    ("return int(x)", "int(x)"),
    ("if x: return out", "x"),
    ("if not x: return out", "not x"),
    ("while x.shape and x > 0: pass", "x.shape and x > 0"),
    ("assert (x >= 0).all()", "(x >= 0).all()"),
    ("if (total := 1) and x.sum() > 3: pass", "(total := 1) and x.sum() > 3"),
    ("return x if x[0] else out", "x[0]"),
    ("return torch.equal(x, out)", "torch.equal(x, out)"),
    ("for i in range(x.max().item()): pass", "x.max().item()"),
    ("with torch.no_grad(): print(x.T)", "print(x.T)"),
    ("try:\n        pass\n    except E:\n        x.tolist()", "x.tolist()"),
    ("limit = torch.zeros(3)\n    if limit.any(): pass", "limit.any()"),
    ("a, b = x * 2, 3\n    bool(a)", "bool(a)"),
    ("if torch.cuda.is_current_stream_capturing(): x.item()", "x.item()"),
]


@pytest.mark.parametrize(("body", "said"), WAITS)
def test_it_fires(bench: Bench, body: str, said: str) -> None:
    changed = with_body(bench, body)
    found = only(changed.findings(), "KA314")
    assert f"at `{said}` (our_impls.py:" in found.message
    assert str(found.position) == changed.place(RECIPE, '"our_impls:swiglu"')


QUIET = [
    "if x is None or out is not None: return out",
    "if x.shape[0] > 3 and x.numel(): return x",
    "if x.is_contiguous() and x.stride(0) == 1: return x",
    "if turn: return x\n    print(turn)",
    "return int(x.shape[0])",
    "return x.to(torch.float16)",
    "if torch.is_tensor(x): return x",
    "if x.dtype in (1, 2): return x",
    "x = x.shape\n    if x: return x",
    "if not torch.cuda.is_current_stream_capturing(): x.item()",
    "if torch.cuda.is_current_stream_capturing(): return x\n    else: x.item()",
    "log(f'{x.shape} is odd')",
    "return torch.where(x > 0, x, 0)",
]


@pytest.mark.parametrize("body", QUIET)
def test_what_the_host_knows_is_quiet(bench: Bench, body: str) -> None:
    assert codes(with_body(bench, body).findings()) == []


def test_an_eager_operator_may_wait(bench: Bench) -> None:
    waits = with_body(bench, "return x.item()")
    assert codes(waits.edit(RECIPE, "capture: safe", "capture: eager").findings()) == []


def test_calls_are_followed_through_the_package_and_each_function_once(bench: Bench) -> None:
    changed = with_body(bench, "return first(x)").add(
        IMPLS,
        "\n\nfrom our_other import again\n\n\ndef first(x):\n    return again(first(x))\n",
    )
    assert codes(changed.findings()) == []  # another package is not ours to read
    within = changed.edit(IMPLS, "return again(first(x))", "return second(first(x))").add(
        IMPLS, "\n\ndef second(t):\n    second(t)\n    return t.tolist()\n"
    )
    assert within.findings()[0].message.count("t.tolist()") == 1


def test_annotations_tell_tensors(bench: Bench) -> None:
    changed = with_body(bench, "return helper(3, x, None)").add(
        IMPLS,
        "\n\ndef helper(n: int, t: 'Tensor', u: torch.Tensor | None):\n"
        "    if n:\n        return n\n    if u is not None and u:\n        return bool(t)\n",
    )
    message = only(changed.findings(), "KA314").message
    assert "`u is not None and u`" in message and "`bool(t)`" in message and "`n`" not in message


def test_many_places_are_counted(bench: Bench) -> None:
    changed = with_body(bench, *(f"x.item({n})" for n in range(5)))
    assert " and 2 more, and its operator" in only(changed.findings(), "KA314").message


def test_of_the_golden_it_only_informs(bench: Bench) -> None:
    changed = bench.edit(
        IMPLS, "silu_golden(x, out):\n    return x", "silu_golden(x, out):\n    return x.tolist()"
    )
    found = only(changed.findings(), "KA314")
    assert found.severity is Severity.INFO and "must not fall back" in found.message
    assert str(found.position) == changed.place(RECIPE, '"our_impls:silu_golden"')


def test_no_shipped_adapter_waits() -> None:
    root = Path(__file__).resolve().parents[2]
    finder = Implementations(root, LockFacts(Lock(), "0.5.19"))
    read = 0
    for recipe in load_catalog(root).operators:
        tensors = [n for n, kind in recipe.model.params.items() if kind.startswith("Tensor")]
        for tier in recipe.model.kernels:
            if recipe.model.capture != "safe" or tier.impl is None or not recipe.model.golden:
                continue
            function = finder.find(tier.impl)
            assert isinstance(function, Implementation) and function.node is not None, tier.impl
            assert host_syncs(function, tensors, finder.find) == [], tier.impl
            read += 1
    assert read > 10

"""KA314: adapters of operators that may be captured do not wait for the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.check.host_syncs import Sync, host_syncs, is_readable
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


CAPTURING = "torch.cuda.is_current_stream_capturing()"
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
    # Words of Python
    ("n = max(x)", "max(x)"),
    ("n = max(known, x.sum())", "max(known, x.sum())"),
    ("n = sorted(x)", "sorted(x)"),
    ("n = any(row > 0 for row in x)", "any((row > 0 for row in x))"),
    ("n = range(x[0])", "range(x[0])"),
    ("n = math.ceil(x.max())", "math.ceil(x.max())"),
    ("n = operator.index(x)", "operator.index(x)"),
    ("h = np.asarray(x)", "np.asarray(x)"),
    ("x.__bool__()", "x.__bool__()"),
    ("y = x or out", "x or out"),
    ("y = not x", "not x"),
    ("n = 0 < x.sum() < 3", "0 < x.sum() < 3"),
    ("if 3 in x: pass", "3 in x"),
    ("if x.sum() in (1, 2): pass", "x.sum() in (1, 2)"),
    ("match x:\n        case 1: pass", "x"),
    ("match known:\n        case 1 if x.any(): pass", "x.any()"),
    ("n = [i for i in known if x[i]]", "x[i]"),
    ("n = known.shape[x.max():]", "known.shape[x.max():]"),
    ("n = lambda: x.item()", "x.item()"),
    # Spelt
    ("logger.info('%s', x)", "logger.info('%s', x)"),
    ("self.log.warning('is', extra=x)", "self.log.warning('is', extra=x)"),
    ("raise ValueError('%s' % x)", "'%s' % x"),
    ("raise ValueError('%s %s' % (1, x))", "'%s %s' % (1, x)"),
    ("log('{}'.format(x))", "'{}'.format(x)"),
    ("log(f'{x!r:>3}')", "x"),
    ("print(x.chunk(2))", "print(x.chunk(2))"),
    # As many as the values say
    ("z = out[x > 0]", "out[x > 0]"),
    ("mask = ~torch.isnan(x)\n    z = out[:, mask]", "out[:, mask]"),
    ("mask = x.bool().view(-1)\n    out[mask] = x", "out[mask]"),
    ("out[x > 0] += 1", "out[x > 0]"),
    ("z = torch.masked_select(x, out)", "torch.masked_select(x, out)"),
    ("z = x.unique()", "x.unique()"),
    ("n = torch.where(x)[0]", "torch.where(x)"),
    ("z = out.repeat_interleave(x)", "out.repeat_interleave(x)"),
    ("z = torch.repeat_interleave(out, x, dim=0)", "torch.repeat_interleave(out, x, dim=0)"),
    ("z = torch.arange(x.max())", "torch.arange(x.max())"),
    ("z = out.view(x[0], 2)", "out.view(x[0], 2)"),
    ("z = torch.tensor([x.max(), 1])", "torch.tensor([x.max(), 1])"),
    # What holds a tensor
    ("if (t := x.sum()) is not None and t: pass", "(t := x.sum()) is not None and t"),
    ("(a, b) = x.chunk(2)\n    if a > 0: pass", "a > 0"),
    ("values, at = x.topk(2)\n    int(at)", "int(at)"),
    ("n = int(x.max(dim=0).values)", "int(x.max(dim=0).values)"),
    ("a, *rest = x\n    if rest[0]: pass", "rest[0]"),
    ("for row in x:\n        if row: pass", "row"),
    ("for i, (a, b) in enumerate(zip(x, out)):\n        int(b)", "int(b)"),
    ("for row in x.unbind():\n        int(row)", "int(row)"),
    ("n = [int(row) for row in list(x)]", "int(row)"),
    ("t = 1\n    t += x\n    if t: pass", "t"),
    ("t: torch.Tensor = known.made()\n    if t: pass", "t"),
    ("t: list[torch.Tensor] = known.made()\n    int(t[0])", "int(t[0])"),
    ("t = cast(Any, x)\n    if t: pass", "t"),
    ("if F.softmax(x, -1).sum(): pass", "F.softmax(x, -1).sum()"),
    ("t = known.lens_cpu.to(x.device)\n    if t.sum(): pass", "t.sum()"),
    ("def inner(t: torch.Tensor): return int(t)", "int(t)"),
    # Brought to the host
    ("known.lens_cpu.copy_(x)", "known.lens_cpu.copy_(x)"),
    ("if x.cpu().any(): pass", "x.cpu()"),
    # No guard
    (f"if x.any() and {CAPTURING}: pass", f"x.any() and {CAPTURING}"),
    (f"if {CAPTURING} and x.any(): pass", f"{CAPTURING} and x.any()"),
    (f"if not {CAPTURING} or turn: x.item()", "x.item()"),
    (f"if {CAPTURING} and turn: return x\n    x.item()", "x.item()"),
    (f"if {CAPTURING}: known.note()\n    x.item()", "x.item()"),
    ("n = x.item() if capturing else 0", "x.item()"),
    ("if self.capture_sizes: return x\n    x.item()", "x.item()"),
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
    # Outside a capture
    f"if not {CAPTURING} and turn: print(x)",
    f"if {CAPTURING}: return x\n    x.item()",
    f"if {CAPTURING} or turn: return x\n    x.item()",
    f"if not {CAPTURING}: pass\n    else: return x\n    x.item()",
    f"if {CAPTURING} is False: x.item()",
    f"assert not {CAPTURING}\n    x.item()",
    f"eager = not {CAPTURING}\n    if eager: x.item()",
    f"if not {CAPTURING} and x.any(): pass",
    f"if {CAPTURING} or x.any(): pass",
    f"for i in known:\n        if {CAPTURING}: continue\n        x.item()",
    "n = x.item() if not capturing else 0",
    "n = 0 if get_is_capture_mode() else x.item()",
    "if not_capturing: x.item()",
    # On the host, or known there
    "n = known.seq_lens_cpu.tolist()",
    "if known.lens_cpu.max() > 3: pass",
    "lens_cpu = known.made()\n    n = [int(one) for one in lens_cpu]",
    "n = config.limit.item() + self.hf_config.n.item()",
    "t = torch.zeros(3, device='cpu')\n    if t.any(): pass",
    "t = torch.empty(3, pin_memory=True)\n    t.tolist()",
    "known.lens_cpu.copy_(x, non_blocking=True)",
    "n = known.table.numpy()",
    "if x.is_complex() or x.is_pinned() or x.type() == 'a': pass",
    "if torch.numel(x) > 1 and torch.result_type(x, out): pass",
    "if torch.get_default_dtype() == torch.float16: pass",
    "if x.untyped_storage().nbytes() > 3: pass",
    "if x.itemsize > 2 and x.T.shape == x.shape: pass",
    # Of a tensor, without its values
    "for row in x: out = row + 1",
    "a, b = x.chunk(2)\n    return list(x) + [a, b]",
    "if x.chunk(2): pass",
    "n = len(x) + max(x.shape[0], 3) + sum(x.shape)",
    "z = out[x]",
    "out[x > 0] = 0",
    "n = known.shape[x.dim()]",
    "z = out.repeat_interleave(x, output_size=9)",
    "z = out.repeat_interleave(2)",
    "z = torch.zeros(x.shape[0], dtype=x.dtype)",
    "z = torch.stack([x, out])",
    "z = x.view(torch.int8).expand_as(out)",
    "match x.dim():\n        case 1: pass",
    "match x:\n        case None: pass",
    "mask = (x > 0).sum()\n    z = out[mask]",
    "known.record('%s', x)",
    "n = x % 3",
    "torch.cuda.current_stream().wait_stream(known)",
]


@pytest.mark.parametrize("body", QUIET)
def test_what_the_host_knows_is_quiet(bench: Bench, body: str) -> None:
    assert codes(with_body(bench, body).findings()) == []


def test_an_eager_operator_may_wait(bench: Bench) -> None:
    waits = with_body(bench, "return x.item()")
    assert codes(waits.edit(RECIPE, "capture: safe", "capture: eager").findings()) == []


def test_a_tier_may_say_otherwise_than_its_operator(bench: Bench) -> None:
    waits = with_body(bench, "return x.item()")
    tier = "    fixed: {turn"
    eager = waits.edit(RECIPE, tier, f"    capture: eager\n{tier}")
    assert codes(eager.findings()) == []
    safe = waits.edit(RECIPE, "capture: safe", "capture: eager").edit(
        RECIPE, tier, f"    capture: safe\n{tier}"
    )
    assert "marked `capture: safe`" in only(safe.findings(), "KA314").message


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


HELPERS = """

def helper(n, t, *, limit=None):
    return limit if limit else n


class Swiglu:
    def forward(self, x, out, *, turn):
        return self.count(x)

    def count(self, t):
        return len(t) if t else 0
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("helper(x, 1)", ""),
        ("helper(1, 2, limit=x)", "`limit` ("),
        ("helper(limit=x.sum(), n=1)", "`limit` ("),
        ("unknown(x)", ""),
    ],
)
def test_what_is_handed_on_is_a_tensor_there(bench: Bench, call: str, said: str) -> None:
    changed = with_body(bench, f"return {call}").add(IMPLS, HELPERS)
    messages = [f.message for f in changed.findings()]
    assert len(messages) == bool(said) and all(said in m for m in messages)


def test_methods_are_followed(bench: Bench) -> None:
    changed = bench.add(IMPLS, HELPERS).edit(
        RECIPE, '"our_impls:swiglu"', '"our_impls:Swiglu.forward"'
    )
    found = [f for f in changed.findings() if f.code == "KA314"]
    assert ["`t` (our_impls.py:" in f.message for f in found] == [True]


PACKAGE = {
    "our_parts/__init__.py": "",
    "our_parts/deep.py": "def count(t):\n    return t.item()\n",
    "our_parts/near.py": "from our_parts import deep\n\n\ndef near(t):\n    deep.count(t)\n",
}


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("from our_parts import deep", "deep.count(x)"),
        ("from our_parts.deep import count as many", "many(x)"),
        ("from . import deep as other", "other.count(x)"),
        ("import our_parts.deep", "our_parts.deep.count(x)"),
        ("import our_parts.deep as deep", "deep.count(x)"),
        ("from our_parts import near", "near.near(x)"),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_calls_through_modules_are_followed(
    tmp_path: Path, line: str, call: str, inside: bool
) -> None:
    head, within = ("", f"    {line}\n") if inside else (f"{line}\n", "")
    text = f"{head}def start(x):\n{within}    return {call}\n"
    for name, content in {**PACKAGE, "our_parts/start.py": text}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    finder = Implementations(tmp_path, LockFacts(Lock(), "0.5.19"))
    function = finder.find("our_parts.start:start")
    assert isinstance(function, Implementation)
    assert host_syncs(function, ["x"], finder.find) == [Sync("our_parts/deep.py:2", "t.item()")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\nclass Other:\n    pass\n", "our_impls:Other is a class: whether it waits"),
        ("\n\nOther = swiglu\n", "our_impls:Other is a value: whether it waits"),
    ],
)
def test_what_cannot_be_read_is_said(bench: Bench, text: str, said: str) -> None:
    changed = bench.add(IMPLS, text).edit(RECIPE, '"our_impls:swiglu"', '"our_impls:Other"')
    (found,) = (f for f in changed.findings() if f.code == "KA314")
    assert found.severity is Severity.INFO and said in found.message


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
    assert " and 2 more, and is marked" in only(changed.findings(), "KA314").message


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
            assert isinstance(function, Implementation) and is_readable(function), tier.impl
            assert host_syncs(function, tensors, finder.find) == [], tier.impl
            read += 1
    assert read > 10

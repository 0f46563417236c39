"""KA005: names that a hook's function reads from its call and that `args` does not map."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Severity
from tests.check.bench import IMPLS, MAP, Bench
from tests.check.said import codes, only

BODY = '    return call.args.get("gpu_id")\n'
NEW = "set_affinity, args: {gpu_id: gpu_id}"
OLD = "set_gpu_affinity, args: {gpu_id: gpu_id}"


def reading(bench: Bench, body: str, beside: str = "") -> Bench:
    """Let the hook's function do something else, with other functions of the module beside it."""
    text = "".join(f"    {line}\n" for line in body.splitlines())
    return bench.edit(IMPLS, BODY, text).add(IMPLS, beside)


@pytest.mark.parametrize("entry", [NEW, OLD])
def test_a_misspelt_key_of_any_range(bench: Bench, entry: str) -> None:
    needing = reading(bench, 'return int(call.args["gpu_id"])')
    changed = needing.edit(MAP, entry, entry.replace("gpu_id:", "gpu_idd:"))
    found = only(changed.findings(), "KA005")
    assert found.message == (
        "set_affinity reads 'gpu_id' from its call (our_impls.py:14), and `args` does not map it"
    )
    assert (found.binding, found.severity) == ("affinity", Severity.ERROR)
    assert str(found.position) == changed.place(MAP, "gpu_idd")
    assert found.suggestion == "did you mean gpu_id?"


def test_a_key_that_is_missing(bench: Bench) -> None:
    changed = reading(bench, 'return call.args["gpu_id"], call.args["nnodes"]')
    older, newer = changed.findings()
    assert older.suggestion == '`args: {gpu_id: gpu_id, nnodes: "…"}`'
    assert newer.suggestion == (
        "`args: {gpu_id: gpu_id, nnodes: nnodes}`, and take it out of `ignores`"
    )
    assert str(newer.position) == changed.place(MAP, NEW, NEW.index("{"))


HELPER = 'def pin(how, it, *, cards=None):\n    return it.args["card"]\n'
READS = [
    ('return call.args["card"]', ""),
    ('return call.args.pop("card")', ""),
    ("return call.original(card=1)", ""),
    ('args = call.args\nreturn args["card"]', ""),
    ('return [call.args["card"] for _ in range(2)]', ""),
    ('if call.args["card"]:\n    return 1', ""),
    ('if call.args["gpu_id"]:\n    return call.args["card"]', ""),
    ("def late():\n    return call.args['card']\nreturn late", ""),
    ("return pin(1, call)", HELPER),
    ("return pin(1, it=call)", HELPER),
    ("return pin(1, call.args)", HELPER.replace("it.args", "it")),
    ("return again(call)", f"def again(call):\n    return pin(0, call) or again(call)\n{HELPER}"),
]


@pytest.mark.parametrize(("body", "beside"), READS)
def test_every_way_to_read(bench: Bench, body: str, beside: str) -> None:
    found = reading(bench, body, beside).findings()
    assert codes(found) == ["KA005", "KA005"]  # one for each range
    assert all("reads 'card' from its call" in f.message for f in found)
    mapped = reading(bench, body, beside)
    for entry in (OLD, NEW):
        mapped = mapped.edit(MAP, entry, entry.replace("gpu_id}", "gpu_id, card: gpu_id}"))
    assert codes(mapped.findings()) == []


QUIET = [
    ('return call.args.get("card")', ""),
    ('return call.args.get("card") and call.args["card"]', ""),
    ('return "card" in call.args and call.args["card"]', ""),
    ('call.args["card"] = 1', ""),
    ("return call.original(), call.id, call.result", ""),
    ("return other.args['card']", ""),
    ("call = object()\nreturn call.args['card']", ""),
    ("return [f(1) for f in (lambda call: call.args['card'],)]", ""),
    ("return pin(1, 2)", HELPER),
    ("return call.args[call.id]", ""),
]


@pytest.mark.parametrize(("body", "beside"), QUIET)
def test_what_may_be_left_out(bench: Bench, body: str, beside: str) -> None:
    assert codes(reading(bench, body, beside).findings()) == []


def test_a_branch_for_another_range(bench: Bench) -> None:
    body = 'if call.args["gpu_id"]:\n    return call.args["cards"]'
    changed = reading(bench, body).edit(MAP, OLD, OLD.replace("gpu_id}", "gpu_id, cards: tp_size}"))
    assert codes(changed.findings()) == []
    slip = changed.edit(MAP, NEW, NEW.replace("gpu_id}", "gpu_id, card: gpu_id}"))
    assert only(slip.findings(), "KA005").suggestion == "did you mean cards?"


def test_a_slip_of_a_name_that_may_be_left_out(bench: Bench) -> None:
    slip = bench.edit(MAP, NEW, NEW.replace("{gpu_id:", "{gpu_idd:"))
    assert only(slip.findings(), "KA005").suggestion == "did you mean gpu_id?"
    anything = slip.edit(IMPLS, 'call.args.get("gpu_id")', 'call.args.get("gpu_id"), vars(call)')
    assert codes(anything.findings()) == []

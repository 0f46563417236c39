"""Hooks that take upstream's own arguments: which of upstream's calls they cannot take."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.check.as_upstream import refused
from kunlun_adapt.upstream import Location, Signature, Symbol
from kunlun_adapt.upstream.symbols import SymbolKind
from tests.check.bench import IMPLS, MAP, Bench

TAKES = '    impl: "our_impls:set_affinity"\n    takes: arguments\n'


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        ("(a, b=1)", "(a, b=1)", []),
        ("(a, b=1)", "(*args, **kwargs)", []),
        ("(a, b=1)", "(a, b=1, *, extra=None)", []),
        ("(a, /)", "(other, /)", []),
        ("(a, b=1)", "(a)", ["there is no place for 'b', which may be passed by position"]),
        ("(a, b=1)", "(a, b)", ["'b' may be left out, and 'b' has no default"]),
        ("(a, b=1)", "(x, b=1)", ["'a' may be passed by name, and is called 'x' here"]),
        ("(a, b=1)", "(a, *args)", ["'b' may be passed by name"]),
        ("(a)", "(a, more)", ["nothing is passed for 'more'"]),
        ("(a)", "(a, *, more)", ["nothing is passed for 'more'"]),
        ("(a, *, b)", "(a)", ["it does not take 'b'"]),
        ("(a, *, b)", "(a, b)", []),
        ("(*args)", "(a=1)", ["it does not take what upstream's 'args' collects"]),
        ("(**kw)", "()", ["it does not take what upstream's 'kw' collects"]),
    ],
)
def test_a_replacement(theirs: str, ours: str, said: list[str]) -> None:
    assert list(refused("replace", symbol(theirs), Signature.parse(ours))) == said


@pytest.mark.parametrize(
    ("kind", "ours", "said"),
    [
        ("around", "(original, a)", []),
        ("around", "(a)", ["there is no place for 'a', which may be passed by position"]),
        ("around", "()", ["there is no parameter for the original"]),
        ("after", "(result, a)", []),
        ("after", "()", ["there is no parameter for the result"]),
        ("before", "(a)", []),
        ("after", "(*args, **kwargs)", []),
    ],
)
def test_what_comes_before_upstreams_arguments(kind: str, ours: str, said: list[str]) -> None:
    found = list(refused(kind, symbol("(a)"), Signature.parse(ours)))
    assert found[: len(said)] == said and bool(found) == bool(said)


def test_the_receiver_may_have_any_name() -> None:
    method = symbol("(self, a)", "method")
    assert list(refused("replace", method, Signature.parse("(layer, a)"))) == []
    assert list(refused("replace", method, Signature.parse("()")))


def symbol(signature: str, kind: SymbolKind = "function") -> Symbol:
    return Symbol(
        path="sglang.srt.f",
        resolved="sglang.srt.f",
        kind=kind,
        location=Location("sglang/srt.py", 1),
        module="sglang.srt",
        qualname="f",
        signature=Signature.parse(signature),
    )


def bound(bench: Bench, signature: str, before: str = "") -> Bench:
    """A workspace whose hook takes upstream's arguments as they are."""
    bench = bench.edit(MAP, '    impl: "our_impls:set_affinity"\n', TAKES)
    mapped = ", args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}"
    bench = bench.edit(MAP, mapped, "")
    bench = bench.edit(MAP, "set_gpu_affinity, args: {gpu_id: gpu_id}}", "set_gpu_affinity}")
    old = 'def set_affinity(call):\n    return call.args.get("gpu_id")\n'
    return bench.edit(IMPLS, old, f"{before}def set_affinity{signature}:\n    return None\n")


def said(bench: Bench) -> list[str]:
    return [f.message for f in bench.findings() if f.binding == "affinity"]


def test_upstreams_signature_is_what_it_needs(tmp_path: Path) -> None:
    assert said(bound(Bench(tmp_path), "(gpu_id, tp_size, nnodes=1)")) == []


def test_another_signature_is_a_finding(tmp_path: Path) -> None:
    bench = bound(Bench(tmp_path), "(gpu_id)")
    (found,) = (f for f in bench.findings() if f.code == "KA302")
    assert "does not take what upstream's set_affinity(gpu_id, tp_size, nnodes=1)" in found.message
    assert "there is no place for 'tp_size'" in found.message
    assert str(found.upstream) == "sglang/srt/utils/common.py:4"


HANDS_BACK = """\
def noted(name):
    def decorator(function):
        return function
    return decorator

def also(name):
    return noted(name)

def plain(function):
    return function

"""
CHANGES = """\
import functools

def noted(name):
    def decorator(function):
        @functools.wraps(function)
        def inner(*args):
            return function(1)
        return inner
    return decorator

"""


@pytest.mark.parametrize("decorator", ['noted("x")', 'also("x")', "plain"])
def test_decorators_that_hand_back_what_they_get(tmp_path: Path, decorator: str) -> None:
    bench = bound(Bench(tmp_path), "(gpu_id)", f"{HANDS_BACK}@{decorator}\n")
    assert [f.code for f in bench.findings() if f.binding == "affinity"] == ["KA302"]


@pytest.mark.parametrize("decorator", ['noted("x")', "unknown", "unknown.of.it()"])
def test_what_another_decorator_makes_is_not_known(tmp_path: Path, decorator: str) -> None:
    assert said(bound(Bench(tmp_path), "(gpu_id)", f"{CHANGES}@{decorator}\n")) == []


def test_upstreams_own_registration_hands_back_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path).add(
        "sglang/srt/plugins/hook_registry.py",
        """\
        def plugin_hook(target):
            def decorator(hook):
                return hook
            return decorator
        """,
    )
    before = 'from sglang.srt.plugins.hook_registry import plugin_hook\n\n@plugin_hook("x")\n'
    codes = [f.code for f in bound(bench, "(gpu_id)", before).findings() if f.binding == "affinity"]
    assert codes == ["KA302"]


@pytest.mark.parametrize(
    ("old", "new", "needle"),
    [
        ("    type: replace\n", "    type: set\n", "a hook of type set takes no arguments"),
        (
            "common.set_affinity}",
            "common.set_affinity, args: {gpu_id: gpu_id}}",
            "maps none of them",
        ),
    ],
)
def test_what_the_documents_refuse(tmp_path: Path, old: str, new: str, needle: str) -> None:
    bench = bound(Bench(tmp_path), "(gpu_id, tp_size, nnodes=1)").edit(MAP, old, new)
    assert any(needle in f.message for f in bench.findings())


SOURCES = "sources: [../elsewhere]\n"


def test_sources_are_where_implementations_are_looked_for(tmp_path: Path) -> None:
    bench = bound(Bench(tmp_path), "(gpu_id, tp_size, nnodes=1)")
    bench = bench.edit(MAP, "our_impls:set_affinity", "their_impls:set_affinity")
    assert any("their_impls is not installed" in m for m in said(bench))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "their_impls.py").write_text("def set_affinity(gpu_id):\n    return None\n")
    bench = bench.edit(MAP, "device:\n", f"{SOURCES}device:\n")
    assert [f.code for f in bench.findings() if f.binding == "affinity"] == ["KA302"]


BASE = """\
class Handmade:
    def get_device_total_memory(self, device_id=0):
        return 1

"""


def with_base(bench: Bench, text: str = BASE) -> Bench:
    bench = bench.edit(MAP, "  probe:", '  base: "our_impls:Handmade"\n  probe:')
    named = '"our_impls:Handmade.get_device_total_memory"'
    return bench.edit(MAP, '"our_impls:total_memory"', named).add(IMPLS, text)


def test_a_method_of_the_class_written_by_hand_gets_the_platform(tmp_path: Path) -> None:
    assert {f.code for f in with_base(Bench(tmp_path)).findings()} <= {"KA107"}


def test_its_signature_is_compared_without_the_platform(tmp_path: Path) -> None:
    bench = with_base(Bench(tmp_path), BASE.replace("(self, device_id=0)", "(self)"))
    (found,) = (f for f in bench.findings() if f.code == "KA207")
    assert "it does not take 'device_id'" in found.message


@pytest.mark.parametrize(("base", "code"), [("Gone", "KA301"), ("total_memory", "KA302")])
def test_the_class_must_be_there_and_be_one(tmp_path: Path, base: str, code: str) -> None:
    bench = Bench(tmp_path).edit(MAP, "  probe:", f'  base: "our_impls:{base}"\n  probe:')
    assert code in {f.code for f in bench.findings()}


CHOICES = "    type: extend\n    value: [kunlun]\n"


def keyed(tmp_path: Path, table: str, key: str) -> list[str]:
    bench = Bench(tmp_path).edit("sglang/srt/utils/common.py", '["triton"]', table)
    bench = bench.edit(MAP, CHOICES, f"    type: extend\n    {key}\n")
    return [f.message for f in bench.findings() if f.code == "KA104"]


@pytest.mark.parametrize(
    ("table", "key", "said"),
    [
        ("{}", "key: kunlun\n    value: 1", None),
        ("dict()", 'key: kunlun\n    impl: "our_impls:Pool"', None),
        ("defaultdict(list)", "key: kunlun\n    value: 1", None),
        ("[1]", "value: [kunlun]", None),
        ("{1, 2}", "value: [kunlun]", None),
        ("made()", "value: [kunlun]", None),
        ("made()", "key: kunlun\n    value: 1", None),
        ('{"a": 1}', "value: [kunlun]", "a dict, which takes an entry under a key"),
        ("[1]", "key: kunlun\n    value: 1", "has no keys"),
    ],
)
def test_an_entry_goes_under_a_key(tmp_path: Path, table: str, key: str, said: str | None) -> None:
    found = keyed(tmp_path, table, key)
    assert (said is None) == (found == []) and (said or "") in "".join(found)


@pytest.mark.parametrize("type", ["set", "register"])
def test_no_other_type_has_a_key(tmp_path: Path, type: str) -> None:
    old, new = "    type: extend\n", f"    type: {type}\n    key: kunlun\n"
    messages = [f.message for f in Bench(tmp_path).edit(MAP, old, new).findings()]
    assert any("key is for a hook of type extend" in m for m in messages)

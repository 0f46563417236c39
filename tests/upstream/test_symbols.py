from __future__ import annotations

import keyword
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.upstream import Location, Parameter, Signature, Symbol, Variant

_names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8).filter(
    lambda name: not keyword.iskeyword(name)
)
_defaults = st.sampled_from([None, "1", "None", "'a, b'", "(1, 2)", "lambda x, /: x", "-1"])


@st.composite
def _signatures(draw: st.DrawFn) -> Signature:
    names = draw(st.lists(_names, max_size=9, unique=True))
    cuts = sorted(draw(st.tuples(*[st.integers(0, len(names))] * 4)))
    posonly, plain = names[: cuts[0]], names[cuts[0] : cuts[1]]
    star, only = names[cuts[1] : cuts[2]][:1], names[cuts[2] : cuts[3]]
    double = names[cuts[3] :][:1]
    first_default = draw(st.integers(0, len(posonly) + len(plain)))
    found: list[Parameter] = []
    for index, name in enumerate([*posonly, *plain]):
        default = draw(_defaults.filter(bool)) if index >= first_default else None
        kind = "positional_only" if index < len(posonly) else "positional"
        found.append(Parameter(name, kind, default is not None, default))
    found += [Parameter(name, "var_positional") for name in star]
    for name in only:
        default = draw(_defaults)
        found.append(Parameter(name, "keyword_only", default is not None, default))
    found += [Parameter(name, "var_keyword") for name in double]
    return Signature(tuple(found))


@given(_signatures())
def test_a_signature_survives_its_text(signature: Signature) -> None:
    assert Signature.parse(signature.text()) == signature


def test_signature_reads_like_python() -> None:
    signature = Signature.parse("(self, a, /, b=1, *, c, d=None, **rest)")
    assert signature.text() == "(self, a, /, b=1, *, c, d=None, **rest)"
    assert signature.names == ("self", "a", "b", "c", "d", "rest")
    assert signature.required() == ("self", "a", "c")
    assert signature.without_first().text() == "(a, /, b=1, *, c, d=None, **rest)"
    assert signature.parameter("d") == Parameter("d", "keyword_only", True, "None")
    assert signature.parameter("e") is None


@pytest.mark.parametrize(
    "text", ["", "(a b)", "()\n    pass\nimport os\nif ()", "(a): ...\nx = (1)"]
)
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        Signature.parse(text)


def _symbol() -> Symbol:
    return Symbol(
        path="sglang.srt.a.f",
        resolved="sglang.srt.b.f",
        kind="function",
        location=Location("sglang/srt/b.py", 7),
        module="sglang.srt.b",
        qualname="f",
        signature=Signature.parse("(x, *, out=None)"),
        decorators=("cache", "wrap(1)"),
        guard="_is_cuda",
        variants=(
            Variant(Location("sglang/srt/b.py", 9), "not _is_cuda", Signature(), "function"),
        ),
        via=(Location("sglang/srt/a.py", 1),),
        inherited_from="sglang.srt.b.Base",
        bases=("torch.nn.Module",),
        fingerprint="00ff",
        value="1",
        is_async=True,
    )


def test_a_symbol_survives_json() -> None:
    symbol = _symbol()
    assert Symbol.from_json(symbol.to_json()) == symbol


def test_json_omits_what_is_empty() -> None:
    plain = Symbol("sglang.a", "sglang.a", "module", Location("sglang/a.py", 1), "sglang.a", "")
    assert plain.to_json() == {
        "path": "sglang.a",
        "kind": "module",
        "at": "sglang/a.py:1",
        "module": "sglang.a",
    }
    assert Symbol.from_json(plain.to_json()) == plain


def test_an_empty_signature_is_not_no_signature() -> None:
    plain = Symbol("a.f", "a.f", "function", Location("a.py", 1), "a", "f", Signature())
    assert Symbol.from_json(plain.to_json()).signature == Signature()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "nonsense"),
        ("at", "nowhere"),
        ("signature", "(("),
        ("via", "sglang/a.py:1"),
        ("decorators", [1]),
        ("module", None),
    ],
)
def test_malformed_json_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValueError):
        Symbol.from_json({**_symbol().to_json(), key: value})

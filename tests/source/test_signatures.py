from __future__ import annotations

import ast
import inspect
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.source.signatures import (
    UNSET,
    default_text,
    guards,
    parameter_parts,
    uses_unset,
)
from kunlun_adapt.upstream import Parameter, Signature

DEFAULTS = ("None", "-1", "'a\\n'", "()", "(1,)", "[1, 2]", "torch.float16", "f(1)", "{}", "1e999")
PLAIN = {"None", "-1", "'a\\n'", "()", "(1,)", "[1, 2]", "1e999"}


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    names = iter(draw(st.permutations([f"p{i}" for i in range(14)])))
    parameters: list[Parameter] = []

    def give(kind: Any, count: int, optional: bool) -> None:
        for _ in range(count):
            default = draw(st.sampled_from(DEFAULTS)) if optional else None
            parameters.append(Parameter(next(names), kind, optional, default))

    defaults_from = draw(st.integers(0, 4))
    counts = [draw(st.integers(0, 2)) for _ in range(2)]
    for kind, count in zip(("positional_only", "positional"), counts, strict=True):
        for _ in range(count):
            give(kind, 1, len(parameters) >= defaults_from)
    if draw(st.booleans()):
        give("var_positional", 1, False)
    for _ in range(draw(st.integers(0, 2))):
        give("keyword_only", 1, draw(st.booleans()))
    if draw(st.booleans()):
        give("var_keyword", 1, False)
    return Signature(tuple(parameters))


KINDS = {
    "positional_only": inspect.Parameter.POSITIONAL_ONLY,
    "positional": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "var_positional": inspect.Parameter.VAR_POSITIONAL,
    "keyword_only": inspect.Parameter.KEYWORD_ONLY,
    "var_keyword": inspect.Parameter.VAR_KEYWORD,
}


class Unset:
    """Stands for UNSET in the executed text."""


def compiled(text: str) -> inspect.Signature:
    scope: dict[str, Any] = {UNSET: Unset}
    exec(f"def f({text}):\n    pass\n", scope)
    return inspect.signature(scope["f"])


@given(signatures())
def test_the_parts_together_are_the_signature(signature: Signature) -> None:
    found = compiled(", ".join(parameter_parts(signature)))
    assert [(p.name, p.kind) for p in found.parameters.values()] == [
        (p.name, KINDS[p.kind]) for p in signature.parameters
    ]
    for p in signature.parameters:
        default = found.parameters[p.name].default
        if not p.has_default:
            assert default is inspect.Parameter.empty
        elif p.default in PLAIN:
            assert repr(default) == repr(ast.literal_eval(p.default or ""))
        else:
            assert default is Unset
            assert default_text(p) == UNSET
    assert uses_unset(signature) == any(
        p.has_default and p.default not in PLAIN for p in signature.parameters
    )


@given(signatures())
def test_each_parameter_is_a_part_of_its_own(signature: Signature) -> None:
    parts = parameter_parts(signature)
    assert [p.strip("*").partition("=")[0] for p in parts if p not in ("*", "/")] == [
        p.name for p in signature.parameters
    ]


def test_a_default_whose_text_is_not_known_is_unset() -> None:
    signature = Signature((Parameter("x", "positional", True, None),))
    assert parameter_parts(signature) == ("x=UNSET",)
    assert uses_unset(signature)


SIGNATURE = Signature(
    (
        Parameter("x", "positional"),
        Parameter("flag", "positional", True, "False"),
        Parameter("mode", "positional", True, "Mode.A"),
    )
)


def test_guards_compare_flags_by_identity_and_the_rest_by_value() -> None:
    found = guards({"flag": False, "x": 3, "mode": None, "gone": 1}, SIGNATURE)
    assert found == [
        ("flag", "flag is not False", "False"),
        ("x", "x != 3", "3"),
        ("mode", "mode is not UNSET and mode is not None", "None"),
    ]


def test_a_list_of_ignored_names_guards_nothing() -> None:
    assert guards(["flag", "mode"], SIGNATURE) == []
    assert guards({}, SIGNATURE) == []
    assert guards({"flag": "$any"}, SIGNATURE) == []


@given(st.none() | st.booleans() | st.integers() | st.text(max_size=10), st.sampled_from("xfm"))
def test_a_guard_lets_only_the_allowed_value_pass(allowed: Any, which: str) -> None:
    name = {"x": "x", "f": "flag", "m": "mode"}[which]
    ((_, condition, shown),) = guards({name: allowed}, SIGNATURE)
    assert ast.literal_eval(shown) == allowed
    other = "another" if not isinstance(allowed, str) else 1
    assert eval(condition, {name: allowed, UNSET: Unset}) is False
    assert eval(condition, {name: other, UNSET: Unset}) is True

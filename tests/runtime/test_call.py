"""The call that a hook gets: changes land in the parameter that they name, however passed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.runtime.call import UNSET, Call

P = inspect.Parameter
POSITIONAL = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)
NAMES = ("a", "b", "c", "d", "e")


@st.composite
def signatures(draw: st.DrawFn) -> inspect.Signature:
    kinds = sorted(draw(st.lists(st.sampled_from([*POSITIONAL, P.KEYWORD_ONLY]), max_size=5)))
    first_default = draw(st.integers(0, 5))
    parameters = []
    for i, kind in enumerate(kinds):
        optional = draw(st.booleans()) if kind is P.KEYWORD_ONLY else i >= first_default
        default = f"default {NAMES[i]}" if optional else P.empty
        parameters.append(P(NAMES[i], kind, default=default))
    if draw(st.booleans()):
        place = sum(p.kind in POSITIONAL for p in parameters)
        parameters.insert(place, P("rest", P.VAR_POSITIONAL))
    if draw(st.booleans()):
        parameters.append(P("options", P.VAR_KEYWORD))
    return inspect.Signature(parameters)


@st.composite
def calls(draw: st.DrawFn) -> tuple[inspect.Signature, tuple[Any, ...], dict[str, Any]]:
    """A signature with a call that it takes."""
    signature = draw(signatures())
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_position = True
    for p in signature.parameters.values():
        if p.kind in POSITIONAL:
            given = p.default is P.empty or draw(st.booleans())
            if p.kind is P.POSITIONAL_OR_KEYWORD and (not by_position or draw(st.booleans())):
                by_position = False
            if not given:
                by_position = False
            elif by_position:
                args.append(f"given {p.name}")
            elif p.kind is P.POSITIONAL_OR_KEYWORD:
                kwargs[p.name] = f"given {p.name}"
        elif p.kind is P.VAR_POSITIONAL and by_position:
            args += draw(st.lists(st.integers(), max_size=2))
        elif p.kind is P.KEYWORD_ONLY and (p.default is P.empty or draw(st.booleans())):
            kwargs[p.name] = f"given {p.name}"
        elif p.kind is P.VAR_KEYWORD:
            only = [n for n, q in signature.parameters.items() if q.kind is P.POSITIONAL_ONLY]
            kwargs.update(draw(st.dictionaries(st.sampled_from(["x", "y", *only]), st.integers())))
    return signature, tuple(args), kwargs


def function(signature: inspect.Signature) -> Callable[..., dict[str, Any]]:
    """Return a function of that signature that returns its arguments by name."""
    space: dict[str, Any] = {}
    exec(f"def f{signature}: return locals()", space)
    found: Callable[..., dict[str, Any]] = space["f"]
    return found


def make(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Call, dict[str, Any]]:
    """Make the call as the generated reader does; return it with its arguments."""
    arguments = function(signature)(*args, **kwargs)
    stars = {P.VAR_POSITIONAL: "*", P.VAR_KEYWORD: "**"}
    mapped = {f"our_{n}": stars.get(p.kind, "") + n for n, p in signature.parameters.items()}
    kinds = {n: p.kind for n, p in signature.parameters.items() if p.kind in POSITIONAL}
    nameless = [n for n, kind in kinds.items() if kind is P.POSITIONAL_ONLY]
    named = [n for n, kind in kinds.items() if kind is not P.POSITIONAL_ONLY]
    positional = (*nameless, *("/" for _ in nameless[:1]), *named)
    read = {f"our_{n}": value for n, value in arguments.items()}
    collected = tuple(arguments.get("options", ()))

    def original(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    call = Call("id", original, args, kwargs, read, positional, mapped, None, collected)
    return call, arguments


@given(calls(), st.data())
def test_changes_bind_as_python_binds(case: Any, data: st.DataObject) -> None:
    signature, args, kwargs = case
    call, arguments = make(signature, args, kwargs)
    names = st.sampled_from(sorted(arguments)) if arguments else st.nothing()
    values: dict[str, Any] = {n: f"changed {n}" for n in data.draw(st.sets(names))}
    if "rest" in values:
        values["rest"] = ("changed", "rest")
    if "options" in values:
        values["options"] = {"z": "changed"}
    try:
        new_args, new_kwargs = call.changed({f"our_{n}": v for n, v in values.items()})
        seen = function(signature)(*new_args, **new_kwargs)
    except TypeError:
        # Only what Python cannot express may be refused: an argument that goes by position, after
        # one that was left at its default.
        at_default = [
            p.name
            for p in signature.parameters.values()
            if p.kind in POSITIONAL and arguments[p.name] == p.default and p.name not in values
        ]
        assert at_default, "the call could have been made"
        return
    assert seen == {**arguments, **values}
    assert make(signature, args, kwargs)[1] == arguments, "the caller's objects stay as they were"


@given(calls())
def test_without_changes_the_call_passes_on_as_it_came(case: Any) -> None:
    signature, args, kwargs = case
    assert make(signature, args, kwargs)[0].original() == (args, kwargs)


def call_of(args: tuple[Any, ...], kwargs: dict[str, Any], **more: Any) -> Call:
    return Call("id", lambda *a, **k: (a, k), args, kwargs, {}, ("a", "b"), more, None)


def test_an_inserted_parameter_does_not_take_the_place_of_a_mapped_one() -> None:
    assert call_of((1, 2), {}, ours="b").original(ours=9) == ((1, 9), {})


def test_a_name_that_is_not_mapped_is_refused() -> None:
    with pytest.raises(TypeError, match="'b' is not mapped to a parameter"):
        call_of((1, 2), {}, ours="b").original(b=9)


def test_a_collected_name_cannot_stand_for_a_parameter() -> None:
    signature = inspect.signature(lambda a, **options: None)
    call, _ = make(signature, (), {"a": 1, "x": 2})
    with pytest.raises(TypeError, match="a is a parameter of its own"):
        call.original(our_options={"a": 3})


def test_a_default_that_is_no_literal_is_absent() -> None:
    read = {"x": UNSET, "y": None}
    assert Call("id", print, (), {}, read, (), {}).args == {"y": None}


def test_what_the_original_raises_is_known_to_be_its_own() -> None:
    def original() -> None:
        raise KeyError("upstream's")

    call = Call("id", original, (), {}, {}, (), {})
    with pytest.raises(KeyError) as caught:
        call.original()
    assert call.raised is caught.value


def test_an_argument_without_a_name_cannot_follow_one_left_at_its_default() -> None:
    call = Call("id", print, (), {}, {}, ("a", "b", "/", "c"), {"b": "b", "c": "c"})
    assert call.changed({"c": 1}) == ((), {"c": 1})
    with pytest.raises(TypeError, match="b goes by position only, after a"):
        call.changed({"b": 1})

"""The forms in which a hook is handed to HookRegistry, called as HookRegistry calls them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kunlun_adapt.runtime.call import Call
from kunlun_adapt.runtime.wrapping import Replacement, hook_function


def read(x: Any, *rest: Any, y: Any = 2, **options: Any) -> dict[str, Any]:
    return {"ours": x, "also": y, "options": options}


def hook(kind: str, implementation: Callable[[Call], Any]) -> Any:
    mapped = {"ours": "x", "also": "y", "options": "**options"}
    return hook_function(kind, "the-hook", implementation, read, ("x",), mapped)


def original(x: Any, *rest: Any, y: Any = 2, **options: Any) -> Any:
    return (x, rest, y, options)


def test_around_may_call_the_original_with_changes() -> None:
    around = hook("AROUND", lambda call: ["around", call.original(ours=call.args["ours"] + 1)])
    assert around(original, 1, 5, z=3) == ["around", (2, (5,), 2, {"z": 3})]


def test_around_may_drop_what_upstream_collects() -> None:
    def implementation(call: Call) -> Any:
        call.args["options"].pop("z")
        return call.original(options=call.args["options"])

    assert hook("AROUND", implementation)(original, 1, z=3, y=4) == (1, (), 4, {})


def test_before_returns_the_changed_call_or_none() -> None:
    assert hook("BEFORE", lambda call: {"ours": 9})(1, y=3) == ((9,), {"y": 3})
    assert hook("BEFORE", lambda call: None)(1) is None


def test_before_says_what_it_may_return() -> None:
    with pytest.raises(TypeError, match="the-hook: a `before` hook returns None or"):
        hook("BEFORE", lambda call: (1, 2))(1)


def test_before_cannot_be_async() -> None:
    async def implementation(call: Call) -> None: ...

    with pytest.raises(TypeError, match="use `around`"):
        hook("BEFORE", implementation)


def test_after_sees_the_result() -> None:
    assert hook("AFTER", lambda call: call.result + call.args["ours"])(40, 2) == 42


def test_only_around_and_replace_have_an_original() -> None:
    with pytest.raises(TypeError, match="only `around` and `replace`"):
        hook("AFTER", lambda call: call.original())(1, 2)


def test_after_an_async_function_sees_what_it_returns_in_the_end() -> None:
    async def upstream() -> int:
        return 40

    async def later(call: Call) -> int:
        return int(call.result) + 2

    for implementation in (lambda call: call.result + 2, later):
        assert asyncio.run(hook("AFTER", implementation)(upstream(), 1)) == 42
    assert asyncio.run(hook("AFTER", lambda call: None)(upstream(), 1)) == 40


def test_an_async_implementation_after_a_plain_function_is_an_error() -> None:
    async def later(call: Call) -> None: ...

    with pytest.raises(TypeError, match="the-hook: async, and upstream's function is not"):
        hook("AFTER", later)(1, 2)


def test_replace_knows_the_original_once_it_is_applied() -> None:
    replacement = hook("REPLACE", lambda call: call.original(also=7))
    assert isinstance(replacement, Replacement)
    with pytest.raises(RuntimeError, match="not known before"):
        replacement(1)
    replacement.original = original
    assert replacement(1) == (1, (), 7, {})


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions take notes from 3.11 on")
def test_an_error_names_the_hook_that_it_comes_from() -> None:
    def fails(*args: Any) -> Any:
        raise ValueError("inside")

    async def fails_later(call: Call) -> Any:
        raise ValueError("inside")

    for raised in (
        lambda: hook("AROUND", fails)(original, 1),
        lambda: asyncio.run(hook("AROUND", fails_later)(original, 1)),
    ):
        with pytest.raises(ValueError, match="inside") as caught:
            raised()
        assert "kunlun-adapt explain the-hook" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="inside") as caught:
        hook("AROUND", lambda call: call.original())(fails, 1)
    assert not hasattr(caught.value, "__notes__"), "the error is the original's own"

"""Finding and repairing what still holds an original; the changes that need no HookRegistry."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from kunlun_adapt.runtime import changes
from kunlun_adapt.runtime.references import (
    Patched,
    holders,
    lookup,
    repair,
    resolve,
    since,
    static,
    tables,
)

Make = Callable[..., ModuleType]


@pytest.fixture
def module() -> Iterator[Make]:
    """Makes modules `sglang.<name>` with these attributes; gone after the test."""
    made: list[str] = []

    def make(name: str, **attributes: Any) -> ModuleType:
        full = f"sglang.{name}"
        one = ModuleType(full)
        vars(one).update(attributes)
        sys.modules[full] = one
        made.append(full)
        return one

    before = sys.modules.get("sglang")
    sys.modules["sglang"] = ModuleType("sglang")
    yield make
    for full in made:
        sys.modules.pop(full, None)
    del sys.modules["sglang"]
    if before is not None:
        sys.modules["sglang"] = before


def old() -> str:
    return "old"


def new() -> str:
    return "new"


OLD = Patched("id", "sglang.home", "old", old)


def test_a_name_in_another_upstream_module_counts(module: Make) -> None:
    module("home", alias=old)
    module("user", taken=old)
    sys.modules["elsewhere_user"] = ModuleType("elsewhere_user")
    vars(sys.modules["elsewhere_user"])["taken"] = old
    try:
        assert holders([OLD]) == {"id": ["sglang.user.taken"]}
    finally:
        del sys.modules["elsewhere_user"]


def test_two_bindings_of_one_function_are_both_told(module: Make) -> None:
    module("user", taken=old)
    other = Patched("other", "sglang.home", "old", old)
    assert set(holders([OLD, other])) == {"id", "other"}


def test_of_an_alias_only_its_own_name_counts(module: Make) -> None:
    module("user", alias=old, old=old)
    alias = Patched("id", "sglang.home", "alias", old)
    assert holders([alias]) == {"id": ["sglang.user.alias"]}


def test_a_plain_value_is_not_searched_for(module: Make) -> None:
    module("user", flag=True)
    assert holders([Patched("id", "sglang.home", "FLAG", True)]) == {}


def test_only_modules_that_began_later_may_know_a_module_half(module: Make) -> None:
    module("before", taken=old)
    home = module("home")
    module("during", taken=old)
    assert holders([OLD], since(home)) == {"id": ["sglang.during.taken"]}


def test_tables_and_classes_that_hold_it_are_told(module: Make) -> None:
    class Holder:
        act = staticmethod(old)

    Holder.__module__ = "sglang.user"
    module(
        "user",
        by_name={"x": old},
        listed=[old],
        partly=functools.partial(old),
        Holder=Holder,
        other={"x": new},
    )
    found = tables([OLD])["id"]
    assert found == [f"sglang.user.{n}" for n in ("by_name", "listed", "partly", "Holder")]


class Base:
    pass


class Ours(Base):
    pass


REPAIRS: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("name", old, lambda v: v),
    ("dictionary", {"x": old, "y": 1}, lambda v: v["x"]),
    ("list", [1, old], lambda v: v[1]),
    ("tuple", (1, old), lambda v: v[1]),
    ("set", {old}, lambda v: next(iter(v))),
    ("partial", functools.partial(old), lambda v: v.func),
]


@pytest.mark.parametrize(("kind", "value", "look"), REPAIRS, ids=[r[0] for r in REPAIRS])
def test_a_reference_is_rewritten_and_read_back(
    module: Make, kind: str, value: Any, look: Callable[[Any], Any]
) -> None:
    user = module("user", place=value)
    assert repair("sglang.user.place", old, new) is None
    assert look(user.place) is new
    assert repair("sglang.user.place", old, new) is None, "what holds ours already is fine"


def test_a_static_method_and_a_base_class_are_repaired(module: Make) -> None:
    class Holder:
        act = staticmethod(old)

    class Derived(Base):
        pass

    module("user", Holder=Holder, Derived=Derived)
    assert repair("sglang.user.Holder.act", old, new) is None
    assert Holder.act() == "new" and isinstance(static(Holder, "act"), staticmethod)
    assert repair("sglang.user.Derived", Base, Ours) is None
    assert Derived.__bases__ == (Ours,)


def test_a_repair_that_means_nothing_is_told(module: Make) -> None:
    module("user", place=print)
    assert "does not hold the original" in str(repair("sglang.user.place", old, new))
    assert "cannot be repaired: AttributeError" in str(repair("sglang.user.gone", old, new))
    assert "ModuleNotFoundError" in str(repair("gone_for_good.place", old, new))


def test_a_path_resolves_through_modules_and_classes(module: Make) -> None:
    module("user", Base=Base)
    assert resolve("sglang.user.Base") == (sys.modules["sglang.user"], "Base")
    assert lookup("sglang.user.Base.__name__") == "Base"
    with pytest.raises(ModuleNotFoundError):
        resolve("gone_for_good.x")


def test_set_holds_and_repairs_its_copies(module: Make, caplog: pytest.LogCaptureFixture) -> None:
    home, user = module("home", LIMIT=7), module("user", LIMIT=7)
    with caplog.at_level(logging.WARNING):
        fault = changes.set_value("id", "sglang.home.LIMIT", 8, ())
    assert not fault() and (home.LIMIT, user.LIMIT) == (8, 7)
    assert "sglang.user.LIMIT may be copies" in caplog.text
    home.LIMIT = 7
    fault = changes.set_value("id", "sglang.home.LIMIT", 8, ("sglang.user.LIMIT",))
    assert not fault() and (home.LIMIT, user.LIMIT) == (8, 8)
    home.LIMIT = 9
    assert fault() == "sglang.home.LIMIT does not hold the value"


def test_set_fails_where_the_old_object_is_still_held(module: Make) -> None:
    module("home", table=(old_table := ["a"]))
    module("user", table=old_table)
    fault = changes.set_value("id", "sglang.home.table", ["b"], ())
    assert "sglang.user.table still hold the old value" in fault()


def test_set_needs_the_name_to_exist(module: Make) -> None:
    module("home")
    with pytest.raises(AttributeError):
        changes.set_value("id", "sglang.home.LIMIT", 8, ())


def test_extend_adds_once_to_lists_and_sets(module: Make) -> None:
    home, user = module("home", names=["a"]), module("user", names={"a"})
    for _ in range(2):
        fault = changes.extend("sglang.home.names", ["a", "b"], ("sglang.user.names",))
    assert home.names == ["a", "b"] and user.names == {"a", "b"} and not fault()
    home.names.remove("b")
    assert fault() == "sglang.home.names lacks ['b']"


def test_add_gives_what_is_lacking_and_nothing_else(module: Make) -> None:
    home = module("home", here=1)
    fault = changes.add_member("sglang.home.there", new)
    assert home.there is new and not fault()
    home.there = old
    assert "is not the one added" in fault()
    with pytest.raises(AttributeError, match="use `replace`"):
        changes.add_member("sglang.home.here", new)


def registry(module: Make, *, keeps: bool = True) -> ModuleType:
    home = module("home", held={}, order=[])

    def decorator(name: str) -> Callable[[Any], Any]:
        def keep(fn: Any) -> Any:
            if keeps:
                home.held[name] = functools.partial(fn)
            return fn

        return keep

    def direct(name: str, fn: Any) -> None:
        home.order.append(fn)

    vars(home).update(decorator=decorator, direct=direct)
    return home


def test_a_registration_is_read_back_from_the_registry(module: Make) -> None:
    home = registry(module)
    made = changes.register(
        "sglang.home.decorator", ["ours"], new, ("sglang.home.held", "ours"), decorates=True
    )
    assert made() == ""
    home.held["ours"] = old
    assert "sglang.home.held['ours'] is" in made() and "not ours" in made()
    made = changes.register(
        "sglang.home.direct", ["ours"], new, ("sglang.home.order", "ours"), decorates=False
    )
    assert made() == ""
    home.order.clear()
    assert made() == "sglang.home.order does not hold it"


def test_a_registration_that_upstream_drops_is_not_applied(module: Make) -> None:
    registry(module, keeps=False)
    made = changes.register(
        "sglang.home.decorator", ["ours"], new, ("sglang.home.held", "ours"), decorates=True
    )
    assert made() == "sglang.home.held has no entry 'ours'"

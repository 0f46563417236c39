"""Hooks through the real HookRegistry: what is in effect, and what must not be let near it."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from kunlun_adapt.runtime import covering, ledger, roles, stop
from kunlun_adapt.runtime.hooks import HookInstaller, read_back_after_apply
from kunlun_adapt.upstream import open_release

pytestmark = pytest.mark.upstream

FILE = "sglang/srt/plugins/hook_registry.py"
upstream: Any
Registry: Any
HookType: Any


@pytest.fixture(scope="module", params=["0.5.17", "0.5.19", "0.5.23"], autouse=True)
def real(request: pytest.FixtureRequest) -> None:
    """The real module, out of the release's wheel; it needs nothing else of SGLang."""
    global upstream, Registry, HookType
    text = open_release(request.param).read(FILE)
    assert text is not None
    upstream = ModuleType("real_hook_registry")
    exec(compile(text, FILE, "exec"), vars(upstream))
    Registry, HookType = upstream.HookRegistry, upstream.HookType


class Target:
    """Stands for an upstream class."""

    def run(self, x: int, y: int = 2) -> Any:
        return ("upstream", x, y)

    @classmethod
    def make(cls, x: int) -> Any:
        return (cls.__name__, x)

    @staticmethod
    def plain(x: int) -> Any:
        return ("plain", x)

    @property
    def size(self) -> int:
        return 1


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module `sglang.home` with everything that a hook may aim at, and a user of it."""
    target = type("Target", (), {k: v for k, v in vars(Target).items() if k[0] != "_"})
    derived = type("Derived", (target,), {})

    def act(x: Any, y: int = 2) -> Any:
        return ("upstream", x, y)

    async def later(x: Any) -> Any:
        return x

    home, user, ours = (ModuleType(n) for n in ("sglang.home", "sglang.user", "our_hooks"))
    vars(home).update(act=act, later=later, Target=target, Derived=derived, FLAG=True)
    vars(user).update(act=act, Target=target)
    package = ModuleType("sglang")
    vars(package).update(home=home, user=user)
    for module in (package, home, user, ours):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(ledger, "LEDGER", ledger.Ledger(release="0.5.19"))
    monkeypatch.setattr(stop, "_said", set())
    monkeypatch.setattr(Registry, "apply_hooks", Registry.__dict__["apply_hooks"])
    Registry.reset()
    yield home
    Registry.reset()


@pytest.fixture
def installer(home: ModuleType) -> HookInstaller:
    one = HookInstaller(Registry, HookType)
    read_back_after_apply(Registry, one)
    return one


def read(x: Any, y: int = 2) -> dict[str, Any]:
    return {"x": x, "y": y}


def hook(
    installer: HookInstaller,
    kind: str,
    target: str,
    implementation: Any,
    *,
    id: str = "one",
    read: Callable[..., dict[str, Any]] | None = read,
    positional: tuple[str, ...] = ("x", "y"),
    required: bool = True,
    **more: Any,
) -> ledger.Entry:
    setattr(sys.modules["our_hooks"], id, implementation)
    getattr(installer, kind)(
        id,
        f"sglang.home.{target}",
        impl=f"our_hooks:{id}",
        read=read,
        positional=positional,
        mapped={"x": "x", "y": "y"},
        required=required,
        **more,
    )
    return ledger.LEDGER.entries[id]


def refused(capsys: pytest.CaptureFixture[str], *needles: str) -> None:
    with pytest.raises(SystemExit) as caught:
        Registry.apply_hooks()
    assert caught.value.code == 1
    said = capsys.readouterr().err
    for needle in ("the start is refused", *needles):
        assert needle in said, said


KINDS = [
    ("before", lambda call: {"x": 9}, ("upstream", 9, 2)),
    ("after", lambda call: (*call.result, "after"), ("upstream", 1, 2, "after")),
    ("around", lambda call: ("around", call.original(y=5)), ("around", ("upstream", 1, 5))),
    ("replace", lambda call: ("ours", call.original(x=7)), ("ours", ("upstream", 7, 2))),
]


@pytest.mark.parametrize(("kind", "implementation", "expected"), KINDS, ids=[k[0] for k in KINDS])
def test_a_function_hook_is_in_effect_everywhere(
    home: ModuleType, installer: HookInstaller, kind: str, implementation: Any, expected: Any
) -> None:
    entry = hook(installer, kind, "act", implementation)
    assert entry.state == "pending"
    Registry.apply_hooks()
    assert entry.state == "applied", entry.detail
    assert home.act(1) == home.act(x=1) == sys.modules["sglang.user"].act(1) == expected


def test_methods_of_all_kinds(home: ModuleType, installer: HookInstaller) -> None:
    def with_self(self: Any, x: Any, y: int = 2) -> dict[str, Any]:
        return {"x": x, "y": y}

    with_names = {"read": with_self, "positional": ("self", "x", "y")}
    around = lambda call: ["hooked", call.original(x=call.args["x"] + 1)]  # noqa: E731
    for kind in ("run", "make"):
        hook(installer, "around", f"Target.{kind}", around, id=kind, **with_names)
    hook(installer, "replace", "Target.plain", around, id="plain")
    Registry.apply_hooks()
    assert {e.state for e in ledger.LEDGER.entries.values()} == {"applied"}
    assert home.Target().run(1) == ["hooked", ("upstream", 2, 2)]
    assert home.Target.make(1) == home.Target().make(1) == ["hooked", ("Target", 2)]
    assert home.Derived.make(1) == ["hooked", ("Derived", 2)]
    assert home.Target.plain(1) == home.Target().plain(1) == ["hooked", ("plain", 2)]


def test_after_an_async_function(home: ModuleType, installer: HookInstaller) -> None:
    hook(installer, "after", "later", lambda call: [call.result])
    Registry.apply_hooks()
    assert asyncio.run(home.later(1)) == [1]


def test_a_hook_of_another_plugin_around_ours_is_no_harm(
    home: ModuleType, installer: HookInstaller
) -> None:
    entry = hook(installer, "replace", "act", lambda call: ("ours", call.original()))
    Registry.register("sglang.home.act", lambda f, *a, **k: ["theirs", f(*a, **k)], HookType.AROUND)
    Registry.apply_hooks()
    assert entry.state == "applied"
    assert home.act(1) == ["theirs", ("ours", ("upstream", 1, 2))]


def test_ours_around_a_replacement_of_theirs(home: ModuleType, installer: HookInstaller) -> None:
    entry = hook(installer, "around", "act", lambda call: ("ours", call.original()))
    Registry.register("sglang.home.act", lambda *a, **k: "theirs", HookType.REPLACE)
    Registry.apply_hooks()
    assert entry.state == "applied" and home.act(1) == ("ours", "theirs")


def test_a_later_replacement_wins_and_that_is_refused(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    hook(installer, "replace", "act", lambda call: "ours")
    source = upstream.HookSource("their_hooks", "their-package")
    Registry.register("sglang.home.act", lambda *a: "theirs", HookType.REPLACE, source=source)
    refused(capsys, "sglang.home.act is replaced again, by replace of their-package")


def test_a_target_that_was_applied_before_us_is_refused(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    source = upstream.HookSource("their_hooks", None)
    Registry.register("sglang.home.act", lambda r, *a: r, HookType.AFTER, source=source)
    Registry.apply_hooks()
    hook(installer, "replace", "act", lambda call: "ours")
    refused(capsys, "applied before our hooks were registered (after of their_hooks (")


def test_a_target_that_does_not_exist_is_refused(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    hook(installer, "around", "gone", lambda call: "ours")
    refused(capsys, "sglang.home.gone: AttributeError")


WRONG = [
    ("around", "Target.size", "it is a property"),
    ("around", "Derived.make", "Derived inherits it"),
    ("around", "Target", "it is a class, and the hook is not"),
    ("replace", "FLAG", "use `set`"),
]


@pytest.mark.parametrize(("kind", "target", "why"), WRONG, ids=[w[1] for w in WRONG])
def test_what_upstream_would_apply_wrongly_is_withdrawn(
    home: ModuleType, installer: HookInstaller, kind: str, target: str, why: str
) -> None:
    entry = hook(installer, kind, target, lambda call: "ours", required=False)
    Registry.apply_hooks()
    assert entry.state == "failed" and why in entry.detail
    assert home.FLAG is True and home.Target().size == 1 and isinstance(home.Target, type)
    assert home.Derived.make(1) == home.Derived().make(1) == ("Derived", 1)


def test_a_failed_hook_that_is_not_required_leaves_the_others_alone(
    home: ModuleType, installer: HookInstaller
) -> None:
    bad = hook(installer, "around", "gone", lambda call: "ours", id="bad", required=False)
    good = hook(installer, "replace", "act", lambda call: "ours", id="good")
    Registry.apply_hooks()
    assert (bad.state, good.state, home.act(1)) == ("failed", "applied", "ours")


def replaced(installer: HookInstaller, ours: Any, **more: Any) -> ledger.Entry:
    return hook(installer, "replace", "Target", ours, read=None, positional=(), **more)


def test_a_class_is_replaced_where_modules_hold_it(
    home: ModuleType, installer: HookInstaller
) -> None:
    user = sys.modules["sglang.user"]
    home.Alone = user.Alone = alone = type("Alone", (), {})
    ours = type("Ours", (alone,), {})
    entry = hook(installer, "replace", "Alone", ours, read=None, positional=())
    Registry.apply_hooks()
    assert entry.state == "applied", entry.detail
    assert home.Alone is ours and user.Alone is ours


def test_a_subclass_that_keeps_the_old_base_can_be_repaired(
    home: ModuleType, installer: HookInstaller
) -> None:
    ours = type("Ours", (home.Target,), {"run": lambda self, x: "ours"})
    entry = replaced(installer, ours, id="repaired", repair=("sglang.home.Derived",))
    Registry.apply_hooks()
    assert entry.state == "applied", entry.detail
    assert home.Derived().run(1) == "ours"


def test_a_subclass_that_keeps_the_old_base_is_refused(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced(installer, type("Ours", (home.Target,), {}))
    refused(capsys, "Derived were derived from the original", "list them in `repair`")


def test_no_class_cannot_replace_a_class(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced(installer, lambda: None)
    refused(capsys, "sglang.home.Target is a class, and our_hooks:one is none")


def test_listed_references_are_repaired_and_others_are_told(
    home: ModuleType, installer: HookInstaller, caplog: pytest.LogCaptureFixture
) -> None:
    user = sys.modules["sglang.user"]
    vars(user).update(table={"act": home.act}, listed=[home.act])
    entry = hook(installer, "replace", "act", lambda call: "ours", repair=("sglang.user.table",))
    with caplog.at_level(logging.WARNING, logger="kunlun_adapt"):
        Registry.apply_hooks()
    assert entry.state == "applied" and user.table["act"](1) == "ours"
    assert "sglang.user.listed hold the original" in caplog.text
    assert "sglang.user.listed" in entry.detail and "table" not in entry.detail


def test_a_repair_that_means_nothing_is_refused(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    hook(installer, "replace", "act", lambda call: "ours", repair=("sglang.home.FLAG",))
    refused(capsys, "sglang.home.FLAG does not hold the original")


def test_an_implementation_that_does_not_import_is_refused_by_name(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    installer.replace("one", "sglang.home.act", impl="our_hooks:gone", required=True)
    refused(capsys, "our_hooks:gone cannot be loaded: AttributeError")


def test_a_hook_for_other_processes_is_neither_loaded_nor_applied(
    home: ModuleType, installer: HookInstaller
) -> None:
    installer.replace(
        "one", "sglang.home.act", impl="gone:gone", required=True, process=("scheduler",)
    )
    Registry.apply_hooks()
    entry = ledger.LEDGER.entries["one"]
    assert (entry.state, entry.detail) == ("elsewhere", "for scheduler only")
    assert home.act(1) == ("upstream", 1, 2)


def test_a_process_that_nobody_named_gets_every_hook(
    home: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "current", lambda: roles.OTHER)
    installer = HookInstaller(Registry, HookType)
    read_back_after_apply(Registry, installer)
    entry = hook(installer, "replace", "act", lambda call: "ours", process=("scheduler",))
    Registry.apply_hooks()
    assert entry.state == "applied" and home.act(1) == "ours"


def test_an_implementation_that_raises_is_named(home: ModuleType, installer: HookInstaller) -> None:
    def fails(call: Any) -> Any:
        raise ValueError("broken")

    hook(installer, "around", "act", fails, id="broken_hook")
    Registry.apply_hooks()
    with pytest.raises(ValueError, match="broken") as caught:
        home.act(1)
    assert "kunlun-adapt explain broken_hook" in "".join(caught.value.__notes__)


def test_changes_are_read_back_again_after_all_plugins(
    home: ModuleType, installer: HookInstaller, capsys: pytest.CaptureFixture[str]
) -> None:
    home.names = ["a"]
    installer.extend("names", "sglang.home.names", value=["b"], required=True)
    installer.set("flag", "sglang.home.FLAG", value=False, required=True)
    assert {e.state for e in ledger.LEDGER.entries.values()} == {"applied"}
    home.names.remove("b")  # what another plugin might do
    refused(capsys, "sglang.home.names lacks ['b']")
    assert ledger.LEDGER.entries["flag"].state == "applied" and home.FLAG is False


class Raw:
    """Implementations that take upstream's own arguments, in HookRegistry's forms."""

    @staticmethod
    def replace(x: Any, y: int = 2) -> Any:
        return ("ours", x, y)

    @staticmethod
    def around(original: Callable[..., Any], x: Any, y: int = 2) -> Any:
        return ("around", original(x, y=y))

    @staticmethod
    def after(result: Any, x: Any, y: int = 2) -> Any:
        return (*result, "after")

    @staticmethod
    def before(x: Any, y: int = 2) -> Any:
        return ((x + 1,), {"y": y})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("replace", ("ours", 1, 5)),
        ("around", ("around", ("upstream", 1, 5))),
        ("after", ("upstream", 1, 5, "after")),
        ("before", ("upstream", 2, 5)),
    ],
)
def test_a_hook_that_takes_upstreams_arguments_as_they_are(
    home: ModuleType, installer: HookInstaller, kind: str, expected: Any
) -> None:
    vars(sys.modules["our_hooks"])["raw"] = getattr(Raw, kind)
    getattr(installer, kind)(
        "raw", "sglang.home.act", impl="our_hooks:raw", takes_arguments=True, required=True
    )
    Registry.apply_hooks()
    assert home.act(1, y=5) == expected == sys.modules["sglang.user"].act(1, 5)
    assert ledger.LEDGER.entries["raw"].state == "applied"


def test_a_class_takes_no_arguments(home: ModuleType, installer: HookInstaller) -> None:
    vars(sys.modules["our_hooks"])["raw"] = Raw
    installer.replace(
        "raw", "sglang.home.act", impl="our_hooks:raw", takes_arguments=True, required=False
    )
    assert "is no function" in (ledger.LEDGER.entries["raw"].detail or "")


@pytest.mark.parametrize(
    ("how", "held"), [({"value": 3}, 3), ({"impl": "our_hooks:raw"}, Raw)], ids=["value", "impl"]
)
def test_an_entry_of_a_dict(
    home: ModuleType, installer: HookInstaller, how: dict[str, Any], held: Any
) -> None:
    vars(sys.modules["our_hooks"])["raw"] = Raw
    table = vars(home)["TABLE"] = {"theirs": 1}
    installer.extend("entry", "sglang.home.TABLE", key="ours", required=True, **how)
    assert table == {"theirs": 1, "ours": held}
    assert ledger.LEDGER.entries["entry"].state == "applied"
    table["ours"] = 4
    installer.made[-1].read_back()
    assert "is 4, not ours" in (ledger.LEDGER.entries["entry"].detail or "")


def test_an_entry_of_what_is_no_dict(home: ModuleType, installer: HookInstaller) -> None:
    installer.extend("entry", "sglang.home.FLAG", key="ours", value=1, required=False)
    assert ledger.LEDGER.entries["entry"].state == "failed"


@pytest.fixture
def kernel(home: ModuleType) -> covering.Bound:
    """A kernel of ours on `sglang.home.act`, which a user has imported."""

    def served(x: Any, y: int = 2) -> Any:
        return ("served", x, y)

    served.__wrapped__ = home.act  # type: ignore[attr-defined]
    home.act = sys.modules["sglang.user"].act = served  # type: ignore[attr-defined]
    entry = ledger.enter("op/act", True)
    entry.state = "applied"
    bound = covering.Bound(entry, "sglang.home.act", "op", served, lambda: home.act)
    installer = HookInstaller(Registry, HookType)
    read_back_after_apply(Registry, installer, lambda found: covering.read_back([bound], found))
    return bound


def theirs(*args: Any, **kwargs: Any) -> Any:
    return "theirs"


def around(original: Any, *args: Any, **kwargs: Any) -> Any:
    return original(*args, **kwargs)


def second(target: str, hook: Any, kind: str) -> None:
    source = upstream.HookSource("second", "second-plugin")
    Registry.register(f"sglang.{target}", hook, HookType[kind], source=source)


@pytest.mark.parametrize("kind", ["BEFORE", "AFTER", "AROUND"])
def test_what_others_put_around_a_kernel_is_theirs_to_do(
    home: ModuleType, kernel: covering.Bound, kind: str
) -> None:
    hooks = {"BEFORE": lambda *args: None, "AFTER": lambda *args: None, "AROUND": around}
    second("home.act", hooks[kind], kind)
    Registry.apply_hooks()
    assert kernel.entry.state == "applied", kernel.entry.detail
    assert home.act(1) == ("served", 1, 2)


@pytest.mark.parametrize("place", ["home.act", "user.act"])
@pytest.mark.parametrize("kinds", [["REPLACE"], ["AROUND", "REPLACE"]])
def test_a_replace_of_others_over_a_kernel_is_refused_with_both_owners(
    capsys: pytest.CaptureFixture[str], kernel: covering.Bound, place: str, kinds: list[str]
) -> None:
    for kind in kinds:
        second(place, around if kind == "AROUND" else theirs, kind)
    owner = f"second-plugin ({__name__}.theirs)"
    refused(
        capsys, "op/act", f"is replaced by {owner}; it is kunlun-adapt's as well", "operator op"
    )


def test_a_kernel_that_is_not_required_may_be_replaced(kernel: covering.Bound) -> None:
    kernel.entry.required = False
    second("home.act", theirs, "REPLACE")
    Registry.apply_hooks()
    assert kernel.entry.state == "failed" and "second-plugin" in kernel.entry.detail


def test_a_hook_of_ours_that_is_replaced_under_another_name_is_refused(
    capsys: pytest.CaptureFixture[str], installer: HookInstaller
) -> None:
    hook(installer, "replace", "act", lambda call: "ours")
    second("user.act", theirs, "REPLACE")
    refused(capsys, "one", "is replaced at another of its names, by second-plugin")


class Caller:
    """A wrapper that is no function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def closing(function: Any) -> Any:
    return lambda *args: function(*args)


def defaulting(function: Any) -> Any:
    return lambda *args, call=function: call(*args)


def naming(function: Any) -> Any:
    space = {"function": function}
    return eval("lambda *args: function(*args)", space)


def pretending(function: Any) -> Any:
    return functools.wraps(function)(lambda *args: "theirs")


WRAPPERS = [functools.partial, closing, defaulting, naming, Caller, functools.cache]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_wrapper_that_leads_to_a_kernel_may_stand_around_it(
    home: ModuleType, kernel: covering.Bound, wrap: Any
) -> None:
    home.act = closing(wrap(home.act))  # type: ignore[attr-defined]
    Registry.apply_hooks()
    assert kernel.entry.state == "applied" and home.act(1) == ("served", 1, 2)


def test_what_does_not_lead_to_a_kernel_is_refused(
    capsys: pytest.CaptureFixture[str], home: ModuleType, kernel: covering.Bound
) -> None:
    home.act = pretending(home.act)  # type: ignore[attr-defined]
    refused(capsys, "op/act", "from which nothing leads to ours")

# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA301 and KA302: implementation paths, followed without an import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kunlun_adapt.check.implementations import Implementation, Implementations, NotFound, Unread
from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.upstream import Lock, LockFacts
from tests.check.bench import IMPLS, MAP, RECIPE, Bench
from tests.check.examples import lock_of
from tests.check.said import codes, only

PLACES = [
    (MAP, '"our_impls:Backend"', '"our_impls:Bakend"', "factory/attention_backend"),
    (MAP, 'mha: "our_impls:Pool"', 'mha: "our_impls:Pol"', "factory/kv_pool.mha"),
    (MAP, '"our_impls:total_memory"', '"our_impls:total_memry"', "method/get_device_total_memory"),
    (MAP, '"our_impls:set_affinity"', '"our_impls:set_afinity"', "affinity"),
    (RECIPE, '"our_impls:silu_golden"', '"our_impls:silu_golde"', "silu_and_mul/silu_and_mul"),
    (RECIPE, '"our_impls:swiglu"', '"our_impls:swigl"', "silu_and_mul/silu_and_mul"),
]


@pytest.mark.parametrize(("file", "old", "new", "binding"), PLACES)
def test_every_place_that_names_an_implementation(
    bench: Bench, file: str, old: str, new: str, binding: str
) -> None:
    changed = bench.edit(file, old, new)
    found = only(changed.findings(), "KA301")
    needle = new.partition('"')[2].rstrip('"')
    assert str(found.position) == changed.place(file, f'"{needle}"')
    assert found.binding == binding
    assert found.suggestion is not None and "did you mean our_impls:" in found.suggestion


def test_shims_models_and_results_are_followed(bench: Bench) -> None:
    changed = bench.edit(MAP, "hooks:\n", """\
shims:
  - {module: sgl_kernel, provide: our_impls.gone, why: upstream imports it}
models:
  - {architecture: Llama, class: "our_impls:Lama", why: a model of ours}
hooks:
""")  # fmt: skip
    changed = changed.edit(RECIPE, "args: {x: x}", 'args: {x: x}\n    returns: "our_impls:gone"')
    found = [f for f in changed.findings() if f.code != "KA313"]  # models are planned so far
    assert codes(found) == ["KA301", "KA301", "KA301"]
    assert {str(f.position) for f in found} == {
        changed.place(MAP, "our_impls.gone"),
        changed.place(MAP, '"our_impls:Lama"'),
        changed.place(RECIPE, '"our_impls:gone"'),
    }


def test_one_value_for_each_profile(bench: Bench) -> None:
    old = 'get_device_total_memory: "our_impls:total_memory"'
    new = 'get_device_total_memory: {card: "our_impls:total_memory", simulator: "our_impls:gone"}'
    changed = bench.edit(MAP, old, new)
    found = only(changed.findings(), "KA301")
    assert str(found.position) == changed.place(MAP, '"our_impls:gone"')


def test_what_is_not_installed_here_is_said(bench: Bench) -> None:
    changed = bench.edit(RECIPE, '"our_impls:swiglu"', '"not_installed_anywhere:swiglu"')
    found = only(changed.findings(), "KA301")
    assert found.severity is Severity.WARNING
    assert "the package not_installed_anywhere is not installed" in found.message
    builtin = bench.edit(RECIPE, '"our_impls:swiglu"', '"sys:intern"')
    # It is there; that its text cannot be read for waits is all that is said.
    told = only(builtin.findings(), "KA314")
    assert told.severity is Severity.INFO and "sys:intern is" in told.message


def test_nothing_is_imported(bench: Bench) -> None:
    changed = bench.edit(IMPLS, "class Backend:", "raise RuntimeError\nclass Backend:")
    assert codes(changed.findings()) == []
    assert "our_impls" not in sys.modules


def test_a_module_that_is_not_python(bench: Bench) -> None:
    found = bench.edit(IMPLS, "class Backend:", "class Backend").findings()
    assert set(codes(found)) == {"KA301"}
    assert "our_impls.py:1 is not Python" in found[0].message


CALLS = [
    ("def swiglu(x, out, *, turn)", "def swiglu(x, out)", "it does not take 'turn'"),
    ("def swiglu(x, out, *, turn)", "def swiglu(x, *, turn)", "takes 1 positional arguments and gets 2"),
    ("def swiglu(x, out, *, turn)", "def swiglu(x, out, *, turn, size)", "nothing is passed for 'size'"),
    ("def swiglu(x, out, *, turn)", "def swiglu(x, turn)", "'turn' is passed twice"),
    ("def silu_golden(x, out)", "def silu_golden(out, x)", "'x' lands in 'out'"),
    ("def silu_golden(x, out)", "def silu_golden(x, out, limit)", "nothing is passed for 'limit'"),
    ("def set_affinity(call)", "def set_affinity(gpu_id, tp_size)", "nothing is passed for 'tp_size'"),
    ("def set_affinity(call)", "def set_affinity()", "takes 0 positional arguments and gets 1"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), CALLS)
def test_a_call_that_the_implementation_cannot_take(
    bench: Bench, old: str, new: str, says: str
) -> None:
    found = only(bench.edit(IMPLS, old, new).findings(), "KA302")
    assert says in found.message
    assert old.split("(")[0] in (found.suggestion or "")


TAKES = [
    ("def swiglu(x, out, *, turn)", "def swiglu(x, out, **how)"),
    ("def swiglu(x, out, *, turn)", "def swiglu(*args, turn)"),
    ("def swiglu(x, out, *, turn)", "def swiglu(x, out, turn=False)"),
    ("def swiglu(x, out, *, turn)", "def swiglu(values, result, *, turn, other=1)"),
    ("def swiglu(x, out, *, turn)", "@wrapped\ndef swiglu(anything)"),
    ("def set_affinity(call)", "def set_affinity(what, /, other=None)"),
    ("def total_memory(device_id=0)", "def total_memory(**kwargs)"),
    ("def silu_golden(x, out):\n    return x", "silu_golden = max"),
]


@pytest.mark.parametrize(("old", "new"), TAKES)
def test_a_call_that_the_implementation_takes(bench: Bench, old: str, new: str) -> None:
    assert codes(bench.edit(IMPLS, old, new).findings()) == []


def follower(root: Path, files: dict[str, str]) -> Implementations:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Implementations(root, LockFacts(Lock(), "0.5.19"))


def test_reexports_stars_and_branches_are_followed(tmp_path: Path) -> None:
    files = {
        "our/__init__.py": "from .a import one as first\nfrom our.b import *\n",
        "our/a.py": "def one(x): pass\n",
        "our/b.py": "try:\n    import fast\n    def two(y): pass\nexcept ImportError:\n"
        "    two = None\nclass Three:\n    @staticmethod\n    def four(z): pass\n    five = 1\n"
        "if fast:\n    six = 6\n",
    }
    find = follower(tmp_path, files).find
    first = find("our:first")
    assert isinstance(first, Implementation) and first.signature is not None
    assert first.signature.text() == "(x)"
    for path in ("our:two", "our:Three", "our:Three.four", "our:Three.five", "our.b:six", "our:b"):
        assert isinstance(find(path), Implementation), path
    for path in ("our:seven", "our:Three.eight", "our.c:one", "our.a.b:one"):
        assert isinstance(find(path), NotFound), path


def test_a_broken_reexport_names_both_files(tmp_path: Path) -> None:
    files = {"our/__init__.py": "from our.a import gone\n", "our/a.py": "def gown(): pass\n"}
    found = follower(tmp_path, files).find("our:gone")
    assert isinstance(found, NotFound)
    assert found.message == "__init__.py:1 imports gone from our.a: our.a (a.py) defines no gone"
    assert found.suggestion == "did you mean our.a:gown?"


def test_what_cannot_be_told_is_not_judged(tmp_path: Path) -> None:
    files = {
        "our/__init__.py": "def __getattr__(name): ...\n",
        "our/a.py": "from elsewhere import one\nfrom our.a import two\nclass C(Base): pass\n",
    }
    find = follower(tmp_path, files).find
    assert find("our:anything") is None
    assert find("our.a:one") is None
    assert find("our.a:two") is None  # it imports itself
    assert find("our.a:C.inherited") is None
    absent = find("nobody_has_this:one")
    assert isinstance(absent, Unread) and not absent.there


def test_our_own_package_is_read_where_it_is_installed(tmp_path: Path) -> None:
    found = follower(tmp_path, {})
    own = found.find("kunlun_adapt.check:check_release")
    assert isinstance(own, Implementation) and own.kind == "function"
    near = found.find("kunlun_adapt.chek.context:Context")
    assert isinstance(near, NotFound)
    assert near.suggestion == "did you mean kunlun_adapt.check.context?"


LEADS_NOWHERE = [
    ("os.path:nosuch", "os.path (posixpath.py) defines no nosuch"),
    ("os:nosuch", "os (os.py) defines no nosuch"),
    ("os:path.nosuch", "posixpath (posixpath.py) defines no nosuch"),
    ("collections.abc:nosuch", "collections.abc (abc.py) defines no nosuch"),
    ("json:nosuch", "json (__init__.py) defines no nosuch"),
    ("json:JSONDecoder.nosuch", "json.decoder:JSONDecoder has no nosuch"),
    ("json.nosuch:load", "there is no module json.nosuch"),
    ("json.decoder.scanner:py_make_scanner", "there is no module json.decoder.scanner"),
    ("sys:nosuch", "sys, which is built in, has no nosuch"),
    ("sys.nosuch:intern", "there is no module sys.nosuch: sys is built in, and no package"),
    ("yaml:nosuch", "yaml (__init__.py) defines no nosuch"),
    ("sglang.srt.runner:Nosuch", "sglang 0.5.19: sglang.srt.runner does not define"),
    ("sglang.srt.nosuch:Nosuch", "sglang 0.5.19: "),
]
LEADS_SOMEWHERE = [
    *("os.path:join", "os:getcwd", "os:environ", "os:path.join", "collections.abc:Mapping"),
    *("json:JSONDecoder.decode", "sys:intern", "signal:SIGINT", "socket:AF_INET", "ssl:OP_ALL"),
    *("yaml:safe_load", "functools:partial", "sglang.srt.runner:GraphRunner", "io:StringIO"),
]


@pytest.mark.parametrize(("path", "says"), LEADS_NOWHERE)
def test_other_modules_are_read_where_they_are_installed(
    bench: Bench, path: str, says: str
) -> None:
    """Of the standard library too, and of upstream, whatever else the path is for."""
    loaded = set(sys.modules)
    found = only(bench.edit(RECIPE, "our_impls:swiglu", path).findings(), "KA301")
    assert found.severity is Severity.ERROR
    assert found.message.startswith(f"{path} leads nowhere: ") and says in found.message
    assert not {m for m in set(sys.modules) - loaded if m.split(".")[0] == path.split(".")[0]}


@pytest.mark.parametrize("path", LEADS_SOMEWHERE)
def test_what_other_modules_have_is_not_complained_of(
    tmp_path: Path, bench: Bench, path: str
) -> None:
    found = Implementations(tmp_path, bench.resolver()).find(path)
    assert found is None or isinstance(found, Implementation)


def test_a_compiled_module_is_said(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "workspace" / "vendor").mkdir(parents=True)
    (tmp_path / "workspace" / "vendor" / "ops.cpython-310-x86_64-linux-gnu.so").touch()
    found = only(bench.edit(RECIPE, "our_impls:swiglu", "vendor.ops:swiglu").findings(), "KA301")
    assert found.severity is Severity.WARNING
    assert found.message == (
        "vendor.ops:swiglu cannot be checked here: vendor.ops is not there as Python source"
    )
    assert found.suggestion == "name a function of ours that calls it"


@pytest.mark.parametrize("slip", ["kunlun_adpt.kernels.activation:swiglu", "our_imps:swiglu"])
def test_a_slip_of_our_own_package_is_no_missing_package(bench: Bench, slip: str) -> None:
    found = only(bench.edit(RECIPE, "our_impls:swiglu", slip).findings(), "KA301")
    assert found.severity is Severity.ERROR
    assert found.suggestion in ("did you mean kunlun_adapt?", "did you mean our_impls?")


def test_upstreams_classes_are_said_once(bench: Bench) -> None:
    for path in ('mha: "our_impls:Pool"', "sglang.srt.runner:GraphRunner"):
        gone = (
            path.partition(": ")[0] + ': "sglang.srt.runner:Gone"'
            if " " in path
            else "sglang.srt.runner:Gone"
        )
        assert codes(bench.edit(MAP, path, gone).findings()) == ["KA101"]
    backend = bench.edit(MAP, "our_impls:Backend", "sglang.srt.runner:Gone")
    assert codes(backend.findings()) == ["KA301"]
    other = backend.version("0.5.30")
    assert codes(other.findings()) == ["KA009"]


NAMES = [
    ("globals()['one'] = 1", True),
    ("globals().update(one=1)", True),
    ("mine = globals()\nmine['one'] = 1", True),
    ("fill(globals())", True),
    ("import sys\nsetattr(sys.modules[__name__], 'one', 1)", True),
    ("import sys\nsys.modules[__name__] = Lazy()", True),
    ("exec('one = 1')", True),
    ("mine = globals()", False),
    ("exec('one = 1', {})", False),
    ("known = 'a' in globals()", False),
    ("setattr(Other, 'one', 1)", False),
]


@pytest.mark.parametrize(("text", "may"), NAMES)
def test_names_that_code_fills_in(tmp_path: Path, text: str, may: bool) -> None:
    found = follower(tmp_path, {"our.py": f"{text}\n"}).find("our:one")
    assert (found is None) is may


def test_modules_that_another_one_registers(tmp_path: Path) -> None:
    text = "import sys\nimport our_b as inner\nsys.modules['our.inner'] = inner\n"
    files = {"our.py": text, "our_b.py": "def one(): pass\n"}
    find = follower(tmp_path, files).find
    assert isinstance(find("our.inner:one"), Implementation)
    assert isinstance(find("our.inner:two"), NotFound)
    assert isinstance(find("our.other:one"), NotFound)
    itself = {"own.py": "import sys, own.inner as a\nsys.modules['own.inner'] = a\n"}
    assert isinstance(follower(tmp_path, itself).find("own.inner:one"), Unread)
    assert isinstance(find(f"our{'.inner' * 5000}:one"), NotFound)
    made = {"made.py": "import sys\nsys.modules[__name__ + '.inner'] = make()\n"}
    assert isinstance(follower(tmp_path, made).find("made.inner:one"), Unread)


def test_a_class_is_replaced_by_a_class_and_a_call_taken_by_a_function(bench: Bench) -> None:
    hook = '  - {id: runner, why: ours, type: replace, impl: "our_impls:IMPL", at: [{target: sglang.srt.runner.GraphRunner}]}\n'
    whole = bench.edit(MAP, "hooks:\n", "hooks:\n" + hook)
    assert codes(whole.edit(MAP, "our_impls:IMPL", "our_impls:Pool").findings()) == []
    found = only(whole.edit(MAP, "our_impls:IMPL", "our_impls:set_affinity").findings(), "KA302")
    assert "is a function, and stands in for a class" in found.message
    called = bench.edit(MAP, '"our_impls:set_affinity"', '"our_impls:Pool"')
    assert "is a class, and a hook calls" in only(called.findings(), "KA302").message


@pytest.mark.parametrize("impl", ["our_impls:Pool", "our_impls:set_affinity"])
def test_what_takes_the_place_of_something_gone_is_judged_by_what_it_was(
    bench: Bench, impl: str
) -> None:
    hook = f'  - {{id: runner, why: ours, type: replace, impl: "{impl}", at: [{{target: sglang.srt.runner.GraphRunner}}]}}\n'
    whole = bench.edit(MAP, "hooks:\n", "hooks:\n" + hook)
    lock = lock_of(whole)
    whole = whole.edit("sglang/srt/runner.py", "class GraphRunner", "class DecodeRunner")
    found = [f for f in whole.findings() if f.binding == "runner"]
    assert codes(found) == ["KA101"]
    found = [f for f in whole.findings(lock=lock) if f.binding == "runner"]
    told = {"KA101"} if impl.endswith("Pool") else {"KA101", "KA302"}
    assert {f.code for f in found if f.severity is Severity.ERROR} == told


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("os:getpid", "getpid (built in) is a function without Python source"),
        ("sys:intern", "intern (built in) is a function without Python source"),
        ("builtins:dict", "dict (built in) is a class, and a hook calls what implements it"),
    ],
)
def test_a_hook_is_not_served_by_the_interpreters_own(bench: Bench, path: str, says: str) -> None:
    found = only(bench.edit(MAP, "our_impls:set_affinity", path).findings(), "KA302")
    assert found.message.startswith(says) and found.severity is Severity.ERROR
    assert found.suggestion is not None and "name a function" in found.suggestion
    assert (found.binding, str(found.position)) == (
        "affinity",
        bench.place(MAP, '"our_impls:set_affinity"'),
    )

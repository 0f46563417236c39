"""Tells what the generated modules of this process are and do; run as a script by a test.

`imported` takes them as the doors of a real process of the installed SGLang publish them, `disk`
from a folder that `render` wrote, as an ordinary package. Both print one JSON object.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan import Plan, make_plan
from kunlun_adapt.runtime.generated import PACKAGE, GeneratedFinder
from kunlun_adapt.upstream import LockFacts, Resolver, open_release, read_lock
from tests.runtime.operator_calls import operator_calls, upstream_call


def plan_of(root: Path, release: str) -> Plan:
    lock = read_lock(root / "adapt.lock") if (root / "adapt.lock").is_file() else None
    facts: Any = LockFacts(lock, release) if lock is not None else None
    if facts is None or not lock.files(release):
        facts = Resolver(open_release("installed"))
    return make_plan(load_catalog(root), facts, "simulator")


def digest(value: Any) -> str:
    """Return a text that tells two results apart to the last bit."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(digest(v) for v in value)})"
    if hasattr(value, "detach"):
        data = value.detach().contiguous().view(-1).double().numpy().tobytes()
        return f"{value.dtype}{list(value.shape)}:{hashlib.sha256(data).hexdigest()[:16]}"
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return f"{type(value).__name__}{ {k: digest(v) for k, v in vars(value).items()} }"
    return repr(value)


def code_digest(code: CodeType) -> str:
    """Return a hash of what code does; the file that it came from is no part of it."""
    constants = [code_digest(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    parts = (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


class Recorder:
    """Notes the calls of a generated `install`; a function among the arguments by its code."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any, **kwargs: Any) -> None:
            said = {k: _plain(v) for k, v in kwargs.items()}
            self.calls.append([name, [_plain(a) for a in args], said])

        return note


def _plain(value: Any) -> Any:
    return _function(value) if isinstance(value, FunctionType) else repr(value)


def _function(value: FunctionType) -> list[str]:
    return [value.__name__, code_digest(value.__code__), str(inspect.signature(value))]


def functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    for name, value in sorted(vars(module).items()):
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield name, value


def read_by(function: FunctionType) -> str:
    """Return what a hook's reader makes of a call, with a name of its own for each argument."""

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, part: str) -> Named:
            return Named(f"{self.name}.{part}")

    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            given[name] = Named(name)
    try:
        read = function(**given)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).replace(Named.__name__, '')[:80]}"
    return repr({k: getattr(v, "name", v) for k, v in read.items()})


def describe(plan: Plan, names: list[str]) -> dict[str, Any]:
    said: dict[str, Any] = {"modules": {}, "installs": {}, "readers": {}, "results": {}}
    for name in names:
        module = importlib.import_module(f"{PACKAGE}.{name.replace('/', '.')}")
        loader: Any = module.__spec__.loader if module.__spec__ else None
        source = loader.get_source(module.__name__)
        said["modules"][name] = {
            "source": hashlib.sha256(source.encode()).hexdigest()[:16],
            "functions": [_function(f) for _, f in functions(module)],
        }
        if hasattr(module, "install"):
            recorder = Recorder()
            module.install(recorder)
            said["installs"][name] = recorder.calls
        if name == "hooks":
            said["readers"] = {n: read_by(f) for n, f in functions(module) if n != "install"}
        if name == "platform":
            said["platform"] = platform_members(module)
    calls = operator_calls()
    for recipe in plan.operators:
        module = importlib.import_module(f"{PACKAGE}.operators.{recipe.model.name}")
        kernels = {
            f"bind_{k.bind.target.rpartition('.')[2]}": k
            for k in plan.kernels
            if k.recipe is recipe
        }
        for name in (recipe.model.name, *kernels):
            function = getattr(module, name, None)
            if function is None:
                continue  # no class of ours calls it
            for index, values in enumerate(calls[recipe.model.name]):
                kernel = kernels.get(name)
                given = copy.deepcopy(upstream_call(kernel, values) if kernel else values)
                result = digest(function(**given))
                written = [digest(given[p]) for p in recipe.model.mutates if not kernel]
                said["results"][f"{recipe.model.name}.{name}[{index}]"] = [result, written]
    return said


def platform_members(module: ModuleType) -> dict[str, str]:
    """The platform class's own members: a method by its code, a field by its value."""
    cls = next(
        c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__
    )
    found = {}
    for name, value in sorted(vars(cls).items()):
        if name.startswith("__"):
            continue
        inner = value.fget if isinstance(value, property) else value
        is_code = isinstance(inner, FunctionType)
        found[name] = code_digest(inner.__code__) if is_code else repr(value)
    return found


def main(how: str, root: str, release: str, names: list[str]) -> None:
    plan = plan_of(Path(root), release)
    if how == "imported":
        from sglang.srt.platforms import current_platform

        assert type(current_platform).__module__ == f"{PACKAGE}.platform"
        finder = next(f for f in sys.meta_path if isinstance(f, GeneratedFinder))
        assert sorted(finder.modules) == sorted(names)
    else:
        from kunlun_adapt import simulator

        simulator.install()
    said = describe(plan, sorted(names))
    finders = [f for f in sys.meta_path if isinstance(f, GeneratedFinder)]
    assert bool(finders) == (how == "imported"), "each process knows one way"
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(","))

"""What is read off the text of a release is what Python sees once it has imported it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan import make_plan
from kunlun_adapt.simulator import standin_paths
from kunlun_adapt.upstream import Missing, Resolver, Symbol, open_release

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("imported.py")
LEAST = 200
SAMPLED = 400
"""How many definitions beside the bound ones are compared."""

FOLDERS = (
    "sglang/srt/configs/",
    "sglang/srt/constrained/",
    "sglang/srt/disaggregation/",
    "sglang/srt/distributed/",
    "sglang/srt/entrypoints/",
    "sglang/srt/function_call/",
    "sglang/srt/layers/",
    "sglang/srt/lora/",
    "sglang/srt/managers/",
    "sglang/srt/mem_cache/",
    "sglang/srt/model_executor/",
    "sglang/srt/models/",
    "sglang/srt/parser/",
    "sglang/srt/platforms/",
    "sglang/srt/sampling/",
    "sglang/srt/server_args.py",
    "sglang/srt/speculative/",
    "sglang/srt/utils/",
    "sglang/kernels/ops/",
)

# What a kind may be once decorators and assignments have run. `callable` is an object that can be
# called, such as the wrapper of a registered custom op; `value` is anything else. A cache of
# upstream's own (`cache_once`) is a plain function around the cached one.
SEEN_AS: dict[str, set[str]] = {
    "async_function": {"async_function"},
    "attribute": {"value", "callable", "attribute", "class", "function", "method"},
    "cached_function": {"cached_function", "function"},
    "class": {"class"},
    "classmethod": {"classmethod"},
    "constant": {"value", "callable", "class", "function"},
    "custom_op": {"callable", "function"},
    "external": {"class", "function", "module", "value", "callable", "cached_function"},
    "function": {"function"},
    "lazy": {"class", "function", "value", "callable"},
    "method": {"method", "async_function"},
    "module": {"module"},
    "property": {"property"},
    "staticmethod": {"staticmethod"},
    "triton_kernel": {"triton_kernel"},
}

pytestmark = pytest.mark.server


@dataclass(frozen=True)
class Compared:
    """The symbols as they were read, and what the importing process said of each."""

    symbols: dict[str, Symbol]
    seen: dict[str, dict[str, Any]]

    @property
    def importable(self) -> dict[str, Symbol]:
        return {p: s for p, s in self.symbols.items() if "unimportable" not in self.seen[p]}


@pytest.fixture(scope="module")
def compared() -> Compared:
    resolver = Resolver(open_release("installed"))
    paths = dict.fromkeys([*bound_paths(resolver), *sampled_paths(resolver)])
    found = {path: resolver.resolve(path) for path in paths}
    symbols = {path: item for path, item in found.items() if isinstance(item, Symbol)}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(standin_paths()),
        "SGLANG_PLUGINS": "none-of-them",
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("SGLANG_PLATFORM", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT)],
        input=json.dumps(list(symbols)),
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Compared(symbols, json.loads(done.stdout))


def bound_paths(resolver: Resolver) -> Iterable[str]:
    """Every upstream path that the shipped documents lead to, planned bindings included."""
    catalog = load_catalog(ROOT)
    for profile in ("card", "simulator"):
        plan = make_plan(catalog, resolver, profile)
        for hook in (*plan.hooks, *plan.planned_hooks):
            yield hook.at.target
        for kernel in (*plan.kernels, *plan.planned_kernels):
            yield kernel.bind.target
            if isinstance(kernel.call, Symbol):
                yield kernel.call.path
        for member in plan.members:
            if isinstance(member.symbol, Symbol):
                yield member.symbol.path
        yield from (name.path for name in plan.names.values() if not isinstance(name, Missing))


def sampled_paths(resolver: Resolver) -> Iterable[str]:
    """Definitions of all kinds, evenly over the folders that run in a server."""
    every: list[str] = []
    for file in resolver.release.files():
        module = file.removesuffix(".py").replace("/", ".")
        if file.endswith(".py") and file.startswith(FOLDERS) and "/test" not in file:
            every += definitions(resolver, module.removesuffix(".__init__"), file)
    step = max(1, len(every) // SAMPLED)
    return every[::step]


def definitions(resolver: Resolver, module: str, file: str) -> Iterable[str]:
    for node in ast.parse(resolver.release.read(file) or b"").body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{module}.{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield f"{module}.{node.name}"
            for inner in node.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield f"{module}.{node.name}.{inner.name}"


def test_enough_is_compared(compared: Compared, record_property: Any) -> None:
    lost = {p: s["unimportable"] for p, s in compared.seen.items() if "unimportable" in s}
    record_property("compared", len(compared.importable))
    record_property("not importable here", json.dumps(lost, indent=1))
    print(f"\ncompared {len(compared.importable)}; cannot be imported on a CPU: {len(lost)}")
    for path, why in sorted(lost.items()):
        print(f"  {path}: {why}")
    assert len(compared.importable) >= LEAST
    # What cannot be imported here is a matter of packages that need CUDA, not of most of SGLang.
    assert len(lost) < len(compared.importable) / 3, lost


def test_what_resolves_is_there(compared: Compared) -> None:
    absent = [path for path in compared.importable if "absent" in compared.seen[path]]
    guarded = {p for p in absent if compared.symbols[p].guard or compared.symbols[p].variants}
    assert [path for path in absent if path not in guarded] == []


def may_be(symbol: Symbol) -> set[str]:
    """A decorator that is not known may return anything; some of upstream's return None."""
    decorated = symbol.kind == "function" and symbol.decorators
    return SEEN_AS[symbol.kind] | ({"callable", "value"} if decorated else set())


def test_the_kinds_agree(compared: Compared) -> None:
    wrong = {
        path: (symbol.kind, symbol.decorators, compared.seen[path]["kind"])
        for path, symbol in compared.importable.items()
        if "kind" in compared.seen[path]
        and compared.seen[path]["kind"] not in may_be(symbol)
        and not symbol.variants
    }
    assert wrong == {}


def test_the_signatures_agree(compared: Compared) -> None:
    wrong = {}
    count = 0
    for path, symbol in compared.importable.items():
        seen = compared.seen[path].get("signature")
        if seen is None or symbol.signature is None or symbol.kind == "class" or symbol.variants:
            continue
        count += 1
        read = [[p.name, KINDS[p.kind], p.has_default] for p in symbol.signature.parameters]
        if read != seen:
            wrong[path] = (symbol.signature.text(), seen, symbol.decorators)
    assert wrong == {}
    assert count >= LEAST


KINDS = {
    "positional_only": "positional_only",
    "positional": "positional_or_keyword",
    "var_positional": "var_positional",
    "keyword_only": "keyword_only",
    "var_keyword": "var_keyword",
}

"""Measure how often what `retarget` takes a lost symbol for is right, and write the table.

Two kinds of cases are labelled by upstream itself. *Moved*: a path that one release defines and a
later one only imports from elsewhere; the path is hidden, and the right answer is what upstream
imports. *Gone*: a symbol that both releases have in one place; it is hidden, and any answer is
wrong. Whether a process loads plugins is labelled by the shipped map, whose ranges were verified by
hand; so are the keys of the interface (tests/evolve/test_retarget.py counts them).

Usage: python benchmarks/retarget_rates.py [OLD:NEW …]; wheels come from the cache. Pairs that are
named are added to the table, without any it is made anew.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from datetime import date

from kunlun_adapt.check import context_for
from kunlun_adapt.check.processes import loads_plugins
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.retarget.company import Users, owner_of
from kunlun_adapt.evolve.retarget.follow import candidate_evidence, searched
from kunlun_adapt.evolve.retarget.rates import FILE
from kunlun_adapt.locate import find_workspace
from kunlun_adapt.plan import PROCESS, spelled
from kunlun_adapt.upstream import Symbol, open_release
from kunlun_adapt.upstream.following import FollowingResolver

PAIRS = (
    *("0.5.1:0.5.3", "0.5.3:0.5.5", "0.5.5:0.5.7", "0.5.7:0.5.9", "0.5.9:0.5.11"),
    *("0.5.11:0.5.13", "0.5.13:0.5.15", "0.5.15:0.5.17", "0.5.17:0.5.18", "0.5.18:0.5.19"),
    *("0.5.19:0.5.20", "0.5.20:0.5.21", "0.5.21:0.5.22", "0.5.22:0.5.23"),
    *("0.5.17:0.5.19", "0.5.17:0.5.23", "0.5.19:0.5.23"),
)
PARTS = ("sglang.srt.", "sglang.kernels.", "sglang.jit_kernel.")
RELEASES = (
    *("0.5.11", "0.5.12", "0.5.12.post1", "0.5.13", "0.5.13.post1", "0.5.14", "0.5.15"),
    *("0.5.15.post1", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22"),
    "0.5.23",
)
MOST = 300
"""Cases of either kind from one pair of releases."""


def opened(version: str) -> FollowingResolver:
    resolver = FollowingResolver(open_release(version))
    resolver.use_cache()
    return resolver


def defined(old: FollowingResolver) -> list[str]:
    """Every definition of the server and its kernels, methods included."""
    found = []
    for module in old.index.modules:
        if module.startswith(PARTS) and ".test" not in module:
            for item in old.index.defined_in(module):
                if not item.name.startswith("__") or item.name == "__init__":
                    found.append(item.path)
    return list(dict.fromkeys(found))


def cases(
    old: FollowingResolver, new: FollowingResolver, seed: random.Random, seen: set[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[str]]:
    """The moved paths with where they are now, and paths that stayed.

    A move that an earlier pair had too is no second case.
    """
    moved, stayed = [], []
    paths = defined(old)
    seed.shuffle(paths)
    for path in paths:
        there = new.definition(path)
        if there == path:
            if len(stayed) < MOST:
                stayed.append(path)
        elif there is not None and old.definition(path) == path:
            owner = new.definition(path.rpartition(".")[0])
            # A member that is only inherited now is no move of its class.
            if not path.rpartition(".")[2][:1].isupper() and owner is None:
                continue
            symbol = new.resolve(path)
            if isinstance(symbol, Symbol) and symbol.inherited_from is None:
                moved.append((path, there))
    moved = [move for move in moved if move not in seen][:MOST]
    seen.update(moved)
    return moved, stayed


def measure(
    old: FollowingResolver, new: FollowingResolver, seed: random.Random, seen: set[tuple[str, str]]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    moved, stayed = cases(old, new, seed, seen)
    paths = [path for path, _ in moved] + stayed
    symbols = [s for s in map(old.resolve, paths) if isinstance(s, Symbol)]
    users = Users(owner_of(symbol)[1] for symbol in symbols)
    for path, truth in moved:
        symbol = old.resolve(path)
        if not isinstance(symbol, Symbol):
            continue
        found = [
            c for c in searched(old, symbol, new, users, whole=True) if not c.evidence.by_body_alone
        ]
        if not found:
            counts["moved and not found\t0"] += 1
            continue
        best = found[0]
        right = best.symbol.resolved == truth
        counts[f"{best.evidence.key}\t{int(right)}"] += 1
        if not right and best.evidence.name == "same name":
            print("moved", path, truth, best.symbol.path, best.evidence.key, file=sys.stderr)
        there = new.resolve(truth)
        if isinstance(there, Symbol):
            counts[f"{candidate_evidence(old, symbol, new, there, users).name} in truth\t1"] += 1
    for path in stayed:
        symbol = old.resolve(path)
        if not isinstance(symbol, Symbol):
            continue
        for best in searched(old, symbol, new, users, whole=True):
            if best.symbol.resolved != path:
                counts[f"{best.evidence.key}\t0"] += 1
                if best.evidence.name == "same name" and best.evidence.fresh:
                    print("gone", path, best.symbol.path, best.evidence.key, file=sys.stderr)
                break
    print(old.version, new.version, len(moved), len(stayed), file=sys.stderr, flush=True)
    return counts


def processes() -> list[int]:
    """Count where a process was rightly seen to load plugins or not, and where wrongly."""
    catalog = load_catalog(find_workspace())
    right = wrong = 0
    for version in RELEASES:
        context = context_for(catalog, opened(version), beyond_claims=True)
        assert context is not None
        for key in context.map.interface:
            stated = spelled(context.map, key, version, True)
            if key.startswith(f"{PROCESS}.") and stated is not None:
                seen = loads_plugins(context, key.removeprefix(f"{PROCESS}."))
                right += seen is stated.loads_plugins
                wrong += seen is not None and seen is not stated.loads_plugins
    return [right, wrong]


def main() -> None:
    pairs = sys.argv[1:] or PAIRS
    seed, total, seen = random.Random(5), Counter[str](), set[tuple[str, str]]()
    for pair in pairs:
        old, new = map(opened, pair.split(":"))
        total += measure(old, new, seed, seen)
        old.keep_answers()
        new.keep_answers()
    table: dict[str, list[int]] = {}
    for key, count in total.items():
        kind, _, right = key.partition("\t")
        if kind.endswith(("in truth", "not found")):
            continue
        table.setdefault(kind, [0, 0])[0 if right == "1" else 1] += count
    for key, count in sorted(total.items()):
        print(count, key, file=sys.stderr)
    held = json.loads(FILE.read_text(encoding="utf-8"))
    if sys.argv[1:]:
        for kind, row in held["rates"].get("moved", {}).items():
            mine = table.setdefault(kind, [0, 0])
            table[kind] = [mine[0] + row[0], mine[1] + row[1]]
        pairs = [*held["measured"].get("pairs", []), *pairs]
    held["rates"]["moved"] = dict(sorted(table.items()))
    if not sys.argv[1:]:
        held["rates"]["process"] = {"all": processes()}
    held["measured"] |= {"date": date.today().isoformat(), "pairs": list(pairs), "most": MOST}
    text = re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", json.dumps(held, indent=1))
    FILE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

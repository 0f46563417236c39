"""What a binding depends on beside its target: how upstream calls it, what else ours stands for.

Two kinds of neighbours are found without being named. A **caller** decides what ours is given:
what each call passes for the parameters that we map is kept, not the caller's whole body, which
changes for a hundred reasons. A **callee** matters only where ours stands for the whole function
(`replace`, and an operator's function): then it does the work of the parts that upstream keeps
beside it, the Triton kernels that it launches and the functions of its own module. What runs
`before`, `after` or `around` leaves upstream's body to call what it likes.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.use_sites import Site, UseSites
from kunlun_adapt.plan import WRAPPING
from kunlun_adapt.upstream import Signature, Symbol
from kunlun_adapt.upstream.module import absolute_in
from kunlun_adapt.upstream.syntax import dotted

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Reference, Resolver

CALLED = (*WRAPPING, "function")
STANDS_FOR = ("replace", "function")
MANY = 12
"""What more functions than these call is called by everybody: no caller says what it is for."""

LONGEST = 100
_FUNCTIONS = ("function", "async_function", "method", "classmethod", "staticmethod", "custom_op")

Row = Mapping[str, Any]


def neighbours(context: Context) -> dict[str, dict[str, Any]]:
    """Return `callers` and `callees` by binding, of what is bound in the release."""
    found: dict[str, dict[str, Any]] = {}
    stands = {item.binding.status for item in context.hooks}
    stands |= {item.binding.status for item in context.kernels}
    if "bound" not in stands or context.index is None:
        return found
    sites = UseSites.of(context, context.index)
    for site in sites.sites:
        if site.item.binding.status != "bound" or site.how not in CALLED:
            continue
        row: dict[str, Any] = {}
        callers = _callers(sites, site) if site.at.args else None
        if callers is not None:
            row["callers"] = callers
        if site.how in STANDS_FOR and context.reader is not None:
            row["callees"] = dict(sorted(_callees(context.reader, site.symbol)))
        # A binding has one place in a release, except where profiles differ: the first one counts.
        found.setdefault(site.id, row)
    return found


def _callers(sites: UseSites, site: Site) -> dict[str, list[dict[str, str]]] | None:
    """What each caller passes for our parameters; None where everybody calls it."""
    signature = site.symbol.signature
    if signature is None:
        return None
    found: dict[str, dict[str, dict[str, str]]] = {}
    for reference in sites.calls(site):
        caller = ".".join(part for part in (reference.module, reference.scope) if part)
        passed = _passed(reference, signature, site)
        found.setdefault(caller, {})[json.dumps(passed, sort_keys=True)] = passed
    if len(found) > MANY:
        return None
    return {
        caller: [calls[key] for key in sorted(calls)] for caller, calls in sorted(found.items())
    }


def _passed(reference: Reference, signature: Signature, site: Site) -> dict[str, str]:
    """The expression that a call gives each parameter of ours, without those it leaves out."""
    call = reference.call
    if call is None:
        return {}
    plain = [p.name for p in signature.parameters if p.kind in ("positional_only", "positional")]
    through_class = reference.through_class and site.symbol.kind == "method"
    first = site.symbol.kind in ("method", "classmethod") and not through_class
    plain = plain[1:] if first else plain
    given = dict(zip(call.keywords, call.arguments[call.positional :], strict=False))
    if not call.star:
        given.update(zip(plain, call.arguments[: call.positional], strict=False))
    theirs = {ours: path.split(".")[0] for ours, path in site.at.args.items()}
    return {ours: _short(given[name]) for ours, name in theirs.items() if name in given}


def _short(text: str) -> str:
    """An expression on one line; of a long one the start, and a hash of the whole."""
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _callees(reader: Resolver, symbol: Symbol) -> Iterator[tuple[str, str]]:
    """The kernels that a function launches and the functions of its module that it calls."""
    body = reader.statement(symbol)
    if not isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    absolute = absolute_in(symbol.module, symbol.location.file.endswith("/__init__.py"))
    imported = {
        alias.asname or alias.name: f"{absolute(node)}.{alias.name}"
        for node in ast.walk(body)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    owner = symbol.resolved.rpartition(".")[0]
    for call in ast.walk(body):
        if not isinstance(call, ast.Call):
            continue
        launch = isinstance(call.func, ast.Subscript)
        name = dotted(call.func.value if isinstance(call.func, ast.Subscript) else call.func)
        if name is None:
            continue
        root, _, rest = name.partition(".")
        if root in ("self", "cls"):
            path = f"{owner}.{rest}"
        elif root in imported:
            path = ".".join(part for part in (imported[root], rest) if part)
        else:
            path = f"{symbol.module}.{name}"
        if not path.startswith("sglang."):
            continue
        found = reader.resolve(path)
        if not isinstance(found, Symbol) or found.resolved == symbol.resolved:
            continue
        beside = found.module == symbol.module and found.kind in _FUNCTIONS
        if found.fingerprint and (found.kind == "triton_kernel" if launch else beside):
            yield found.resolved, found.fingerprint


def neighbour_changes(was: Row, now: Row) -> list[str]:
    """Return, in words, how the neighbours of a binding differ; the target is not looked at."""
    said: list[str] = []
    if isinstance(was.get("callers"), dict) and isinstance(now.get("callers"), dict):
        same = was.get("stated") == now.get("stated")
        said += _caller_changes(was["callers"], now["callers"], same)
    before, after = was.get("callees"), now.get("callees")
    if isinstance(before, dict) and isinstance(after, dict):
        for path in sorted(before.keys() & after.keys()):
            if before[path] != after[path]:
                said.append(f"the body of {path}, which it calls, changed")
        came = _moved(before, after)
        said += [
            f"it no longer calls {path}" for path in sorted(before.keys() - after.keys() - came)
        ]
        said += [f"it now calls {path}" for path in sorted(after.keys() - before.keys() - came)]
    return said


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """What went to another module as it was, under its old and its new path."""
    gone, come = before.keys() - after.keys(), after.keys() - before.keys()
    return {
        path
        for one in gone
        for other in come
        if _leaf(one) == _leaf(other) and before[one] == after[other]
        for path in (one, other)
    }


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


Calls = Mapping[str, list[dict[str, str]]]


def _caller_changes(before: Calls, after: Calls, same: bool) -> Iterator[str]:
    if not same:
        # The mapping was edited since: only what both map tells of upstream.
        names = _names(before) & _names(after)
        before, after = _only(before, names), _only(after, names)
    moved = _moved(before, after)
    for caller in sorted(before.keys() & after.keys()):
        was, now = before[caller], after[caller]
        if was != now:
            gone = [call for call in was if call not in now]
            come = [call for call in now if call not in was]
            yield f"{caller} {_call_change(gone, come)}"
    for caller in sorted(before.keys() - after.keys() - moved):
        yield f"{caller} no longer calls it"
    for caller in sorted(after.keys() - before.keys() - moved):
        yield f"{caller} calls it too"


def _names(calls: Calls) -> set[str]:
    return {name for rows in calls.values() for row in rows for name in row}


def _only(calls: Calls, names: set[str]) -> Calls:
    kept: dict[str, list[dict[str, str]]] = {}
    for caller, rows in calls.items():
        cut = [{n: text for n, text in row.items() if n in names} for row in rows]
        unique = {json.dumps(row, sort_keys=True): row for row in cut}
        kept[caller] = [unique[key] for key in sorted(unique)]
    return kept


def _call_change(gone: list[dict[str, str]], come: list[dict[str, str]]) -> str:
    if len(gone) == len(come) == 1:
        one, other = gone[0], come[0]
        parts = []
        for name in dict.fromkeys((*one, *other)):
            if one.get(name) != other.get(name):
                now = f"{name}={other[name]}" if name in other else f"no {name}"
                parts.append(f"{now}, was {one.get(name, 'nothing')}")
        return f"passes {'; '.join(parts)}"
    shown = [" or ".join(_form(call) for call in calls) or "nothing else" for calls in (come, gone)]
    return f"passes {shown[0]}, was {shown[1]}"


def _form(call: Mapping[str, str]) -> str:
    return f"({', '.join(f'{name}={text}' for name, text in call.items())})"

"""KA407: a hook that its process never gets, or gets otherwise than the map says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.processes import LOADS, entry, loads_plugins
from kunlun_adapt.diagnostics import EntryChange, Finding, Mend
from kunlun_adapt.plan import MAIN, PROCESS, HookBinding, spelled
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Compare what the map says of each process with what the process calls, then the hooks."""
    if context.reader is None or context.platform_packages_missing:
        return
    for key in context.map.interface:
        if key.startswith(f"{PROCESS}."):
            yield from _stated(context, key)
    for hook in context.hooks:
        for index, process in enumerate(hook.hook.process or ()):
            key = f"{PROCESS}.{process}"
            if process != MAIN and not spelled(
                context.map, key, context.release, context.beyond_claims
            ):
                yield _unspelled(context, hook, process, index)
        yield from _begun(context, hook)


def _stated(context: Context, key: str) -> Iterator[Finding]:
    """Report a process of which the map says something else about plugins than upstream does."""
    process = key.removeprefix(f"{PROCESS}.")
    spelling = spelled(context.map, key, context.release, context.beyond_claims)
    loads = loads_plugins(context, process)
    if spelling is None or loads is None or loads is spelling.loads_plugins:
        return
    if loads:
        message = (
            f"the {process} calls {LOADS}() in sglang {context.release}, and the map says that it "
            "does not: our hooks would be applied before other plugins register theirs"
        )
        text = f"drop `loads_plugins: false` for sglang {context.release}"
    else:
        message = (
            f"the {process} never calls {LOADS}() in sglang {context.release}: no hook would be "
            "bound there"
        )
        text = "add `loads_plugins: false`: our hooks are then registered as it begins"
    start = entry(context, process)
    index = context.map.interface[key].index(spelling)
    raw, values = context.document.raw, {"loads_plugins": None if loads else False}
    change = EntryChange(raw.file, raw.index, ("interface", key, index), values)
    # That a call is there can be seen; that there is none anywhere cannot quite.
    asks = () if loads else ("whether it never loads plugins",)
    yield Finding.of(
        "KA407",
        message,
        context.document.at("interface", key, index, "call"),
        target=spelling.call,
        upstream=start.location if start else None,
        suggestion=Mend(text, "process", (change,), asks),
    )


def _unspelled(context: Context, hook: HookBinding, process: str, index: int) -> Finding:
    return Finding.of(
        "KA407",
        f"{hook.binding.id} is for the {process}, and the map does not say what that runs in "
        f"sglang {context.release}: the hook cannot be bound there",
        hook.document.at(*hook.path[:2], "process", index),
        binding=hook.binding.id,
        target=hook.at.target,
        suggestion=f"name in `interface`, as {PROCESS}.{process}, what that process runs",
    )


def _begun(context: Context, hook: HookBinding) -> Iterator[Finding]:
    """Report a hook on the very function that a process runs: it has begun when hooks come."""
    for key in context.map.interface:
        process = key.removeprefix(f"{PROCESS}.")
        if process == key or process not in (hook.hook.process or (process,)):
            continue
        start = entry(context, process)
        if not isinstance(hook.symbol, Symbol) or start is None:
            continue
        if hook.symbol.resolved == start.resolved:
            yield Finding.of(
                "KA407",
                f"{hook.at.target} is what the {process} runs: it has begun when hooks are applied "
                "there, and the hook is never bound",
                hook.document.at(*hook.path, "target"),
                binding=hook.binding.id,
                target=hook.at.target,
                upstream=start.location,
                suggestion="hook what it calls",
            )

"""KA407: a hook for a process that never loads plugins in this release."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.bodies import function
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.processes import LOADS, entry, loads_plugins, names_in
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Symbol

PROCESS = "process."


def rule(context: Context) -> Iterable[Finding]:
    """Report hooks that no call of `load_plugins` ever brings about."""
    if context.reader is None or context.platform_packages_missing:
        return
    processes = [k.removeprefix(PROCESS) for k in context.map.interface if k.startswith(PROCESS)]
    for hook in context.hooks:
        named = hook.hook.process or ()
        for i, process in enumerate(named):
            if loads_plugins(context, process) is False:
                yield _named(context, hook, process, i, alone=len(named) == 1)
        if not named and isinstance(hook.symbol, Symbol):
            for name in processes:
                runs_there = _runs_in(context, hook.symbol, name)
                if runs_there and loads_plugins(context, name) is False:
                    yield _only_there(context, hook, name)


def _runs_in(context: Context, symbol: Symbol, process: str) -> bool:
    """Tell whether a symbol is what a process runs: its function, or a class that that names."""
    start = entry(context, process)
    if start is None or symbol.module != start.module:
        return False
    head = symbol.qualname.partition(".")[0]
    if head == start.qualname:
        return True
    node = function(context, start)
    owner = context.facts.resolve(f"{symbol.module}.{head}")
    is_class = isinstance(owner, Symbol) and owner.kind == "class"
    return is_class and node is not None and head in names_in(node)


def _named(
    context: Context, hook: HookBinding, process: str, index: int, *, alone: bool
) -> Finding:
    start = entry(context, process)
    mend = f"remove {process} from `process`" if not alone else _leave_out(context, hook)
    return Finding.of(
        "KA407",
        f"{hook.binding.id} is for the {process}, which never calls {LOADS}() in sglang "
        f"{context.release}: it is never bound there",
        hook.document.at(*hook.path[:2], "process", index),
        binding=hook.binding.id,
        target=hook.at.target,
        upstream=start.location if start else None,
        suggestion=mend,
    )


def _only_there(context: Context, hook: HookBinding, process: str) -> Finding:
    start = entry(context, process)
    return Finding.of(
        "KA407",
        f"{hook.at.target} runs in the {process}, which never calls {LOADS}() in sglang "
        f"{context.release}: the hook is never bound there",
        hook.document.at(*hook.path, "target"),
        binding=hook.binding.id,
        target=hook.at.target,
        upstream=start.location if start else None,
        suggestion=_leave_out(context, hook),
    )


def _leave_out(context: Context, hook: HookBinding) -> str:
    return f"leave it out: {leave_out(context, hook.binding.id)}"

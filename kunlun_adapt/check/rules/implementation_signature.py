"""KA302: an implementation that cannot take the call that it will get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.as_upstream import refused
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_calls import call_text, faults, wanted
from kunlun_adapt.check.impl_uses import ImplUse, find, impl_uses
from kunlun_adapt.check.implementations import BUILT_IN, Implementation
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Compare what each implementation takes with what the generated code passes.

    KA207 speaks of the methods of the platform.
    """
    for use in impl_uses(context):
        yield from _kind(context, use)
        if use.upstream is not None:
            yield from _as_upstream(context, use, use.upstream)
        if use.positional is None or use.member is not None:
            continue
        found = find(context, use.path)
        if not isinstance(found, Implementation) or found.signature is None:
            continue
        said = list(faults(use, found.signature))
        if said:
            name = use.path.partition(":")[2]
            yield Finding.of(
                "KA302",
                f"{name}{found.signature.text()} ({found.location}) cannot be called as "
                f"{name}({call_text(use)}): {'; '.join(said)}",
                use.position,
                binding=use.binding,
                suggestion=f"write `def {name}({wanted(use)}): …`",
            )


def _as_upstream(context: Context, use: ImplUse, hook: HookBinding) -> Iterator[Finding]:
    """What takes upstream's arguments as they come has to take every call of upstream's."""
    found, symbol = find(context, use.path), hook.symbol
    if not isinstance(found, Implementation) or found.signature is None:
        return
    if not isinstance(symbol, Symbol) or symbol.signature is None:
        return
    said = list(refused(hook.hook.type, symbol, found.signature))
    if said:
        name = use.path.partition(":")[2]
        yield Finding.of(
            "KA302",
            f"{name}{found.signature.text()} ({found.location}) does not take what upstream's "
            f"{symbol.name}{symbol.signature.text()} takes: {'; '.join(said)}",
            use.position,
            binding=use.binding,
            target=hook.at.target,
            upstream=symbol.location,
            suggestion="give it upstream's parameters, or let it take `call` and map what it reads",
        )


def _kind(context: Context, use: ImplUse) -> Iterator[Finding]:
    """A class is replaced by a class, and what is called by what takes the call."""
    found = find(context, use.path) if use.kind else None
    if not isinstance(found, Implementation) or found.kind not in ("class", "function", BUILT_IN):
        return
    if found.kind == use.kind:
        return
    if found.kind == BUILT_IN and use.kind == "function":
        fault = "is a function without Python source, and none of these reads a `call`"
        tip = "name a function of ours that takes `call`, and let it call this one"
    elif use.kind == "class":
        fault = "is a function, and stands in for a class: nothing could derive from it"
        tip = "name a class of ours, or hook a method of upstream's"
    else:
        takes = "upstream's arguments" if use.upstream is not None else "one `call`"
        fault = f"is a class, and a hook calls what implements it with {takes}"
        tip = "name a function" if use.upstream is not None else "name a function that takes `call`"
    yield Finding.of(
        "KA302",
        f"{use.path.partition(':')[2]} ({found.location}) {fault}",
        use.position,
        binding=use.binding,
        suggestion=tip,
    )

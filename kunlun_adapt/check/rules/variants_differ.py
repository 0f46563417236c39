"""KA113: several definitions of the target whose signatures differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.guards import can_hold, definitions, devices
from kunlun_adapt.check.targets import bound
from kunlun_adapt.check.wording import listed
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import WRAPPING, HookBinding
from kunlun_adapt.upstream import Signature, Symbol, Variant

ANYTHING = {"var_positional", "var_keyword"}


def rule(context: Context) -> Iterable[Finding]:
    """Report targets of which one of several definitions may run, each called otherwise.

    A definition under a guard that holds in none of the binding's profiles cannot run here.
    """
    for item in bound(context):
        if isinstance(item.binding, HookBinding) and item.binding.hook.type not in WRAPPING:
            continue
        reports = set(devices(context, item.binding).values())
        found = [d for d in definitions(item.symbol) if can_hold(d.guard, reports)]
        texts = {d.signature.text() for d in found if d.signature and _states(d.signature)}
        if len(texts) > 1:
            yield Finding.of(
                "KA113",
                f"{item.symbol.path} has {len(texts)} signatures, and which one is defined is "
                f"known only where it runs: {listed(list(_shown(found)))}; `args` is read from "
                "the first",
                item.position,
                binding=item.binding.binding.id,
                target=item.symbol.path,
                upstream=item.symbol.location,
                suggestion=_suggestion(item.symbol.path, found),
            )


def _suggestion(path: str, found: list[Symbol | Variant]) -> str:
    """Where each has another path of its own, all can be bound; else one must be the right one."""
    paths = list(dict.fromkeys(item.resolved for item in found if item.resolved))
    if len(paths) == len(found) and path not in paths:
        return f"bind each under its own path: target: {' and target: '.join(paths)}"
    # What stands under a guard comes after what has none, and takes the name where it holds.
    first = "the guard of the first holds" if found[0].guard else "no guard of the others holds"
    return (
        f"make sure that {first} where the binding is for, and say so in "
        "`accepts: [{code: KA113, why: …}]`"
    )


def _shown(found: list[Symbol | Variant]) -> Iterator[str]:
    for item in found:
        if item.signature is not None:
            under = f" under `{item.guard}`" if item.guard else ""
            yield f"{item.signature.text()}{under} ({item.location})"


def _states(signature: Signature) -> bool:
    """Tell whether a signature says anything: `(*args, **kwargs)` takes what the others take."""
    return {p.kind for p in signature.parameters} != ANYTHING

"""What the map states beside hooks and operators: model classes, and what is warmed up."""

from __future__ import annotations

from collections.abc import Iterator

from kunlun_adapt.documents import Document, PlatformMap, in_range
from kunlun_adapt.plan.binding import Binding, HookBinding, ModelBinding, Status, WarmUp
from kunlun_adapt.plan.members import spelled
from kunlun_adapt.plan.nearest import nearest_range
from kunlun_adapt.upstream import Facts, Missing, Symbol

MODELS = "models"
"""The key under which the interface spells upstream's table of model classes."""
GROUP = "group"
"""The interface spells what hands out a process group as `group.<name>`."""


def plan_models(
    document: Document[PlatformMap], facts: Facts, beyond: bool = False
) -> Iterator[ModelBinding]:
    """Yield a binding for each architecture; several entries for one are its ranges."""
    entries = document.model.models
    registry = _named(document.model, MODELS, facts, beyond)
    for architecture in dict.fromkeys(m.architecture for m in entries):
        places = [i for i, m in enumerate(entries) if m.architecture == architecture]
        ranges = [entries[i].sglang for i in places]
        chosen = next((i for i, r in enumerate(ranges) if in_range(r, facts.version)), None)
        if chosen is None and beyond:
            chosen = nearest_range(ranges, facts.version)
        model = entries[places[chosen or 0]]
        status: Status = "bound"
        reason = None
        if chosen is None:
            status, reason = "excluded", "it does not claim this release"
        elif registry is None:
            status = "planned"
            reason = f"interface.{MODELS} does not say where this release keeps its model classes"
        yield ModelBinding(
            Binding(
                id=f"factory/models.{architecture}",
                kind="factory",
                family="platform",
                target=registry.path if registry is not None else "",
                status=status,
                why=model.why,
                required=model.required and status == "bound",
                claims=" | ".join(ranges),
                position=document.at("models", places[chosen or 0], "class"),
                served=False,
                served_why="no model of the server tests is out of tree",
                status_why=reason,
            ),
            model,
            registry or Missing(path="", reason="symbol_missing"),
        )


def plan_warm_up(
    document: Document[PlatformMap],
    facts: Facts,
    hooks: tuple[HookBinding, ...],
    bindings: list[Binding],
    beyond: bool = False,
) -> tuple[WarmUp | None, Binding | None]:
    """Return what the bound hook warms up, or a binding that says why nothing is.

    What is warmed up is bound by its hook; it has a binding of its own only where it is not.
    """
    stated = document.model.communication
    if stated is None:
        return None, None
    hook = next((h for h in hooks if h.hook.id == stated.hook), None)
    groups = [(g, _named(document.model, f"{GROUP}.{g}", facts, beyond)) for g in stated.groups]
    known = tuple((name, symbol) for name, symbol in groups if symbol is not None)
    unknown = [name for name, symbol in groups if symbol is None]
    planned = next((b for b in bindings if b.id == stated.hook), None)
    status: Status = "planned"
    if hook is not None and hook.binding.status == "bound" and not unknown:
        return WarmUp(hook.binding, stated.warmup_bytes, known), None
    if planned is None:
        reason = f"no hook is called {stated.hook}"
    elif planned.status != "bound":
        status, reason = planned.status, f"its hook {stated.hook} is {planned.status}"
    else:
        reason = f"interface.{GROUP}.{unknown[0]} does not say what hands out that group"
    return None, Binding(
        id="factory/communication",
        kind="factory",
        family="platform",
        target="",
        status=status,
        why=stated.why,
        required=False,
        claims=document.model.sglang,
        position=document.key_at("communication"),
        status_why=reason,
    )


def _named(
    platform_map: PlatformMap, key: str, facts: Facts, beyond: bool
) -> Symbol | Missing | None:
    """Return what the interface names in this release, None where it says nothing of it."""
    spelling = spelled(platform_map, key, facts.version, beyond)
    return facts.resolve(spelling.call) if spelling is not None and spelling.call else None

"""What the hook template shows: how each hook's call is read, and how it is registered."""

from __future__ import annotations

from dataclasses import dataclass

from kunlun_adapt.plan import HookBinding, Plan
from kunlun_adapt.source.signatures import guards, parameter_parts, uses_unset
from kunlun_adapt.source.text import SourceError, distinct, dotted, identifier, literal, place
from kunlun_adapt.upstream import Signature, Symbol


@dataclass(frozen=True, slots=True)
class HookText:
    """One hook as the template prints it."""

    id: str
    why: str
    at: str
    type: str
    target: str
    reader: str
    parameters: tuple[str, ...]
    guards: tuple[tuple[str, str, str], ...]
    args: tuple[str, ...]
    positional: tuple[str, ...]
    mapped: tuple[str, ...]
    impl: str | None
    value: str | None
    process: tuple[str, ...]
    required: bool
    repair: tuple[str, ...]
    whole_class: bool
    unset: bool
    decorates: bool
    readback: tuple[str, ...]
    takes_arguments: bool
    key: str | None


def hook_texts(plan: Plan) -> tuple[HookText, ...]:
    """Return the hooks of a plan in the map's order. Raises SourceError."""
    readers = distinct(f"read_{h.hook.id}" for h in plan.hooks)
    return tuple(_hook(h, r) for h, r in zip(plan.hooks, readers, strict=True))


def _hook(item: HookBinding, reader: str) -> HookText:
    hook = item.hook
    symbol = item.symbol
    if not isinstance(symbol, Symbol):
        raise SourceError(f"{hook.id}: {item.at.target} does not exist in this release")
    dotted(item.at.target)
    whole_class = symbol.kind == "class"
    reads = item.maps_call and not whole_class
    if reads and symbol.signature is None:
        raise SourceError(f"{hook.id}: the signature of {item.at.target} is not known")
    signature = symbol.signature if reads else None
    positional: tuple[str, ...] = ()
    if signature is not None:
        nameless = [p.name for p in signature.parameters if p.kind == "positional_only"]
        named = [p.name for p in signature.parameters if p.kind == "positional"]
        positional = (*nameless, *("/" for _ in nameless[:1]), *named)
    return HookText(
        id=hook.id,
        why=hook.why,
        at=place(item.binding.position),
        type=hook.type,
        target=item.at.target,
        reader=reader if reads else "None",
        parameters=parameter_parts(signature) if signature else (),
        guards=tuple(guards(item.at.ignores, signature)) if signature else (),
        args=tuple(
            f"{literal(name)}: {'.'.join(identifier(p) for p in path.split('.'))}"
            for name, path in item.at.args.items()
        ),
        positional=positional,
        mapped=tuple(
            f"{literal(name)}: {literal(_stars(signature, path))}"
            for name, path in item.at.args.items()
            if "." not in path
        ),
        impl=hook.impl,
        value=literal(hook.value) if hook.impl is None or hook.value is not None else None,
        process=tuple(hook.process or ()),
        required=item.binding.required,
        repair=tuple(hook.repair),
        whole_class=whole_class,
        unset=signature is not None and uses_unset(signature),
        decorates=hook.type == "register" and _decorates(item, symbol),
        readback=_readback(item),
        takes_arguments=hook.takes == "arguments" and not whole_class,
        key=None if hook.key is None else literal(hook.key),
    )


def _readback(item: HookBinding) -> tuple[str, ...]:
    """Return the registry's path and the key under which it must hold what was registered."""
    found = item.at.readback
    if found is None:
        return ()
    value = item.hook.value
    first = value[0] if isinstance(value, list) and value else value
    key = first if found.key is None else found.key
    return literal(dotted(found.target)), literal(key)


def _stars(signature: Signature | None, parameter: str) -> str:
    """Return the parameter's name, with its stars where it collects arguments."""
    found = signature.parameter(parameter) if signature else None
    stars = {"var_positional": "*", "var_keyword": "**"}
    return stars.get(found.kind, "") + parameter if found else parameter


def _decorates(item: HookBinding, symbol: Symbol) -> bool:
    """Tell whether a registration function returns a decorator for the implementation.

    It does where the values fill all that it requires; else the implementation comes last.
    """
    if symbol.signature is None:
        raise SourceError(f"{item.hook.id}: the signature of {item.at.target} is not known")
    bound = symbol.kind in ("method", "classmethod")
    signature = symbol.signature.without_first() if bound else symbol.signature
    value = item.hook.value
    given = len(value) if isinstance(value, list) else int(value is not None)
    return item.hook.impl is not None and len(signature.required()) <= given

"""KA104: the symbol is not of the kind that the binding needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.plan import WRAPPING, HookBinding, KernelBinding
from kunlun_adapt.upstream import Missing, Symbol

CALLABLE = ("function", "async_function", "method", "classmethod", "staticmethod", "class")
OOT = "register_oot_forward"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a kind does not fit, and what to write instead."""

    message: str
    suggestion: str
    severity: Severity | None = None


def rule(context: Context) -> Iterable[Finding]:
    """Report bindings whose way of binding cannot work on the kind of symbol that is there."""
    for hook in context.hooks:
        # The plan of an `add` holds what is added to; here it matters whether the member is there.
        added = hook.hook.type == "add"
        symbol = context.facts.resolve(hook.at.target) if added else hook.symbol
        if isinstance(symbol, Symbol):
            position = hook.document.at(*hook.path, "target")
            for fault in _hook(hook, symbol):
                yield Finding.of(
                    "KA104",
                    fault.message,
                    position,
                    binding=hook.binding.id,
                    target=hook.at.target,
                    upstream=symbol.location,
                    suggestion=fault.suggestion,
                    severity=fault.severity,
                )
    for kernel in context.kernels:
        if isinstance(kernel.symbol, Symbol):
            for fault in _kernel(context, kernel, kernel.symbol):
                yield Finding.of(
                    "KA104",
                    fault.message,
                    kernel.recipe.at(*kernel.path, "target"),
                    binding=kernel.binding.id,
                    target=kernel.bind.target,
                    upstream=kernel.symbol.location,
                    suggestion=fault.suggestion,
                    severity=fault.severity,
                )
    yield from _members(context)


def _a(symbol: Symbol) -> str:
    words = symbol.kind.replace("_", " ")
    return f"{symbol.path} is {'an' if words[0] in 'aeiou' else 'a'} {words}"


def _hook(item: HookBinding, symbol: Symbol) -> Iterator[Fault]:
    type = item.hook.type
    if type in WRAPPING:
        fault = _wrapped(type, symbol)
    elif type in ("set", "extend"):
        fault = _value(type, symbol)
    elif type == "add":
        fault = Fault(
            f"{symbol.path} exists in this release, so there is nothing to add",
            "use `type: replace` or `type: around`, or end the range before this release",
        )
    else:
        fault = _registration(symbol)
    if fault is not None:
        yield fault


def _wrapped(type: str, symbol: Symbol) -> Fault | None:
    kind = symbol.kind
    if kind == "class" and type != "replace":
        return Fault(
            f"{_a(symbol)}; upstream's HookRegistry refuses `{type}` on a class",
            f"name a method of it ({symbol.path}.__init__, for example), or use `type: replace` "
            "with a class of ours",
        )
    if kind in ("constant", "attribute"):
        return Fault(
            f"{_a(symbol)}; upstream's HookRegistry would call it like a function, and overwrite "
            "every module attribute in the process that is the same object",
            "use `type: set`",
        )
    if kind == "property":
        return Fault(
            f"{_a(symbol)}; a hook would turn it into a method",
            "use `type: set` with an `impl` that is a property object",
        )
    if kind == "triton_kernel":
        return Fault(
            f"{_a(symbol)}, called as kernel[grid](…), which a hook does not offer",
            "hook the Python function that launches it",
        )
    if kind in ("module", "external", "lazy"):
        return _indirect(symbol)
    if kind == "classmethod" and symbol.inherited_from is not None:
        return Fault(
            f"{symbol.path} is a classmethod that the class inherits; hooked there, calls through "
            "an instance raise TypeError",
            f"name the class that defines it: target: {symbol.inherited_from}.{symbol.name}",
        )
    if type == "after" and symbol.is_async:
        return Fault(
            f"{_a(symbol)}; `after` would get the coroutine, not the result",
            "use `type: around` with an async implementation",
        )
    return _decorated(symbol)


def _indirect(symbol: Symbol) -> Fault:
    if symbol.kind == "module":
        return Fault(f"{_a(symbol)}, not something that is called", "name a function in it")
    if symbol.kind == "lazy":
        return Fault(
            f"{symbol.path} is served by a module __getattr__; who asked for it before keeps it",
            f"name the definition: target: {symbol.resolved}",
        )
    return Fault(
        f"{symbol.path} comes from another distribution ({symbol.resolved}); its signature is not "
        "known here",
        "use `type: set`, or hook the upstream function that calls it",
    )


def _decorated(symbol: Symbol) -> Fault | None:
    if symbol.kind != "custom_op":
        return None
    return Fault(
        f"{_a(symbol)} ({', '.join(symbol.decorators)}); callers of torch.ops still reach "
        "upstream's own",
        "bind the functions that call it where they go through torch.ops",
        Severity.WARNING,
    )


def _value(type: str, symbol: Symbol) -> Fault | None:
    if symbol.kind != "class" and symbol.kind in (*CALLABLE, *_FUNCTIONS):
        instead = (
            "use `type: replace` (or before, after, around), which keeps its signature in view"
        )
        if type == "extend":
            instead = "use `type: after` and change what it returns"
        return Fault(f"{_a(symbol)}; `{type}` is for values", instead)
    if type == "extend" and symbol.kind in ("class", "property", "module"):
        return Fault(f"{_a(symbol)}; `extend` is for lists and sets", "use another type of hook")
    return None


_FUNCTIONS = ("custom_op", "cached_function", "triton_kernel")


def _registration(symbol: Symbol) -> Fault | None:
    if symbol.kind in (*CALLABLE, *_FUNCTIONS, "external", "lazy"):
        return None
    return Fault(
        f"{_a(symbol)}; `register` calls a registration function",
        "use `type: extend` for a list, `type: set` for a value",
    )


def _kernel(context: Context, item: KernelBinding, symbol: Symbol) -> Iterator[Fault]:
    if item.bind.style == "oot_forward":
        fault = _oot(context, item, symbol)
    else:
        fault = _patched(context, symbol)
    if fault is not None:
        yield fault


def _oot(context: Context, item: KernelBinding, symbol: Symbol) -> Fault | None:
    if symbol.kind != "class":
        return Fault(f"{_a(symbol)}; `oot_forward` is for layer classes", "use `style: function`")
    if context.reader is not None:
        registers = context.facts.resolve(f"{item.bind.target}.{OOT}")
        if isinstance(registers, Missing):
            bases = ", ".join(symbol.bases) or "no base class"
            return Fault(
                f"{symbol.path} has no {OOT} in this release ({bases})",
                f"bind its method instead: {{target: {symbol.path}.forward, style: function}}",
            )
    if isinstance(item.call, Missing):
        return Fault(
            f"{symbol.path} defines no forward whose call could be served",
            "bind the function that computes it",
        )
    return None


def _patched(context: Context, symbol: Symbol) -> Fault | None:
    kind = symbol.kind
    if kind == "class":
        tip = f"name a method: {symbol.path}.forward"
        oot = context.facts.resolve(f"{symbol.path}.{OOT}")
        return Fault(
            f"{_a(symbol)}; `function` would put a function in the place of a class",
            "use `style: oot_forward`" if isinstance(oot, Symbol) else tip,
        )
    if kind == "triton_kernel":
        return Fault(
            f"{_a(symbol)}, called as kernel[grid](…), which a Python function does not offer",
            "bind the Python function that launches it",
        )
    if kind in ("constant", "attribute", "property", "module"):
        return Fault(f"{_a(symbol)}; `function` is for functions", "use a hook of `type: set`")
    if kind in ("classmethod", "staticmethod"):
        return Fault(
            f"{_a(symbol)}; the generated function would lose that and take a wrong first argument",
            "use a hook of `type: replace`, which keeps it",
        )
    if kind == "external":
        return Fault(
            f"{symbol.path} comes from another distribution ({symbol.resolved})",
            "bind the upstream function that calls it",
        )
    return _decorated(symbol)


def _members(context: Context) -> Iterator[Finding]:
    """A member spelled as a method must be one, and one spelled as a field must not."""
    for member in context.members:
        symbol, spelling = member.symbol, member.spelling
        if spelling is None or not isinstance(symbol, Symbol):
            continue
        is_method = symbol.kind in CALLABLE and symbol.kind != "class"
        if spelling.method and not is_method:
            wanted, other = "method", "field"
        elif spelling.field and is_method:
            wanted, other = "field", "method"
        else:
            continue
        path = context.spelling_at(member.key)
        position = context.document.at(*path, wanted) if path else member.binding.position
        yield Finding.of(
            "KA104",
            f"{_a(symbol)} in sglang {context.release}, not a {wanted}",
            position,
            binding=member.binding.id,
            target=member.binding.target,
            upstream=symbol.location,
            suggestion=f"spell it `{other}: {member.name}`",
        )

"""Whether a way of binding can work on the kind of symbol that is there; four codes say it.

- KA122: a hook that wraps or replaces a call, on a value.
- KA110: a call is expected where there is none: of a module, or an operator or a registration
  bound to a value.
- KA111: a member of a class that the hook would turn into something else.
- KA104: any other kind that this way of binding does not fit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.plan import WRAPPING, Binding, HookBinding, KernelBinding
from kunlun_adapt.upstream import Missing, Symbol

CALLABLE = ("function", "async_function", "method", "classmethod", "staticmethod", "class")
FUNCTIONS = ("custom_op", "cached_function", "triton_kernel")
VALUES = ("constant", "attribute")
OOT = "register_oot_forward"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a kind does not fit, the code that says so, and what to write instead."""

    code: str
    message: str
    suggestion: str
    severity: Severity | None = None


def kind_findings(context: Context, code: str) -> Iterator[Finding]:
    """Yield what one of the four codes has to say of the hooks and the operators' places."""
    for hook in context.hooks:
        # The plan of an `add` holds what is added to; here it matters whether the member is there.
        added = hook.hook.type == "add"
        symbol = context.facts.resolve(hook.at.target) if added else hook.symbol
        if isinstance(symbol, Symbol):
            yield from _said(code, hook.binding, symbol, _hook(hook, symbol))
    for kernel in context.kernels:
        if isinstance(kernel.symbol, Symbol):
            fault = _kernel(context, kernel, kernel.symbol)
            yield from _said(code, kernel.binding, kernel.symbol, fault)


def unfit(context: Context, item: HookBinding | KernelBinding) -> bool:
    """Tell whether one of the four codes says that the symbol cannot be bound in this way."""
    if not isinstance(item.symbol, Symbol):
        return False
    if isinstance(item, HookBinding):
        fault = _hook(item, item.symbol)
    else:
        fault = _kernel(context, item, item.symbol)
    return fault is not None and fault.severity in (None, Severity.ERROR)


def _said(code: str, binding: Binding, symbol: Symbol, fault: Fault | None) -> Iterator[Finding]:
    """Make the finding of a fault, if it is of this code; a binding stands at its target."""
    if fault is not None and fault.code == code:
        yield Finding.of(
            code,
            fault.message,
            binding.position,
            binding=binding.id,
            target=binding.target,
            upstream=symbol.location,
            suggestion=fault.suggestion,
            severity=fault.severity,
        )


def named(symbol: Symbol) -> str:
    """Return 'path is a kind', for the head of a message."""
    words = symbol.kind.replace("_", " ")
    return f"{symbol.path} is {'an' if words[0] in 'aeiou' else 'a'} {words}"


def _hook(item: HookBinding, symbol: Symbol) -> Fault | None:
    type = item.hook.type
    if type in WRAPPING:
        return _wrapped(type, symbol)
    if type in ("set", "extend"):
        return _value(type, symbol, item.hook.key is not None)
    if type == "add":
        return Fault(
            "KA104",
            f"{symbol.path} exists in this release, so there is nothing to add",
            "use `type: replace` or `type: around`, or end the range before this release",
        )
    return _registration(symbol)


def _wrapped(type: str, symbol: Symbol) -> Fault | None:
    kind = symbol.kind
    if kind in VALUES:
        return _call_on_value(symbol)
    if kind == "module":
        return Fault(
            "KA110", f"{named(symbol)}, not something that is called", "name a function in it"
        )
    if kind in ("property", "classmethod", "staticmethod"):
        return _member(symbol)
    if kind == "class" and type != "replace":
        return Fault(
            "KA104",
            f"{named(symbol)}; upstream's HookRegistry refuses `{type}` on a class",
            f"name a method of it ({symbol.path}.__init__, for example), or use `type: replace` "
            "with a class of ours",
        )
    if kind == "triton_kernel":
        return Fault(
            "KA104",
            f"{named(symbol)}, called as kernel[grid](…), which a hook does not offer",
            "hook the Python function that launches it",
        )
    if kind == "lazy":
        return Fault(
            "KA104",
            f"{symbol.path} is served by a module __getattr__; who asked for it before keeps it",
            f"name the definition: target: {symbol.resolved}",
        )
    if kind == "external":
        return Fault(
            "KA104",
            f"{symbol.path} comes from another distribution ({symbol.resolved}); its signature is "
            "not known here",
            "use `type: set`, or hook the upstream function that calls it",
        )
    return _decorated(symbol)


def _call_on_value(symbol: Symbol) -> Fault:
    shown = symbol.value if symbol.value and len(symbol.value) <= 40 else None
    holds = f" ({shown})" if shown else ""
    form = shown[0] if shown else ""
    if form in ("[", "{", "(") or (shown or "").startswith(("set(", "dict(", "list(")):
        return Fault(
            "KA122",
            f"{named(symbol)}{holds}, which nobody calls",
            "use `type: extend` to add entries, `type: set` to exchange it, or `type: register` "
            "where upstream has a function that fills it",
        )
    if shown and shown.endswith(")"):
        return Fault(
            "KA122",
            f"{named(symbol)}{holds}; what is called there, and with what, its text does not say",
            "use `type: set` with an object of ours, or hook the function that it was made of",
        )
    return Fault(
        "KA122",
        f"{named(symbol)}{holds}; upstream's HookRegistry would put a function in its place, and "
        "in that of every module attribute in the process that is the same object",
        "use `type: set`",
    )


def _member(symbol: Symbol) -> Fault | None:
    """HookRegistry keeps `classmethod` and `staticmethod` only where the class itself has them."""
    if symbol.kind == "property":
        return Fault(
            "KA111",
            f"{named(symbol)}; a hook would turn it into a method, which is true whatever it "
            "would return",
            "use `type: set` with an `impl` that is a property object",
        )
    if symbol.inherited_from is None:
        return None
    if symbol.kind == "classmethod":
        outcome = "calls through an instance raise TypeError"
    else:
        outcome = "calls through an instance pass the instance as the first argument"
    return Fault(
        "KA111",
        f"{named(symbol)} that the class inherits; hooked there, {outcome}",
        f"name the class that defines it: target: {symbol.inherited_from}.{symbol.name}",
    )


def _decorated(symbol: Symbol) -> Fault | None:
    if symbol.kind != "custom_op":
        return None
    return Fault(
        "KA104",
        f"{named(symbol)} ({', '.join(symbol.decorators)}); callers of torch.ops still reach "
        "upstream's own",
        "bind the functions that call it where they go through torch.ops",
        Severity.WARNING,
    )


def _value(type: str, symbol: Symbol, keyed: bool) -> Fault | None:
    if symbol.kind != "class" and symbol.kind in (*CALLABLE, *FUNCTIONS):
        instead = (
            "use `type: replace` (or before, after, around), which keeps its signature in view"
        )
        if type == "extend":
            instead = "use `type: after` and change what it returns"
        return Fault("KA104", f"{named(symbol)}; `{type}` is for values", instead)
    if type == "extend" and symbol.kind in ("class", "property", "module"):
        return Fault(
            "KA104",
            f"{named(symbol)}; `extend` is for lists, sets and dicts",
            "use another type of hook",
        )
    shown = (symbol.value or "").lstrip()
    is_dict, is_list = _is_dict(shown), shown.startswith(("[", "(", "set(", "list("))
    if type == "extend" and is_dict and not keyed:
        return Fault(
            "KA104",
            f"{named(symbol)} and a dict, which takes an entry under a key",
            "state the `key`, and what goes under it as `value` or `impl`",
        )
    if type == "extend" and is_list and keyed:
        return Fault("KA104", f"{named(symbol)} that has no keys", "leave `key` out")
    return None


def _is_dict(shown: str) -> bool:
    """Tell whether the text of a value is that of a dict; a set has no colons."""
    try:
        node = ast.parse(shown, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    named = isinstance(node, ast.Call) and ast.unparse(node.func) in ("dict", "defaultdict")
    return named or isinstance(node, (ast.Dict, ast.DictComp))


def _registration(symbol: Symbol) -> Fault | None:
    if symbol.kind in (*CALLABLE, *FUNCTIONS, "external", "lazy"):
        return None
    return Fault(
        "KA110",
        f"{named(symbol)}; `register` calls a registration function",
        "use `type: extend` for a list, `type: set` for a value",
    )


def _kernel(context: Context, item: KernelBinding, symbol: Symbol) -> Fault | None:
    if item.bind.style == "oot_forward":
        return _oot(context, item, symbol)
    if item.bind.style == "launcher":
        return _launched(symbol)
    return _patched(context, symbol)


def _oot(context: Context, item: KernelBinding, symbol: Symbol) -> Fault | None:
    if symbol.kind != "class":
        return Fault(
            "KA104", f"{named(symbol)}; `oot_forward` is for layer classes", "use `style: function`"
        )
    if context.reader is not None:
        registers = context.facts.resolve(f"{item.bind.target}.{OOT}")
        if isinstance(registers, Missing):
            bases = ", ".join(symbol.bases) or "no base class"
            return Fault(
                "KA104",
                f"{symbol.path} has no {OOT} in this release ({bases})",
                f"bind its method instead: {{target: {symbol.path}.forward, style: function}}",
            )
    if isinstance(item.call, Missing):
        return Fault(
            "KA104",
            f"{symbol.path} defines no forward whose call could be served",
            "bind the function that computes it",
        )
    return None


def _not_called(symbol: Symbol) -> Fault | None:
    if symbol.kind not in (*VALUES, "property", "module"):
        return None
    return Fault(
        "KA110",
        f"{named(symbol)}, and an operator serves calls",
        "bind the function that computes it, or use a hook of `type: set`",
    )


def _launched(symbol: Symbol) -> Fault | None:
    if symbol.kind in ("triton_kernel", "external", "lazy"):
        return None
    called = symbol.kind in (*CALLABLE, *FUNCTIONS) and symbol.kind != "class"
    return _not_called(symbol) or Fault(
        "KA104",
        f"{named(symbol)}; `launcher` is for Triton kernels, called as kernel[grid](…)",
        "use `style: function`" if called else "name the Triton kernel",
    )


def _patched(context: Context, symbol: Symbol) -> Fault | None:
    kind = symbol.kind
    if kind == "class":
        tip = f"name a method: {symbol.path}.forward"
        oot = context.facts.resolve(f"{symbol.path}.{OOT}")
        return Fault(
            "KA104",
            f"{named(symbol)}; `function` would put a function in the place of a class",
            "use `style: oot_forward`" if isinstance(oot, Symbol) else tip,
        )
    if kind == "triton_kernel":
        return Fault(
            "KA104",
            f"{named(symbol)}, called as kernel[grid](…), which a Python function does not offer",
            "bind the Python function that launches it, or use `style: launcher`",
        )
    if kind in ("classmethod", "staticmethod"):
        return Fault(
            "KA111",
            f"{named(symbol)}; the generated function would lose that and take a wrong first "
            "argument",
            "use a hook of `type: replace`, which keeps it",
        )
    if kind == "external":
        return Fault(
            "KA104",
            f"{symbol.path} comes from another distribution ({symbol.resolved})",
            "bind the upstream function that calls it",
        )
    return _not_called(symbol) or _decorated(symbol)

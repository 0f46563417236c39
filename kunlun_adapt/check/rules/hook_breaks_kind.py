"""KA111: a hook type that breaks this kind of member, or an async one where none can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_uses import find
from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.check.kinds import kind_findings, named
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import WRAPPING
from kunlun_adapt.upstream import Symbol

CALLED = ("function", "method", "classmethod", "staticmethod", "cached_function")


def rule(context: Context) -> Iterable[Finding]:
    """Report members of classes that a hook would turn into something else, and lost coroutines."""
    yield from kind_findings(context, "KA111")
    yield from _coroutines(context)


def _coroutines(context: Context) -> Iterator[Finding]:
    """An async implementation needs an async original, and is of no use as `before`."""
    for item in context.hooks:
        hook, symbol = item.hook, item.symbol
        wraps = hook.type in WRAPPING and hook.impl is not None
        if not wraps or not isinstance(symbol, Symbol):
            continue
        found = find(context, hook.impl or "")
        if not isinstance(found, Implementation) or not found.is_async:
            continue
        generates = context.reader is not None and context.reader.is_async_generator(symbol.path)
        if hook.type == "before":
            fault = "`before` runs an async implementation without awaiting it"
            mend = "use `type: around`, and await `call.original()` in it"
        elif symbol.kind in CALLED and not symbol.is_async:
            fault = f"{named(symbol)} that is not async: its callers would get a coroutine"
            mend = "make it a plain `def`"
        elif symbol.kind in (*CALLED, "async_function") and found.iterates is not generates:
            if generates:
                fault = f"{named(symbol)} that yields: who iterates would get a coroutine"
                mend = "yield from it: `async for item in call.original(): yield item`"
            else:
                fault = f"{named(symbol)} that returns: who awaits would get a generator"
                mend = "return the result instead of yielding"
        else:
            continue
        yield Finding.of(
            "KA111",
            f"{hook.impl} ({found.location}) is async; {fault}",
            item.document.at(*item.path[:-2], "impl"),
            binding=item.binding.id,
            target=item.at.target,
            upstream=symbol.location,
            suggestion=mend,
        )

"""In which respects a symbol of one release differs from what stands for it in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kunlun_adapt.evolve.diff.naming import listed
from kunlun_adapt.evolve.diff.records import Fact
from kunlun_adapt.evolve.diff.values import value_change
from kunlun_adapt.upstream import CallForm, Reference, Signature, Symbol

_TESTS = ("sglang.test.",)


def symbol_facts(old: Symbol, new: Symbol) -> Iterator[Fact]:
    """Yield how the definition itself changed: not where it is, nor who uses it."""
    if old.kind != new.kind:
        yield Fact("kind", f"{words(new.kind)}, was {words(old.kind)}")
    if old.signature != new.signature:
        yield Fact("signature", signature_change(old.signature, new.signature))
    if old.is_async != new.is_async:
        yield Fact("async", "async now" if new.is_async else "no longer async")
    if old.decorators != new.decorators:
        yield Fact("decorators", _change(_decorated(old.decorators), _decorated(new.decorators)))
    if old.guard != new.guard:
        yield Fact("guard", _change(_guard(old.guard), _guard(new.guard)))
    if (kinds := _variants(old)) != (others := _variants(new)):
        yield Fact("variants", _change(kinds or "one definition", others or "one definition"))
    if old.bases != new.bases:
        yield Fact("bases", _change(", ".join(old.bases) or "none", ", ".join(new.bases) or "none"))
    if (old.inherited_from is None) != (new.inherited_from is None):
        text = f"inherited from {new.inherited_from} now" if new.inherited_from else "its own now"
        yield Fact("inherited", text)
    if old.value != new.value:
        yield Fact("value", value_change(old.value, new.value))
    elif old.fingerprint != new.fingerprint:
        yield Fact("body", "the body changed")


def signature_change(old: Signature | None, new: Signature | None) -> str:
    """Say which parameters came, went, moved or got another default."""
    if old is None or new is None:
        return _change(old.text() if old else "none", new.text() if new else "none")
    before = {p.name: p for p in old.parameters}
    after = {p.name: p for p in new.parameters}
    parts = []
    added = [p for p in new.parameters if p.name not in before]
    gone = [p.name for p in old.parameters if p.name not in after]
    required = [p.name for p in added if not p.has_default and not p.kind.startswith("var_")]
    optional = [p.name for p in added if p.name not in required]
    parts += [f"new required {listed(required)}"] if required else []
    parts += [f"new {listed(optional)}"] if optional else []
    parts += [f"without {listed(gone)}"] if gone else []
    common = [p.name for p in old.parameters if p.name in after]
    if common != [p.name for p in new.parameters if p.name in before]:
        parts.append("another order")
    for name in common:
        one, other = before[name], after[name]
        if one.kind != other.kind:
            parts.append(f"{name} {words(other.kind)}, was {words(one.kind)}")
        if one.default != other.default:
            default = other.default if other.has_default else "required"
            was = one.default if one.has_default else "required"
            parts.append(f"{name}={default}, was {was}")
    inserted = _inserted(old, new)
    parts += [f"{listed(inserted)} before what was there"] if inserted else []
    return f"{'; '.join(parts)}: {new.text()}, was {old.text()}"


def _inserted(old: Signature, new: Signature) -> list[str]:
    """The new positional parameters that come before old ones: what shifts a call's arguments."""
    before = set(old.names)
    places = [i for i, p in enumerate(new.parameters) if p.name in before and _by_place(p.kind)]
    last = places[-1] if places else -1
    return [
        p.name
        for i, p in enumerate(new.parameters)
        if i < last and p.name not in before and _by_place(p.kind)
    ]


def _by_place(kind: str) -> bool:
    return kind in ("positional", "positional_only")


def caller_facts(
    old: Sequence[Reference], new: Sequence[Reference], *, all_known: bool
) -> Iterator[Fact]:
    """Yield who calls it in another form, who does no longer, and who does now.

    A caller is named by the function around the call, since modules move. Who calls a method
    cannot always be told, so that of those only the calls are compared which both releases show:
    all are known (`all_known`) of what is called by its own name.
    """
    if all_known and old and not new:
        yield Fact("calls", f"nothing calls it any more, {len(old)} call(s) did")
        return
    before, after = _forms(old), _forms(new)
    for scope in sorted(before.keys() & after.keys()):
        gone, come = before[scope] - after[scope], after[scope] - before[scope]
        if gone and come:
            yield Fact("calls", f"{scope} {_call_change([*gone], [*come])}")
    here, lost = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    if all_known and here:
        yield Fact("callers", f"now also called by {listed(here)}")
    if all_known and lost:
        yield Fact("callers", f"no longer called by {listed(lost)}")


def _forms(calls: Sequence[Reference]) -> dict[str, Counter[CallForm]]:
    found: dict[str, Counter[CallForm]] = {}
    for item in calls:
        if not item.module.startswith(_TESTS):
            scope = item.scope or item.module
            found.setdefault(scope, Counter())[item.call or CallForm()] += 1
    return found


def _call_change(old: list[CallForm], new: list[CallForm]) -> str:
    """Say how a call changed: what it passes too, and what it does not pass any more."""
    if len(old) > 1 or len(new) > 1:
        forms = [" or ".join(sorted(map(form, calls))) for calls in (new, old)]
        return f"calls it as {forms[0]}, was {forms[1]}"
    one, other = old[0], new[0]
    come = [f"{name}=" for name in other.keywords if name not in one.keywords]
    gone = [f"{name}=" for name in one.keywords if name not in other.keywords]
    parts = [f"passes {', '.join(come)} too"] if come else []
    parts += [f"no longer passes {', '.join(gone)}"] if gone else []
    if one.positional != other.positional:
        parts.append(f"passes {other.positional} by place, was {one.positional}")
    if (one.star, one.double_star, one.grid) != (other.star, other.double_star, other.grid):
        parts.append(f"calls it as {form(other)}, was {form(one)}")
    return "; ".join(parts) or f"calls it as {form(other)}, was {form(one)}"


def form(call: CallForm) -> str:
    """Return how a call passes its arguments, for example `(2 by place, bias=)`."""
    parts = [f"{call.positional} by place"] if call.positional else []
    parts += [f"{name}=" for name in call.keywords]
    parts += [text for text, given in (("*", call.star), ("**", call.double_star)) if given]
    return f"{'[grid]' if call.grid else ''}({', '.join(parts)})"


def words(kind: str) -> str:
    return kind.replace("_", " ")


def _change(old: str, new: str) -> str:
    return f"{new}, was {old}"


def _decorated(decorators: tuple[str, ...]) -> str:
    return ", ".join(f"@{text}" for text in decorators) or "none"


def _guard(guard: str | None) -> str:
    return f"only if {guard}" if guard else "always"


def _variants(symbol: Symbol) -> str:
    shapes = [
        f"{_guard(v.guard)}: {v.signature.text() if v.signature else words(v.kind)}"
        for v in symbol.variants
    ]
    return "; ".join(sorted(shapes))

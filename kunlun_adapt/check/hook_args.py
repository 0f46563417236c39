"""The names that hooks' implementations read from their calls and that `args` does not map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check.call_reads import CallReads, call_reads
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_uses import find
from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.check.keys import closest_slip
from kunlun_adapt.check.wording import mapping
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Hook, HookAt
from kunlun_adapt.plan import WRAPPING
from kunlun_adapt.upstream import Symbol


@dataclass(frozen=True, slots=True)
class _Unmapped:
    """A name that is read and not mapped, the line that reads it, and the key that may mean it."""

    name: str
    line: int
    slip: str | None


def unmapped_reads(context: Context) -> Iterator[Finding]:
    """Report each, in every range of every hook: the same function reads the call in all."""
    for entry in context.catalog.hooks:
        hook = entry.hook
        if hook.impl is None or hook.type not in WRAPPING or hook.takes != "call":
            continue
        found = find(context, hook.impl)
        if not isinstance(found, Implementation) or found.source is None or found.signature is None:
            continue
        reads = call_reads(*found.source)
        file = found.location.rpartition(":")[0]
        for j, at in enumerate(hook.at):
            where = (*entry.path, "at", j)
            for item in _unmapped(reads, hook, at):
                slip = item.slip
                yield Finding.of(
                    "KA005",
                    f"{hook.impl.rpartition(':')[2]} reads {item.name!r} from its call "
                    f"({file}:{item.line}), and `args` does not map it",
                    entry.document.key_at(*where, "args", slip)
                    if slip is not None
                    else entry.document.at(*where, "args"),
                    binding=hook.id,
                    target=at.target,
                    suggestion=f"did you mean {item.name}?"
                    if slip is not None
                    else _mapped(context, at, item.name),
                )


def _unmapped(reads: CallReads, hook: Hook, at: HookAt) -> Iterator[_Unmapped]:
    unread = set(at.args) - reads.names()  # a key that is read is no slip
    elsewhere = {name for other in hook.at if other is not at for name in other.args}
    for name, line in (reads.optional | reads.branched | reads.needed).items():
        if name in at.args:
            continue
        # What may read anything may read the key too, as it does without a name that is optional.
        slip = None if reads.whole and name in reads.optional else _slip(name, unread)
        unread.discard(slip or "")
        if name in reads.needed or slip or (name in reads.branched and name not in elsewhere):
            yield _Unmapped(name, line, slip)


def _slip(name: str, keys: set[str]) -> str | None:
    return next((key for key in sorted(keys) if closest_slip(key, [name])), None)


def _mapped(context: Context, at: HookAt, name: str) -> str:
    """Return the `args` that would map the name, to upstream's parameter of that name if there."""
    symbol = context.facts.resolve(at.target)
    signature = symbol.signature if isinstance(symbol, Symbol) else None
    there = name in at.ignores or (signature is not None and name in signature.names)
    tip = f"`args: {mapping({**at.args, name: name if there else '…'})}`"
    return f"{tip}, and take it out of `ignores`" if name in at.ignores else tip

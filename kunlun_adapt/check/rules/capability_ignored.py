"""KA208: a capability that the map turns on and that nothing in the release asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import CAPABILITIES, Member
from kunlun_adapt.upstream import Resolver, Symbol

SRT = "sglang/srt/"
PLATFORMS = "sglang/srt/platforms/"
"""Where capabilities are declared: who declares one does not ask for it."""

LIKELY = ("utils/", "model_executor/", "arg_groups/", "mem_cache/allocator/", "distributed/")
"""The folders that ask most: a search that finds something ends there."""


def rule(context: Context) -> Iterable[Finding]:
    """Report flags that are on in some profile and whose name no code of upstream's mentions.

    A flag that is off is what upstream does without it, so nothing is lost where nobody asks.
    """
    reader = context.reader
    if reader is None or context.platform_class is None:
        return
    for name, member in _turned_on(context).items():
        if isinstance(member.symbol, Symbol) and not _asked_for(reader, name):
            yield Finding.of(
                "KA208",
                f"{member.key} is on, and nothing in sglang {context.release} asks for "
                f"{'it' if name == member.key else name}",
                context.document.at(*member_path(member)),
                binding=member.binding.id,
                target=member.symbol.path,
                upstream=member.symbol.location,
                suggestion=f"turn it off, or end its range in interface.{member.key} before "
                f"{context.floor} and add left_at_default: {{member: {member.key}, "
                f'sglang: ">={context.floor}", why: …}}',
            )


def _turned_on(context: Context) -> dict[str, Member]:
    return {
        m.name: m
        for m in context.members
        if m.key.startswith(f"{CAPABILITIES}.") and m.content is True and m.name
    }


def _asked_for(reader: Resolver, name: str) -> bool:
    """Tell whether a file of upstream's mentions the capability where it is not declared."""
    leaf = name.rpartition(".")[2].encode()
    mention = re.compile(rb"[.\"']" + re.escape(leaf) + rb"\b")
    field = name.startswith(f"{CAPABILITIES}.")
    for file in _files(reader):
        source = reader.release.read(file)
        if source is None or leaf not in source or (field and CAPABILITIES.encode() not in source):
            continue
        if mention.search(source):
            return True
    return False


def _files(reader: Resolver) -> Iterator[str]:
    files = [
        f
        for f in reader.release.files()
        if f.startswith(SRT) and f.endswith(".py") and not f.startswith(PLATFORMS)
    ]
    likely = tuple(f"{SRT}{folder}" for folder in LIKELY)
    yield from (f for f in files if f.startswith(likely))
    yield from (f for f in files if not f.startswith(likely))

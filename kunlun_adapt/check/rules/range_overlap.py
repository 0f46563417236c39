"""KA007: two ranges of one binding hold for one release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.ranges import Ranges, ranged
from kunlun_adapt.check.releases import known_releases, spans
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import in_range


def rule(context: Context) -> Iterable[Finding]:
    """Report ranges that overlap: only the first would ever be taken."""
    locked = context.lock.releases if context.lock else ()
    releases = known_releases(context.map.sglang, (context.release, *locked))
    for group in ranged(context):
        yield from _overlaps(group, releases)


def _overlaps(group: Ranges, releases: Sequence[str]) -> Iterator[Finding]:
    taken: list[tuple[int, list[str]]] = []
    for index, (specifier, position) in enumerate(group.ranges):
        here = [r for r in releases if in_range(specifier, r)]
        for other, theirs in taken:
            both = [r for r in here if r in set(theirs)]
            if both:
                earlier = group.ranges[other][0]
                tip = _mend(earlier, theirs, here, both)
                if group.operator and group.targets[index] != group.targets[other]:
                    # Two places of upstream's that end in one name are taken for one that moved.
                    own = "if these are two places, give one of them an `id` of its own"
                    tip = f"{own}; if it moved, {tip}"
                yield Finding.of(
                    "KA007",
                    f"{specifier!r} and {earlier!r} both hold for sglang {spans(both)}",
                    position,
                    binding=group.binding,
                    suggestion=tip,
                )
                break
        taken.append((index, here))


def _mend(earlier: str, theirs: list[str], here: list[str], both: list[str]) -> str:
    if both == theirs[-len(both) :] and both == here[: len(both)] and len(both) < len(theirs):
        return f'end the earlier range there: `sglang: "{_ended(earlier, both[0])}"`'
    if both == here[-len(both) :] and both == theirs[: len(both)] and len(both) < len(here):
        return f"end this range there: add `<{both[0]}` to it"
    return "let one of the two hold for each release"


def _ended(specifier: str, release: str) -> str:
    kept = [part.strip() for part in specifier.split(",") if not part.strip().startswith("<")]
    kept = [part for part in kept if part != ">=0"]
    return ",".join([*kept, f"<{release}"])

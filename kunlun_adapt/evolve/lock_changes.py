"""What is different between two locks, in words: what `lock --check` says, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kunlun_adapt.check.drift import changes
from kunlun_adapt.check.neighbours import neighbour_changes
from kunlun_adapt.upstream import Lock, LockEntry


def lock_changes(held: Lock, fresh: Lock) -> list[str]:
    """Return what `fresh` says otherwise than `held`, release by release."""
    return [f"{release}: {text}" for release, text in _changes(held, fresh)]


def _changes(held: Lock, fresh: Lock) -> Iterator[tuple[str, str]]:
    for release in held.releases:
        if release not in fresh.hashes:
            yield release, "is no longer locked"
    for release in fresh.releases:
        if release not in held.hashes:
            yield release, f"is not locked, {len(fresh.targets(release))} targets"
            continue
        for text in _targets(held, fresh, release):
            yield release, text
        for text in _uses(held.usage.get(release, {}), fresh.usage.get(release, {})):
            yield release, text
        before, after = held.files(release), fresh.files(release)
        for file in sorted(before.keys() | after.keys()):
            if before.get(file) != after.get(file):
                what = "is not locked" if file not in before else "is locked in vain"
                yield release, f"{file} {'changed' if file in before and file in after else what}"


def _targets(held: Lock, fresh: Lock, release: str) -> Iterator[str]:
    before, after = set(held.targets(release)), set(fresh.targets(release))
    for target in sorted(before | after):
        was, now = held.entry(release, target), fresh.entry(release, target)
        if was is None:
            yield f"{target} is not locked"
        elif now is None:
            yield f"{target} is locked, and nothing asks for it"
        elif was != now:
            yield f"{target}: {'; '.join(changes(was.symbol, now.symbol)) or _detail(was, now)}"


def _detail(was: LockEntry, now: LockEntry) -> str:
    if was.members != now.members:
        return "it has other members"
    if was.symbol.location != now.symbol.location:
        return f"at {now.symbol.location}, was {was.symbol.location}"
    return "its decorators, guard, variants or bases differ"


def _uses(held: Mapping[str, Any], fresh: Mapping[str, Any]) -> Iterator[str]:
    before, after = held.get("bindings", {}), fresh.get("bindings", {})
    for id in sorted(before.keys() | after.keys()):
        was, now = before.get(id), after.get(id)
        if was is None:
            yield f"{id}: its uses are not locked"
        elif now is None:
            yield f"{id}: its uses are locked, and it does nothing here"
        elif was != now:
            yield f"{id}: {'; '.join(_row(was, now))}"
    if before == after and held.get("digest") != fresh.get("digest"):
        yield "what all bindings rest on changed: the files, the map's releases, or the checks"


def _row(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    said = neighbour_changes(was, now)
    if was.get("stated") != now.get("stated"):
        said.append("the documents say something else of it")
    if was.get("findings") != now.get("findings"):
        said.append("the checks find something else of it")
    return said or ["its neighbours are noted otherwise"]

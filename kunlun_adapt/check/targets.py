"""Every place where a document names an upstream symbol, and what became of the missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from kunlun_adapt.check.alike import by_parameters, class_of
from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.taken_for import CALLED, is_of_its_kind, is_telling, sorts_of_hook
from kunlun_adapt.diagnostics import EntryChange, Mend, Position
from kunlun_adapt.diagnostics.mend import Kind
from kunlun_adapt.documents import Bind, Document, HookAt, Spelling
from kunlun_adapt.documents.platform_map import Readback
from kunlun_adapt.plan import PLATFORM, HookBinding, KernelBinding, Member
from kunlun_adapt.upstream import Location, Missing, Suggestion, Symbol

UPSTREAM = "sglang"
SURE = 0.7
MARGIN = 0.04
SAME_BODY = 0.95
SERVER = ("srt", "kernels", "jit_kernel")
"""The parts of upstream between which code of the server moves."""

_LOST: WeakKeyDictionary[Context, tuple[Lost, ...]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Use:
    """One named upstream symbol; `key` is the YAML key that names it (`target`, `repair`, …).

    `entry` is the YAML entry in which it stands, as the document states it; `tail` is what the
    entry names below `path`, and upstream need not have.
    """

    path: str
    symbol: Symbol | Missing
    position: Position
    binding: str | None
    key: str
    entry: Mapping[str, Any] = field(default_factory=dict)
    tail: str = ""
    document: Document[Any] | None = None
    place: tuple[str | int, ...] = ()
    """Where the entry stands in the document."""
    sorts: tuple[str, ...] = ()
    """What the symbol can be for this way of binding; nothing where it can be anything."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A hook's or an operator's place whose target the release has."""

    binding: HookBinding | KernelBinding
    at: HookAt | Bind
    symbol: Symbol
    position: Position

    def naming(self, path: str, text: str, kind: Kind) -> Mend:
        """Return the edit that names another target in its place."""
        item = self.binding
        raw = item.document.raw if isinstance(item, HookBinding) else item.recipe.raw
        change = EntryChange(raw.file, raw.index, item.path, {"target": path})
        return Mend(text, kind, (change,))


def bound(context: Context) -> Iterator[Bound]:
    """Yield every place of a hook or an operator whose target resolves; not what is added to."""
    for hook in context.hooks:
        if isinstance(hook.symbol, Symbol) and hook.hook.type != "add":
            place = hook.document.at(*hook.path, "target")
            yield Bound(hook, hook.at, hook.symbol, place)
    for kernel in context.kernels:
        if isinstance(kernel.symbol, Symbol):
            place = kernel.recipe.at(*kernel.path, "target")
            yield Bound(kernel, kernel.bind, kernel.symbol, place)


def uses(context: Context) -> Iterator[Use]:
    """Yield every upstream path that a bound binding or the interface names."""
    yield from _hooks(context)
    for kernel in context.kernels:
        if kernel.bind.provided_by or kernel.bind.package:
            continue
        place = kernel.recipe.at(*kernel.path, "target")
        entry = _stated(kernel.bind)
        target, id = kernel.bind.target, kernel.binding.id
        stated = (kernel.recipe, kernel.path)
        sorts = ("class",) if kernel.bind.style == "oot_forward" else (CALLED,)
        yield Use(target, kernel.symbol, place, id, "target", entry, "", *stated, sorts)
    for member in context.members:
        path = implementation_target(member)
        if path is not None:
            position = context.document.at(*member_path(member))
            yield Use(path, context.facts.resolve(path), position, member.binding.id, "class")
    yield from _names(context)


def implementation_target(member: Member) -> str | None:
    """Return the upstream path of a member whose implementation is an upstream object."""
    if member.value not in ("class", "function"):
        return None
    text = str(member.content)
    return text.replace(":", ".") if text.split(".")[0] == UPSTREAM else None


def _hooks(context: Context) -> Iterator[Use]:
    for hook in context.hooks:
        if hook.at.provided_by or hook.at.package:
            continue
        path, symbol, tail = hook.at.target, hook.symbol, ""
        if hook.hook.type == "add":
            # The member itself must not be there; what has to exist is what it is added to.
            path, _, name = path.rpartition(".")
            tail = f".{name}"
        place = hook.document.at(*hook.path, "target")
        stated, id = (hook.document, hook.path), hook.binding.id
        sorts = sorts_of_hook(hook.hook.type)
        yield Use(path, symbol, place, id, "target", _stated(hook.at), tail, *stated, sorts)
        if hook.at.readback is not None and hook.readback is not None:
            place = hook.document.at(*hook.path, "readback", "target")
            shown, entry = hook.at.readback.target, _stated(hook.at.readback)
            yield Use(shown, hook.readback, place, id, "readback", entry, "", *stated)
        for i, path in enumerate(hook.hook.repair):
            place = hook.document.at(*hook.path[:2], "repair", i)
            yield Use(path, context.facts.resolve(path), place, hook.binding.id, "repair")


def _stated(entry: HookAt | Bind | Readback | Spelling) -> dict[str, Any]:
    """Return what a document states of an entry, without what is left at its default."""
    return entry.model_dump(exclude_unset=True)


def _names(context: Context) -> Iterator[Use]:
    seen: set[str] = set()
    for plan in context.plans:
        for key, symbol in plan.names.items():
            path = context.spelling_at(key)
            if key in seen or path is None:
                continue
            seen.add(key)
            if context.platform_packages_missing and key.split(".")[0] != "process":
                continue
            call = symbol.path
            place = context.document.at(*path, "call")
            binding = f"factory/{key}" if key == PLATFORM else None
            _, name, index = path
            entry = _stated(context.map.interface[str(name)][int(index)])
            yield Use(call, symbol, place, binding, "call", entry, "", context.document, path)


@dataclass(frozen=True, slots=True)
class Lost:
    """A use whose symbol is missing: the code that says how, and where it may be now."""

    use: Use
    missing: Missing
    code: str
    moved_to: Suggestion | None


def lost(context: Context) -> tuple[Lost, ...]:
    """Return every use whose symbol the release does not have, with what became of it."""
    if context not in _LOST:
        # Looking for where a symbol went reads the whole release, and three rules ask.
        _LOST[context] = tuple(_lost(context))
    return _LOST[context]


def _lost(context: Context) -> Iterator[Lost]:
    taken = {u.symbol.resolved for u in uses(context) if isinstance(u.symbol, Symbol)}
    for use in uses(context):
        if isinstance(use.symbol, Missing):
            missing = by_parameters(context, suggested(context, use.symbol), use.entry, taken)
            moved = _moved(context, use, missing)
            # What another binding is about is not where this one's symbol went.
            if moved is not None and moved.path in taken and moved.score < SAME_BODY:
                moved = None
            if missing.reason == "dangling_reexport":
                code = "KA103"
            else:
                code = "KA102" if moved else "KA101"
            yield Lost(use, missing, code, moved)


def suggested(context: Context, missing: Missing) -> Missing:
    """Return the miss with the places where the symbol may be now; reads the whole release."""
    if context.reader is None or missing.suggestions:
        return missing
    return context.reader.suggest(missing, _fingerprint(context, missing.path))


def nearest(context: Context, missing: Missing) -> Location | None:
    """Return the upstream line to look at: what is near, or how far the path does resolve."""
    if missing.at is not None:
        return missing.at
    if missing.suggestions:
        return missing.suggestions[0].location
    path = missing.deepest
    while path:
        deepest = context.facts.resolve(path)
        # A folder without `__init__.py` has no line to look at; what it lies in may have one.
        if isinstance(deepest, Symbol) and deepest.location.file.endswith(".py"):
            return deepest.location
        path = path.rpartition(".")[0]
    return None


def _fingerprint(context: Context, path: str) -> str | None:
    """The body that the lock last saw behind the path, whatever the release."""
    if context.lock is None:
        return None
    for release in reversed(context.lock.releases):
        symbol = context.lock.symbol(release, path)
        if symbol is not None and symbol.fingerprint:
            return symbol.fingerprint
    return None


def _moved(context: Context, use: Use, missing: Missing) -> Suggestion | None:
    """Return where the symbol is now, if one place carries its name and stands out.

    What is of another kind is not it. A method of another class, and what another part of upstream
    (`multimodal_gen`) calls alike, is the same thing only where it does the same; and of a few
    lines, or of two places that both do the same, that is said by chance.
    """
    leaf = missing.path.rpartition(".")[2]
    same = [
        s
        for s in missing.suggestions
        if s.path.rpartition(".")[2] == leaf
        and is_of_its_kind(context, missing.path, s.path, use.sorts)
    ]
    if not same or same[0].score < SURE:
        return None
    copied = len(same) > 1 and same[1].score >= SAME_BODY
    if same[0].score >= SAME_BODY and not copied and is_telling(context, same[0].path):
        return same[0]
    if len(same) > 1 and same[0].score - same[1].score < MARGIN:
        return None
    alike = class_of(same[0].path) == class_of(missing.path) and (
        _part_of(same[0].path) == _part_of(missing.path)
    )
    return same[0] if alike else None


def _part_of(path: str) -> str:
    """Return the part of upstream that a path lies in; the server and its kernels are one."""
    part = path.split(".")[1]
    return "srt" if part in SERVER else part

"""KA103: upstream imports the name from where it is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.moves import where_now
from kunlun_adapt.check.targets import Lost, bound, lost
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Resolver, Suggestion, Symbol
from kunlun_adapt.upstream.importable import Importable, modules_of


def rule(context: Context) -> Iterable[Finding]:
    """Report bound names that upstream re-exports from a place that does not have them.

    A module in which such an import stands cannot be imported, so nothing in it can be bound.
    """
    importable = None if context.reader is None else Importable(context.reader)
    for found in lost(context):
        if found.code == "KA103":
            use, missing = found.use, found.missing
            if context.reader is not None and importable is not None:
                found = _by_definition(context.reader, importable, found)
            yield Finding.of(
                "KA103",
                f"{use.path} is re-exported in sglang {context.release}, but does not exist: "
                f"{missing.detail}",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=missing.at,
                suggestion=where_now(context, found),
            )
    if importable is not None:
        yield from _not_importable(context, importable)


def _by_definition(reader: Resolver, importable: Importable, found: Lost) -> Lost:
    """Name what is near by its definition where its own path leads into a broken module."""
    places: dict[str, Suggestion] = {}
    for place in found.missing.suggestions:
        symbol = reader.resolve(place.path)
        if isinstance(symbol, Symbol) and any(
            importable.broken(module) for module in modules_of(reader, symbol)
        ):
            if importable.broken(symbol.module):
                continue
            place = replace(place, path=symbol.resolved, location=symbol.location)
        places.setdefault(place.path, place)
    missing = replace(found.missing, suggestions=tuple(places.values()))
    return replace(found, missing=missing)


def _not_importable(context: Context, importable: Importable) -> Iterator[Finding]:
    if context.reader is None:
        return
    for item in bound(context):
        if item.symbol.kind == "external":
            continue
        for module in modules_of(context.reader, item.symbol):
            broken = importable.broken(module)
            if broken is None:
                continue
            yield Finding.of(
                "KA103",
                f"{module}, in which {item.at.target} is looked up, cannot be imported in sglang "
                f"{context.release}: {broken.why}",
                item.position,
                binding=item.binding.binding.id,
                target=item.at.target,
                upstream=broken.location,
                suggestion=item.naming(
                    item.symbol.resolved,
                    f"name the definition: target: {item.symbol.resolved}",
                    "defined",
                )
                if item.symbol.module != module
                else "bind what the rest of the release uses instead, or end the range before "
                f"{context.release}",
            )
            break

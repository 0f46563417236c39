"""Whether a module of the release can be imported at all, as far as its own imports tell.

Real releases hold modules that nobody can import: a shim that hands on a name which its source has
lost. Whatever else stands in such a module cannot be bound there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kunlun_adapt.upstream.found import Found
from kunlun_adapt.upstream.lookup import ROOT
from kunlun_adapt.upstream.release import module_of
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location, Symbol

KEPT_TEXTS = 128


@dataclass(frozen=True, slots=True)
class Broken:
    """An import that raises whenever its module is imported."""

    module: str
    location: Location
    why: str


def modules_of(reader: Resolver, symbol: Symbol) -> tuple[str, ...]:
    """Return the modules that are imported to reach a symbol by its path."""
    named = symbol.path
    while named and not reader.lookup.is_module(named):
        named = named.rpartition(".")[0]
    passed = (module_of(location.file) for location in symbol.via)
    return tuple(dict.fromkeys(m for m in (named, *passed, symbol.module) if m))


class Importable:
    """Answers which modules of a release cannot be imported; each import is looked at once."""

    def __init__(self, reader: Resolver) -> None:
        self._reader = reader
        self._modules: dict[str, Broken | None] = {}
        self._imports: dict[tuple[str, str | None], str | None] = {}
        # Many modules import from one: its text is unpacked once for them.
        self._text = lru_cache(maxsize=KEPT_TEXTS)(reader.release.read)

    def broken(self, module: str) -> Broken | None:
        """Return the first import of a module that is sure to raise.

        Only what runs in any case counts: nothing under a guard, nothing that `try` may catch.
        """
        if module not in self._modules:
            row = self._reader.recall("broken", module, lambda: next(self._broken(module), None))
            self._modules[module] = row and Broken(module, Location(row[0], row[1]), row[2])
        return self._modules[module]

    def _broken(self, module: str) -> Iterator[tuple[str, int, str]]:
        table = self._reader.table(module)
        if table is None:
            return
        runs: list[tuple[str, str | None, int]] = [
            (item.source, None, item.line) for item in table.scope.wildcards if item.guard is None
        ]
        for bound in table.scope.bindings.values():
            for item in bound:
                if item.kind == "import" and item.guard is None and not item.type_checking:
                    runs.append((item.source, item.attribute, item.line))
        for source, name, line in runs:
            if source.partition(".")[0] != ROOT:
                continue
            if (source, name) not in self._imports:
                self._imports[source, name] = self._why(source, name)
            why = self._imports[source, name]
            if why is not None:
                yield table.file, line, why

    def _why(self, source: str, name: str | None) -> str | None:
        """Why an import raises, or None where it does not or nobody can tell."""
        reader = self._reader
        if not reader.lookup.is_module(source):
            return f"{source} does not exist"
        file = reader.release.module_file(source)
        if name is None or file is None:
            return None
        # Looking for the word is far faster than reading the module, and hits nearly always.
        if _has_word(self._text(file) or b"", name.encode()):
            return None
        table = reader.table(source)
        found = reader.lookup.name(source, name)
        if table is None or table.lazy is not None or isinstance(found, Found):
            return None
        return None if found.reason == "unparsable" else f"{source} has no {name}"


def _has_word(text: bytes, name: bytes) -> bool:
    """Tell whether a name stands in a text, not only as a part of longer ones."""
    start = text.find(name)
    while start >= 0:
        around = text[max(start - 1, 0) : start], text[start + len(name) : start + len(name) + 1]
        if not any(byte.isalnum() or byte == b"_" for byte in around):
            return True
        start = text.find(name, start + 1)
    return False

"""What following a symbol from one release to another asks of a release, kept for the next time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kunlun_adapt.upstream.found import Found, class_body
from kunlun_adapt.upstream.index.records import CallForm, Reference
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location, Missing, Suggestion, Symbol

_CALLS = ("call", "launch")


class FollowingResolver(Resolver):
    """A resolver that keeps where a missing symbol may be: looking for it reads the release."""

    def suggest(self, missing: Missing, fingerprint: str | None = None) -> Missing:
        """The same miss with the places where the symbol may be now, best first."""

        def make() -> list[Any]:
            found = super(FollowingResolver, self).suggest(missing, fingerprint).suggestions
            return [[s.path, s.location.file, s.location.line, s.score, s.why] for s in found]

        rows = self.recall("suggestions", f"{missing.path} {fingerprint or ''}", make)
        near = (Suggestion(path, Location(file, line), s, why) for path, file, line, s, why in rows)
        return replace(missing, suggestions=tuple(near))

    def text(self, path: str) -> str | None:
        """The source lines of what a path leads to, decorators included; None without any."""
        text: str | None = self.recall("text", path, lambda: self._source(path))
        return text

    def _source(self, path: str) -> str | None:
        found = self.find(path)
        if not isinstance(found, Found):
            return None
        found = class_body(found) or found
        if found.table is None or found.binding is None or found.binding.kind == "served":
            return None
        return found.table.text(found.binding)

    def callers(self, path: str) -> tuple[Reference, ...]:
        """The calls of a function or a method, each with the form in which it is called."""
        rows = self.recall("callers", path, lambda: [_row(item) for item in self._calls(path)])
        return tuple(_reference(row) for row in rows)

    def _calls(self, path: str) -> tuple[Reference, ...]:
        symbol = self.resolve(path)
        if not isinstance(symbol, Symbol):
            return ()
        owner = path.rpartition(".")[0]
        if "." in symbol.qualname:
            found = self.index.method_calls(owner, symbol.name)
        else:
            found = self.index.references(path)
        return tuple(item for item in found if item.kind in _CALLS)


def _row(item: Reference) -> list[Any]:
    form = item.call or CallForm()
    call = [form.positional, form.keywords, form.star, form.double_star, form.grid]
    return [item.kind, item.module, item.scope, item.location.file, item.location.line, call]


def _reference(row: list[Any]) -> Reference:
    kind, module, scope, file, line, (positional, keywords, star, double_star, grid) = row
    form = CallForm(positional, tuple(keywords), star, double_star, grid)
    return Reference(kind, module, scope, Location(file, line), form)

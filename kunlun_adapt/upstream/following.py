"""What following a symbol from one release to another asks of a release, kept for the next time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.fetch import Progress
from kunlun_adapt.upstream.found import Found, class_body
from kunlun_adapt.upstream.index.records import CallForm, Reference
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location, Missing, Suggestion, Symbol

_FUNCTIONS = ("function", "async_function", "triton_kernel", "custom_op", "cached_function")
_CALLS = ("call", "launch")


class FollowingResolver(Resolver):
    """A resolver that keeps where a missing symbol may be: looking for it reads the release."""

    def __init__(self, release: Release, *, progress: Progress | None = None) -> None:
        super().__init__(release, progress=progress)
        self._expected: tuple[str, ...] = ()

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

    def functions(self, module: str) -> tuple[tuple[str, str, Location], ...]:
        """The public functions at the top of a module: the name, the kind and the place of each."""
        rows = self.recall("functions", module, lambda: self._functions(module))
        return tuple((name, kind, Location(file, line)) for name, kind, file, line in rows)

    def _functions(self, module: str) -> list[Any]:
        return [
            [item.name, item.kind, item.location.file, item.location.line]
            for item in self.index.defined_in(module)
            if item.kind in _FUNCTIONS and "." not in item.qualname and item.name[:1] != "_"
        ]

    def has_name(self, name: str) -> bool:
        """Whether anything in the release is defined under a name."""
        return bool(self.recall("has_name", name, lambda: bool(self.index.definitions(name))))

    def expect_callers(self, paths: Iterable[str]) -> None:
        """Say whose callers will be asked for, so that no module is parsed twice for them."""
        self._expected = tuple(paths)

    def callers(self, path: str) -> tuple[Reference, ...]:
        """The calls of a function, or of a method by its own class, each with its form.

        Who else calls a method cannot be told from the text, and is left out.
        """
        rows = self.recall("callers", path, lambda: [_row(item) for item in self._calls(path)])
        return tuple(_reference(row) for row in rows)

    def _calls(self, path: str) -> tuple[Reference, ...]:
        symbol = self.resolve(path)
        if not isinstance(symbol, Symbol):
            return ()
        if "." in symbol.qualname:
            return tuple(self._own_calls(symbol.resolved.rpartition(".")[0], symbol.name))
        expected, self._expected = self._expected, ()
        self.index.expect(expected)
        return tuple(item for item in self.index.references(path) if item.kind in _CALLS)

    def _own_calls(self, owner: str, name: str) -> Iterator[Reference]:
        """The calls `self.name(…)` and `cls.name(…)` in a class's own methods."""
        text, found = self.text(owner), self.find(owner)
        if text is None or not isinstance(found, Found):
            return
        node = syntax.parse_span(text)
        first = found.location.line - node.lineno
        for method in getattr(node, "body", ()):
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for call in ast.walk(method):
                if isinstance(call, ast.Call) and syntax.dotted(call.func) in (
                    f"self.{name}",
                    f"cls.{name}",
                ):
                    scope = f"{found.qualname}.{method.name}"
                    at = Location(found.location.file, call.lineno + first)
                    yield Reference("call", found.module, scope, at, _form(call))


def _form(call: ast.Call) -> CallForm:
    plain = [item for item in call.args if not isinstance(item, ast.Starred)]
    keywords = [item.arg for item in call.keywords]
    return CallForm(
        positional=len(plain),
        keywords=tuple(name for name in keywords if name is not None),
        star=len(plain) < len(call.args),
        double_star=None in keywords,
    )


def _row(item: Reference) -> list[Any]:
    form = item.call or CallForm()
    call = [form.positional, form.keywords, form.star, form.double_star, form.grid]
    return [item.kind, item.module, item.scope, item.location.file, item.location.line, call]


def _reference(row: list[Any]) -> Reference:
    kind, module, scope, file, line, (positional, keywords, star, double_star, grid) = row
    form = CallForm(positional, tuple(keywords), star, double_star, grid)
    return Reference(kind, module, scope, Location(file, line), form)

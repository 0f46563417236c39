"""KA010: a statement without the reason for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Document

PLACEHOLDERS = {"", "…", "...", "-", "?", "todo", "tbd", "fixme", "why", "xxx"}


def rule(context: Context) -> Iterable[Finding]:
    """Report reasons that say nothing, and places that the simulator does not serve without one."""
    documents: tuple[Document[Any], ...] = (
        context.document,
        *context.operators,
        *context.catalog.recipes,
    )
    for document in documents:
        yield from _document(document)


def _document(document: Document[Any]) -> Iterator[Finding]:
    for path, value in _walk(document.raw.data, ()):
        if path and path[-1] == "why" and isinstance(value, str):
            if value.strip().strip(".").lower() in PLACEHOLDERS:
                yield Finding.of(
                    "KA010",
                    f"the reason {value!r} says nothing",
                    document.at(*path),
                    suggestion="say in one line what would break without it",
                )
        elif "served" in path[-2:] and isinstance(value, dict) and not _explained(value):
            yield Finding.of(
                "KA010",
                "the simulator does not serve it, and nothing says why",
                document.at(*path),
                suggestion='add the reason: `{simulator: false, why: "…"}`',
            )


def _explained(served: dict[str, Any]) -> bool:
    return served.get("simulator") is not False or "why" in served


def _walk(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield path, value
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from _walk(child, (*path, key))

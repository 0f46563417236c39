"""KA006: a version range that holds for no release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kunlun_adapt.check.context import Context, finding
from kunlun_adapt.check.releases import bounds, is_empty
from kunlun_adapt.check.wording import scalar
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Document

KEY = "sglang"
FREE = ("stack", "server_args", "environment", "parallel", "runbook", "acceptance")
"""Parts of documents whose `sglang` is no range, or that are free-form."""


def rule(context: Context) -> Iterable[Finding]:
    """Report every `sglang:` range in the workspace that no version can lie in."""
    yield from _document(context.document, free=("stack",))
    for recipe in context.operators:
        yield from _document(recipe, free=())
    for document in context.catalog.recipes:
        yield from _document(document, free=FREE)


def _document(document: Document[Any], free: tuple[str, ...]) -> Iterator[Finding]:
    for path in document.raw.positions:
        if not path or path[-1] != KEY or path[0] in free:
            continue
        text = _value(document.raw.data, path)
        if isinstance(text, str) and is_empty(text):
            limits = [str(v) for v in bounds(text)]
            yield finding(
                "KA006",
                f"the range {text!r} holds for no release",
                document.at(*path),
                suggestion=f"write `sglang: {scalar(f'>={limits[0]},<{limits[-1]}')}`, or drop it"
                if len(set(limits)) > 1
                else "drop it, or name the releases that it is for",
            )


def _value(data: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        data = data[part]
    return data

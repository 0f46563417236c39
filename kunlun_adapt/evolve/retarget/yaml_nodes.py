"""Where the nodes of a YAML text begin and end, so that one can be changed and no byte besides."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.diagnostics.mend import Path

_BaseLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_BREAK = re.compile(r"\r\n|\r|\n")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+[ \t]*")
_ANCHOR_AND_GAP = re.compile(rf"{_ANCHOR.pattern}\s*")
_BLOCK_SCALAR = ("|", ">")


class EditError(AdaptError):
    """A text in which a change cannot be made without touching what it is not about."""


@dataclass(slots=True)
class Node:
    """One node of a text, from `start` up to `end`, counted in characters.

    The lines and comments that follow a node are not its own, nor is an anchor before it. `items`
    holds the values of a mapping or a list, `keys` the keys of a mapping.
    """

    kind: str
    start: int
    end: int
    value: str = ""
    flow: bool = False
    keys: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    anchored: bool = False


class NodeText:
    """One YAML text with its node trees; texts are never changed, but made anew."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(m.end() for m in _BREAK.finditer(text))]
        found = _BREAK.search(text)
        self.newline = found[0] if found else "\n"
        try:
            self._documents = list(self._composed())
        except yaml.YAMLError as error:
            raise EditError(f"the text is not readable: {str(error).splitlines()[0]}") from error

    def node(self, document: int, path: Path) -> Node:
        """Return the node at a path. Raises EditError where there is none."""
        node = self._documents[document]
        for step in path:
            found: Node | None = None
            if node.kind == "mapping":
                pairs = zip(node.keys, node.items, strict=True)
                found = next((item for key, item in pairs if key.value == step), None)
            elif isinstance(step, int) and step < len(node.items):
                found = node.items[step]
            if found is None:
                raise EditError(f"there is no {dotted(path)} to change")
            node = found
        return node

    def line_start(self, offset: int) -> int:
        """Return where the line of a place begins."""
        return self._starts[bisect.bisect_right(self._starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Return where the line of a place ends, before its line break."""
        found = _BREAK.search(self.text, offset)
        return found.start() if found else len(self.text)

    def next_line(self, offset: int) -> int:
        """Return where the line after that of a place begins."""
        found = _BREAK.search(self.text, offset)
        return found.end() if found else len(self.text)

    def column(self, offset: int) -> int:
        return offset - self.line_start(offset)

    def replaced(self, start: int, end: int, new: str) -> str:
        """Return the text with one part of it made anew. Raises EditError for a lost comment."""
        lost = self.text[start:end]
        if _BREAK.search(lost) and "#" in lost:
            line = self.text.count("\n", 0, start) + 1
            raise EditError(f"a comment from line {line} on would be lost")
        return self.text[:start] + new + self.text[end:]

    def inserted(self, offset: int, new: str) -> str:
        return self.text[:offset] + new + self.text[offset:]

    def without_anchors(self, node: Node, start: int, end: int) -> str:
        """Return a part of the text that holds a node, without the anchors: a copy sets none."""
        cuts = [
            (match.start(), match.end())
            for inner in _all(node)
            if inner.anchored
            for match in [_last(_ANCHOR, self.text, start, inner.start)]
            if match is not None
        ]
        text = self.text[start:end]
        for first, last in sorted(cuts, reverse=True):
            text = text[: first - start] + text[last - start :]
        return text

    def _composed(self) -> Iterator[Node]:
        """Yield the documents that hold something; an alias stays a node of its own."""
        stack: list[Node] = []
        for event in yaml.parse(self.text, Loader=_BaseLoader):
            if isinstance(event, yaml.CollectionEndEvent):
                node = stack.pop()
                if node.flow:
                    node.end = self._offset(event.end_mark)
                elif node.items:
                    node.end = node.items[-1].end
            elif isinstance(event, yaml.NodeEvent):
                node = self._made(event)
                if stack:
                    owner = stack[-1]
                    is_key = owner.kind == "mapping" and len(owner.keys) == len(owner.items)
                    (owner.keys if is_key else owner.items).append(node)
                elif node.kind != "scalar" or node.value:
                    yield node
                if isinstance(event, yaml.CollectionStartEvent):
                    stack.append(node)

    def _made(self, event: yaml.NodeEvent) -> Node:
        start, end = self._offset(event.start_mark), self._offset(event.end_mark)
        anchored = event.anchor is not None and not isinstance(event, yaml.AliasEvent)
        match = _ANCHOR_AND_GAP.match(self.text, start) if anchored else None
        start = match.end() if match else start
        if isinstance(event, yaml.CollectionStartEvent):
            kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
            return Node(kind, start, end, flow=bool(event.flow_style), anchored=anchored)
        if isinstance(event, yaml.ScalarEvent):
            if event.style in _BLOCK_SCALAR:
                end = len(self.text[:end].rstrip("\r\n"))
            return Node("scalar", start, end, str(event.value), anchored=anchored)
        return Node("alias", start, end)

    def _offset(self, mark: Any) -> int:
        past = mark.line >= len(self._starts)
        return len(self.text) if past else self._starts[mark.line] + mark.column


def dotted(path: Path) -> str:
    """Return a path as people write it."""
    return ".".join(map(str, path))


def _all(node: Node) -> Iterator[Node]:
    yield node
    for item in node.items:
        yield from _all(item)


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """Return the last match before a node; there is nothing else between it and the node."""
    found = None
    for match in pattern.finditer(text, start, end):
        found = match
    return found

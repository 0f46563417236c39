"""Change a YAML text as data and leave every byte alone that the change is not about.

Nodes are found by the positions that the parser gives, and only their own text is written anew. A
round trip through a parser that keeps comments (ruamel.yaml) writes the whole file: it wraps long
lines and moves comments, so that a diff shows lines that nobody changed. Each change is proved: the
new text has to hold exactly the data that the change is meant to make.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from kunlun_adapt.check.wording import flow, scalar
from kunlun_adapt.diagnostics.mend import Path
from kunlun_adapt.documents.loader import load_bytes
from kunlun_adapt.evolve.retarget.yaml_nodes import EditError, Node, NodeText, dotted

FIRST = "sglang"
"""The key with which an entry begins."""


class Draft:
    """One file on its way: its text, and the data that the text is to hold.

    What raises EditError leaves the draft as it was.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._data = _data(text)

    def copy(self) -> Draft:
        """Return the same draft, to go another way from here."""
        other = copy.copy(self)
        other._data = copy.deepcopy(self._data)
        return other

    def prove(self) -> None:
        """Raises EditError where the text does not hold what all changes together were to make."""
        if _data(self.text) != self._data:
            raise EditError("the text cannot be changed there without changing something else")

    def set_values(self, document: int, path: Path, values: Mapping[str, Any]) -> None:
        """Set some keys of a mapping; a value of None takes the key away. Raises EditError."""
        before = _at(self._data[document], path)
        entry, text = copy.deepcopy(before), self.text
        for key, value in values.items():
            if value is None:
                if key in entry:
                    text = _without(text, document, path, key)
                    del entry[key]
            elif key not in entry:
                text = _with_key(text, document, path, key, value)
                entry[key] = value
            elif entry[key] != value:
                text = _with_value(text, document, (*path, key), entry[key], value)
                entry[key] = value
        before.clear()
        before.update(entry)
        self.text = text

    def copy_item(self, document: int, path: Path, values: Mapping[str, Any]) -> None:
        """Put a copy of a list's item after it, with some other values. Raises EditError."""
        *owner, index = path
        if not isinstance(index, int):
            raise EditError(f"{dotted(path)} is no item of a list")
        nodes = NodeText(self.text)
        listed, node = nodes.node(document, tuple(owner)), nodes.node(document, path)
        if listed.flow:
            same = nodes.without_anchors(node, node.start, node.end)
            text = nodes.inserted(node.end, f", {same}")
        else:
            start, end = _item_lines(nodes, listed, node)
            lines = nodes.without_anchors(node, start, end)
            if not lines.endswith(("\n", "\r")):
                lines = nodes.newline + lines
            text = nodes.inserted(end, lines)
        before, items = self.text, _at(self._data[document], tuple(owner))
        items.insert(index + 1, copy.deepcopy(items[index]))
        self.text = text
        try:
            self.set_values(document, (*owner, index + 1), values)
        except EditError:
            del items[index + 1]
            self.text = before
            raise

    def add_item(self, document: int, path: Path, item: Mapping[str, Any]) -> None:
        """Add an item at the end of a list, which is made where there is none. Raises EditError."""
        owner, key = _at(self._data[document], path[:-1]), str(path[-1])
        if dict(item) in (owner.get(key) or ()):
            return  # another edit brought it already
        if not owner.get(key):
            self.set_values(document, path[:-1], {key: [dict(item)]})
            return
        self.text = _appended(self.text, document, path, flow(item))
        owner[key].append(dict(item))


def _item_lines(nodes: NodeText, listed: Node, node: Node) -> tuple[int, int]:
    """Return from where to where the whole lines of an item of a block list go."""
    start = nodes.line_start(node.start)
    before = nodes.text[start : node.start]
    dash = before.partition("-")
    if dash[0].strip() or dash[2].strip(" ") or len(dash[0]) != nodes.column(listed.start):
        raise EditError("an item that does not begin on the line of its dash is not copied")
    return start, nodes.next_line(node.end)


def _appended(text: str, document: int, path: Path, new: str) -> str:
    nodes = NodeText(text)
    listed = nodes.node(document, path)
    if listed.kind != "sequence":
        raise EditError(f"{dotted(path)} is no list")
    if listed.flow:
        return nodes.inserted(listed.items[-1].end, f", {new}")
    indent = " " * nodes.column(listed.start)
    return nodes.inserted(nodes.line_end(listed.end), f"{nodes.newline}{indent}- {new}")


def _with_key(text: str, document: int, path: Path, key: str, value: Any) -> str:
    """Return the text with a further key in a mapping: at its start or at its end."""
    nodes = NodeText(text)
    node = nodes.node(document, path)
    if node.kind != "mapping":
        raise EditError(f"{dotted(path)} is not written out there")
    said = f"{scalar(key)}: {flow(value)}"
    if not node.items:
        return nodes.inserted(node.start + 1, said)
    first, last = node.keys[0].start, node.items[-1].end
    if node.flow:
        at_start = nodes.inserted(first, f"{said}, ")
        return at_start if key == FIRST else nodes.inserted(last, f", {said}")
    indent = " " * nodes.column(first)
    if key == FIRST:
        return nodes.inserted(first, f"{said}{nodes.newline}{indent}")
    return nodes.inserted(nodes.line_end(last), f"{nodes.newline}{indent}{said}")


def _without(text: str, document: int, path: Path, key: str | int) -> str:
    """Return the text without a key of a mapping or an item of a list."""
    nodes = NodeText(text)
    node = nodes.node(document, path)
    starts = [part.start for part in (node.keys or node.items)]
    ends = [item.end for item in node.items]
    index = key if isinstance(key, int) else [k.value for k in node.keys].index(key)
    start, end = starts[index], ends[index]
    last = index + 1 == len(ends)
    if node.flow:
        if not last:
            return nodes.replaced(start, starts[index + 1], "")
        return nodes.replaced(ends[index - 1] if index else start, end, "")
    if len(ends) == 1:
        raise EditError(f"{dotted(path)} would be left with nothing in it")
    before = text[nodes.line_start(start) : start].strip()
    # An entry's first key stands behind the entry's dash, which stays.
    if not before or (node.kind == "sequence" and before == "-"):
        return nodes.replaced(nodes.line_start(start), nodes.next_line(end), "")
    if not last:
        return nodes.replaced(start, starts[index + 1], "")
    raise EditError(f"{key} cannot be taken out of its line")


def _with_value(text: str, document: int, path: Path, there: Any, value: Any) -> str:
    """Return the text with another value at a path, changed in its parts where it has any."""
    nodes = NodeText(text)
    node = nodes.node(document, path)
    if node.kind == "mapping" and isinstance(value, Mapping) and node.items and value:
        return _with_parts(text, document, path, there, value)
    if node.kind == "sequence" and not node.flow and isinstance(value, list):
        return _with_items(text, document, path, there, value)
    return _in_one_line(nodes, document, path, flow(value))


def _in_one_line(nodes: NodeText, document: int, path: Path, said: str) -> str:
    """Return the text with a value written behind its key, where it may have stood below it."""
    node, owner = nodes.node(document, path), nodes.node(document, path[:-1])
    start = node.start
    if owner.kind == "mapping" and not node.flow and node.kind != "scalar":
        key = next(k for k in owner.keys if k.value == path[-1])
        start = nodes.text.index(":", key.end) + 1
        said = f" {said}"
    elif node.start == node.end:
        said = f" {said}"
    return nodes.replaced(start, node.end, said)


def _with_parts(
    text: str, document: int, path: Path, there: Mapping[str, Any], value: Mapping[str, Any]
) -> str:
    """Return the text with a mapping changed key by key: what stays the same is not written."""
    renamed = _renamed(there, value)
    for key, new in value.items():
        if key not in there and key not in renamed.values():
            text = _with_key(text, document, path, key, new)
        elif key in there and there[key] != new:
            text = _with_value(text, document, (*path, key), there[key], new)
    for old, new_key in renamed.items():
        nodes = NodeText(text)
        spelled = next(k for k in nodes.node(document, path).keys if k.value == old)
        text = nodes.replaced(spelled.start, spelled.end, scalar(new_key))
    for key in there:
        if key not in value and key not in renamed:
            text = _without(text, document, path, key)
    return text


def _renamed(there: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, str]:
    """Return the one key that goes with the one that comes in its place, if they are such."""
    gone, new = [k for k in there if k not in value], [k for k in value if k not in there]
    one = len(gone) == len(new) == 1 and there[gone[0]] == value[new[0]]
    return {gone[0]: new[0]} if one else {}


def _with_items(
    text: str, document: int, path: Path, there: Sequence[Any], items: list[Any]
) -> str:
    """Return the text with a block list changed item by item."""
    kept = [item for item in there if item in items]
    if not kept or [*kept, *(i for i in items if i not in kept)] != items:
        return _in_one_line(NodeText(text), document, path, flow(items))
    for index in reversed(range(len(there))):
        if there[index] not in items:
            text = _without(text, document, path, index)
    for item in items[len(kept) :]:
        text = _appended(text, document, path, flow(item))
    return text


def _data(text: str) -> list[Any]:
    try:
        documents, findings = load_bytes(text.encode(), "text")
    except UnicodeEncodeError as error:
        raise EditError(f"the text is not readable: {error}") from error
    if findings:
        raise EditError(f"the text is not readable: {findings[0].message}")
    return [document.data for document in documents]


def _at(data: Any, path: Path) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError) as error:
            raise EditError(f"there is no {dotted(path)} to change") from error
    return data

"""Read YAML 1.2 (core schema) into plain values, keeping the position of every node.

PyYAML's own resolver speaks YAML 1.1 (`on` is a boolean, `12:30` a number); the one here takes the
1.2 core schema. Every fault of a file is a finding at its place; nothing raises for bad input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kunlun_adapt.diagnostics import CODES, Finding, Position

Key = tuple[str | int, ...]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 200_000

_BaseLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCT = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_SPECIAL = {"inf": float("inf"), "nan": float("nan")}
_STR_TAG = "tag:yaml.org,2002:str"
_COLLECTION_TAGS = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})


@dataclass(slots=True)
class RawDocument:
    """One YAML document: plain values and, for each path into them, where it stands.

    `positions` maps a path (keys and indexes) to the place of the value; `keys` maps the path of a
    mapping's entry to the place of its key.
    """

    file: str
    index: int
    data: Any
    positions: dict[Key, Position] = field(default_factory=dict)
    keys: dict[Key, Position] = field(default_factory=dict)

    def at(self, *path: str | int) -> Position:
        """Return the position of `path`, or of its nearest ancestor that has one."""
        for end in range(len(path), -1, -1):
            found = self.positions.get(path[:end])
            if found is not None:
                return found
        return Position(self.file, 1, 1)

    def key_at(self, *path: str | int) -> Position:
        """Return the position of the key that leads to `path`, or of the value without a key."""
        return self.keys.get(path) or self.at(*path)


def load_file(path: Path, name: str) -> tuple[list[RawDocument], list[Finding]]:
    """Read all documents of a file; `name` is how findings call the file."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return [], [_fault(name, 1, 1, f"file of {size} bytes; the limit is {MAX_BYTES}")]
        raw = path.read_bytes()
    except OSError as error:
        return [], [_fault(name, 1, 1, f"cannot be read: {error.strerror or error}")]
    return load_bytes(raw, name)


def load_bytes(raw: bytes, name: str) -> tuple[list[RawDocument], list[Finding]]:
    """Read all documents in `raw`."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        return [], [_fault(name, line, column, "not UTF-8", "save the file as UTF-8")]
    nodes, fault = _compose(text, name)
    documents: list[RawDocument] = []
    findings: list[Finding] = [] if fault is None else [fault]
    for index, node in enumerate(nodes):
        reader = _Reader(name, index)
        document = reader.read(node)
        findings.extend(reader.findings)
        if not reader.broken:
            documents.append(document)
    return documents, findings


def _compose(text: str, name: str) -> tuple[list[yaml.Node], Finding | None]:
    deep = _too_deep(text)
    if deep is not None:
        return [], _fault(name, *deep, f"nested deeper than {MAX_DEPTH} levels")
    nodes: list[yaml.Node] = []
    try:
        nodes.extend(node for node in yaml.compose_all(text, Loader=_BaseLoader) if node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message = " ".join(p for p in (error.context, error.problem) if p)
        tip = "indent with spaces" if "\\t" in message or "\t" in message else None
        return [], _fault(name, line, column, message, tip)
    except yaml.YAMLError as error:
        return [], _fault(name, 1, 1, str(error).splitlines()[0])
    except RecursionError:
        return [], _fault(name, 1, 1, f"nested deeper than {MAX_DEPTH} levels")
    return nodes, None


def _too_deep(text: str) -> tuple[int, int] | None:
    """Find nesting over the limit from the event stream, before the recursive composer sees it."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_BaseLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    return event.start_mark.line + 1, event.start_mark.column + 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return None
    return None


class _Reader:
    """Turns one node tree into values, positions and findings."""

    def __init__(self, file: str, index: int) -> None:
        self.document = RawDocument(file, index, None)
        self.findings: list[Finding] = []
        self.broken = False
        self._count = 0

    def read(self, node: yaml.Node) -> RawDocument:
        self.document.data = self._value(node, ())
        return self.document

    def _fault(self, node: yaml.Node, message: str, suggestion: str | None = None) -> None:
        mark = node.start_mark
        self.findings.append(
            _fault(self.document.file, mark.line + 1, mark.column + 1, message, suggestion)
        )

    def _value(self, node: yaml.Node, path: Key) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            if not self.broken:
                self._fault(node, f"more than {MAX_NODES} values once anchors are expanded")
            self.broken = True
            return None
        mark = node.start_mark
        self.document.positions[path] = Position(self.document.file, mark.line + 1, mark.column + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTION_TAGS:
            self._fault(node, f"tag {node.tag!r} is not allowed", "write a plain value")
            self.broken = True
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*path, i)) for i, child in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(key_node, "a key must be plain text")
                self.broken = True
                continue
            key = str(key_node.value)
            if key in result:
                self._fault(key_node, f"key {key!r} is given twice", "remove or merge one of them")
                self.broken = True
                continue
            entry = (*path, key)
            mark = key_node.start_mark
            self.document.keys[entry] = Position(self.document.file, mark.line + 1, mark.column + 1)
            result[key] = self._value(value_node, entry)
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        text = str(node.value)
        if node.tag not in (None, _STR_TAG, "!", "tag:yaml.org,2002:null"):
            self._fault(node, f"tag {node.tag!r} is not allowed", "write a plain value")
            self.broken = True
            return None
        if getattr(node, "style", None) in ("'", '"', "|", ">"):
            return text
        return resolve_scalar(text)


def resolve_scalar(text: str) -> None | bool | int | float | str:
    """Return what a plain scalar means in the YAML 1.2 core schema."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INT.match(text):
        # Python refuses to convert absurdly long digits; such text is a string to us.
        return int(text) if len(text) < 400 else text
    if _OCT.match(text):
        return int(text[2:], 8)
    if _HEX.match(text):
        return int(text[2:], 16)
    if _FLOAT.match(text):
        return float(text)
    bare = text.lstrip("+-")
    if len(text) - len(bare) <= 1 and bare[:1] == "." and bare[1:] in {"inf", "Inf", "INF"}:
        return -_SPECIAL["inf"] if text.startswith("-") else _SPECIAL["inf"]
    if text in {".nan", ".NaN", ".NAN"}:
        return _SPECIAL["nan"]
    return text


def _fault(
    file: str, line: int, column: int, message: str, suggestion: str | None = None
) -> Finding:
    return Finding(
        code="KA001",
        severity=CODES["KA001"].severity,
        message=message,
        position=Position(file, line, column),
        suggestion=suggestion,
    )

"""Read YAML 1.2 (core schema) into plain values, keeping the position of every node.

PyYAML's own resolver speaks YAML 1.1 (`on` is a boolean, `12:30` a number); the one here takes the
1.2 core schema. Every fault of a file is a finding at its place; nothing raises for bad input.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kunlun_adapt.diagnostics import Finding, Position

Key = tuple[str | int, ...]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_DIGITS = 400
"""Longer runs of digits stay text: Python refuses to print integers of some thousand digits."""

_BaseLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCT = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z")
_NAN = frozenset({".nan", ".NaN", ".NAN"})

# What YAML does not allow at all, and the three characters at which YAML 1.1 readers (libyaml is
# one) end a line or a comment while editors and YAML 1.2 do not: text could hide behind them.
_REFUSED = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_FLOW = re.compile(r"while parsing a flow (?P<kind>mapping|sequence): did not find expected ','")
_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class RawDocument:
    """One YAML document: plain values and, for each path into them, where it stands.

    `positions` maps a path (keys and indexes) to the place of the value; `keys` maps the path of a
    mapping's entry to the place of its key. Of a `broken` one there are findings already, but its
    values can be looked at, so that what else is wrong with it is said in the same run.
    """

    file: str
    index: int
    data: Any
    positions: dict[Key, Position] = field(default_factory=dict)
    keys: dict[Key, Position] = field(default_factory=dict)
    broken: bool = False

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


def load_file(
    path: Path, name: str, *, broken: bool = False
) -> tuple[list[RawDocument], list[Finding]]:
    """Read all documents of a file; `name` is how findings call the file."""
    try:
        # Opening a pipe would wait for a writer; a folder is for the system to refuse.
        if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
            return [], [_fault(name, 1, 1, "cannot be read: it is not a regular file")]
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return [], [_fault(name, 1, 1, f"cannot be read: {error.strerror or error}")]
    return load_bytes(raw, name, broken=broken)


def load_bytes(
    raw: bytes, name: str, *, broken: bool = False
) -> tuple[list[RawDocument], list[Finding]]:
    """Read all documents in `raw`; empty ones (`---` at the end) are left out.

    A file without any document is a finding. With `broken` those are returned as well whose values
    can be looked at although there are findings about them.
    """
    if len(raw) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB"
        return [], [_fault(name, 1, 1, message, "split it")]
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        place = _place(before, len(before))
        return [], [_fault(name, *place, "the file is not UTF-8", "save it as UTF-8")]
    nodes, findings = _compose(text, name)
    documents: list[RawDocument] = []
    tagged = list(findings)
    for node in nodes:
        reader = _Reader(name, len(documents))
        document = reader.read(node)
        findings.extend(reader.findings)
        document.broken = bool(reader.findings) or any(_inside(f.position, node) for f in tagged)
        if not reader.holes and (broken or not document.broken):
            documents.append(document)
    if not nodes and not findings:
        findings.append(_fault(name, 1, 1, "the file holds no document", "delete it, or fill it"))
    return documents, findings


def _compose(text: str, name: str) -> tuple[list[yaml.Node], list[Finding]]:
    refused = _REFUSED.search(text)
    if refused:
        message = f"character U+{ord(refused[0]):04X} is not allowed"
        tip = 'remove it, or write it as an escape inside double quotes, such as "\\u2028"'
        return [], [_fault(name, *_place(text, refused.start()), message, tip)]
    try:
        faults, readable = _scan(text, name)
        if not readable:
            return [], faults
        nodes = [n for n in yaml.compose_all(text, Loader=_BaseLoader) if n and not _empty(n)]
    except yaml.MarkedYAMLError as error:
        return [], [_marked(error, text, name)]
    except yaml.YAMLError as error:
        return [], [_fault(name, 1, 1, str(error).splitlines()[0])]
    return nodes, faults


def _scan(text: str, name: str) -> tuple[list[Finding], bool]:
    """Find tags and excess in the event stream, before the recursive composer sees it.

    Returns false where there is so much that it must not be composed.
    """
    depth = count = 0
    faults: list[Finding] = []
    for event in yaml.parse(text, Loader=_BaseLoader):
        if not isinstance(event, yaml.NodeEvent):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            continue
        count += 1
        place = _mark(event.start_mark)
        if count > MAX_NODES:
            excess = _fault(name, *place, f"more than {MAX_NODES} values", "split the file")
            return [*faults, excess], False
        tag = getattr(event, "tag", None)
        if tag is not None:
            faults.append(
                _fault(name, *place, f"tag {tag!r} is not allowed", "write the value without a tag")
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                excess = _fault(name, *place, f"nested deeper than {MAX_DEPTH} levels")
                return [*faults, excess], False
    return faults, True


def _inside(position: Position, node: yaml.Node) -> bool:
    """Tell whether a place lies in a document, given its topmost node."""
    place = (position.line, position.column)
    return _mark(node.start_mark) <= place <= _mark(node.end_mark)


def _marked(error: yaml.MarkedYAMLError, text: str, name: str) -> Finding:
    """Turn a syntax error of PyYAML into a finding inside the text."""
    problem = error.problem or "not readable as YAML"
    mark = error.problem_mark or error.context_mark
    if "unexpected end" in problem and error.context_mark is not None:
        mark = error.context_mark  # where the quote opens, not where the file ends
    if problem == "second occurrence":
        problem = "an anchor with this name is already set above"
    elif "maximum nesting" in problem:
        problem = f"nested deeper than {MAX_DEPTH} levels"
    elif error.context:
        problem = f"{error.context}: {problem}"
    lines = _BREAK.split(text)
    line, column = _mark(mark) if mark is not None else (1, 1)
    if line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    here = lines[line - 1][column - 1 : column]
    tip = None
    opened = _FLOW.match(problem)
    if opened and error.context_mark is not None:
        place, bracket = _mark(error.context_mark), "{" if opened["kind"] == "mapping" else "["
        problem += f"; the {bracket!r} opens in line {place[0]}, column {place[1]}"
        tip = f"close it with {'}' if bracket == '{' else ']'}"
    elif "nested deeper" in problem:
        pass
    elif "unexpected end" in problem:
        tip = "close the quote"
    elif here == "\t":
        tip = "indent with spaces"
    elif lines[line - 1].startswith("%"):
        tip = "remove the line, or put a text that starts with '%' in quotes"
    elif here and here in "@`%&*!|>'\"{}[],#?-":
        tip = "put the text in quotes"
    elif "mapping values are not allowed" in problem:
        tip = "put text that contains ': ' in quotes, and check the indentation"
    return _fault(name, line, column, problem, tip)


def _empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.value and not _quoted(node)


def _quoted(node: yaml.Node) -> bool:
    return getattr(node, "style", None) in ("'", '"', "|", ">")


def _mark(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _place(text: str, index: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character index."""
    line, start = 1, 0
    for found in _BREAK.finditer(text, 0, index):
        line, start = line + 1, found.end()
    return line, index - start + 1


class _Reader:
    """Turns one node tree into values, positions and findings."""

    def __init__(self, file: str, index: int) -> None:
        self.document = RawDocument(file, index, None)
        self.findings: list[Finding] = []
        self.holes = False
        self._count = 0
        self._full = False

    def read(self, node: yaml.Node) -> RawDocument:
        self.document.data = self._value(node, ())
        return self.document

    def _fault(self, node: yaml.Node, message: str, suggestion: str | None = None) -> None:
        self.findings.append(
            _fault(self.document.file, *_mark(node.start_mark), message, suggestion)
        )

    def _stop(self, node: yaml.Node, message: str) -> None:
        """Report the first excess only: with anchors one fault comes back a thousand times."""
        if not self._full:
            self._fault(node, message, "use fewer anchors")
        self._full = self.holes = True

    def _value(self, node: yaml.Node, path: Key) -> Any:
        if self._full:
            return None
        self._count += 1
        if self._count > MAX_NODES:
            return self._stop(node, f"more than {MAX_NODES} values once anchors are expanded")
        if len(path) > MAX_DEPTH:
            return self._stop(node, f"deeper than {MAX_DEPTH} levels once anchors are expanded")
        self.document.positions[path] = Position(self.document.file, *_mark(node.start_mark))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*path, i)) for i, child in enumerate(node.value)]
        text = str(node.value)
        return text if _quoted(node) else resolve_scalar(text)

    def _mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(key_node, "a key must be plain text, not a list or a mapping")
                continue
            key = str(key_node.value)
            if key == "<<" and not _quoted(key_node):
                self._fault(key_node, "YAML 1.2 has no merge key `<<`", "write the entries out")
                self.holes = True  # what it would bring would look as if it was missing
                continue
            entry = (*path, key)
            if key in result:
                message = f"key {key!r} is already given in line {self.document.keys[entry].line}"
                self._fault(key_node, message, "remove or merge one of them")
                continue
            self.document.keys[entry] = Position(self.document.file, *_mark(key_node.start_mark))
            result[key] = self._value(value_node, entry)
        return result


def resolve_scalar(text: str) -> bool | int | float | str | None:
    """Return what a plain scalar means in the YAML 1.2 core schema."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) > MAX_DIGITS:
        return text
    if _INT.match(text):
        return int(text)
    if _OCT.match(text):
        return int(text[2:], 8)
    if _HEX.match(text):
        return int(text[2:], 16)
    if _FLOAT.match(text):
        return float(text)
    if _INFINITE.match(text):
        return float(text.replace(".", ""))
    if text in _NAN:
        return float("nan")
    return text


def _fault(
    file: str, line: int, column: int, message: str, suggestion: str | None = None
) -> Finding:
    return Finding.of("KA001", message, Position(file, line, column), suggestion=suggestion)

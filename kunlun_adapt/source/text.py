"""What may enter generated text: checked identifiers, `repr()` of plain values, tame comments."""

from __future__ import annotations

import ast
import keyword
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import Document

Item = TypeVar("Item")

WIDTH = 96
NAMESPACE = "kunlun_adapt"
"""The namespace of our `torch.library` ops."""
MAX_BITS = 4096
"""Python refuses to print integers of some thousand digits."""
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


class SourceError(ValueError):
    """Something that must not reach generated code."""


def identifier(text: str) -> str:
    """Return `text` if it is an ASCII Python identifier and no keyword. Raises SourceError."""
    reserved = keyword.iskeyword(text) or text == "__debug__"
    if not _DOTTED.match(text) or "." in text or reserved:
        raise SourceError(f"{text!r} is not an identifier")
    return text


def distinct(names: Iterable[str]) -> list[str]:
    """Return an identifier for each name; names that differ only in punctuation stay different."""
    found: list[str] = []
    for name in names:
        base = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
        number, made = 1, base
        while made in found:
            number += 1
            made = f"{base}_{number}"
        found.append(identifier(made))
    return found


def dotted(text: str) -> str:
    """Return `text` if it is a dotted path of identifiers. Raises SourceError."""
    for part in text.split("."):
        identifier(part)
    return text


def literal(value: Any) -> str:
    """Return Python text for a plain value, in ASCII. Raises SourceError for anything else.

    An infinite number is written `1e999`, which needs no name; NaN equals nothing and is refused.
    """
    kind = type(value)
    if kind in (list, tuple):
        inner = ", ".join(literal(v) for v in value)
        return f"[{inner}]" if kind is list else f"({inner}{',' * (len(value) == 1)})"
    if value is None or kind is bool:
        return repr(value)
    if kind is str:
        return ascii(value)
    if kind is float and not math.isnan(value):
        return repr(value) if math.isfinite(value) else ("1e999" if value > 0 else "-1e999")
    if kind is int and value.bit_length() <= MAX_BITS:
        return repr(value)
    raise SourceError(f"a value of type {kind.__name__} cannot be written into generated code")


def literal_default(source: str | None) -> tuple[bool, Any]:
    """Tell whether an upstream default is a plain literal, and which."""
    if source is None:
        return False, None
    try:
        value = ast.literal_eval(source)
        literal(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None
    return True, value


def comment(text: str, indent: int = 0) -> str:
    """Return `text` as comment lines; control and line-breaking characters become spaces."""
    tame = "".join(c if c.isprintable() else " " for c in text)
    prefix = " " * indent + "# "
    lines = textwrap.wrap(
        " ".join(tame.split()), WIDTH - len(prefix), break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(prefix + line for line in lines or ["(no reason given)"])


def place(position: Position) -> str:
    """Return where a block comes from, as its comment says it; columns would only add noise."""
    return f"{position.file}:{position.line}"


def placed(
    document: Document[Any], section: str, chosen: Iterable[Item], key: str
) -> list[tuple[Item, str]]:
    """Return the chosen items of a list of the document, each with the place of its `key`."""
    wanted = {id(item) for item in chosen}
    return [
        (item, place(document.at(section, index, key)))
        for index, item in enumerate(getattr(document.model, section))
        if id(item) in wanted
    ]


def folded(items: Sequence[str], indent: int, taken: int = 0, shift: int = 0) -> str:
    """Return `a, b, c` for the inside of brackets, over several lines where it is long.

    `indent` is the column of the statement, `taken` how much of its first line is used already, and
    `shift` by how much the whole block is moved to the right afterwards.
    """
    line = ", ".join(items)
    width = WIDTH - shift
    if indent + taken + len(line) + 2 <= width:
        return line
    inner = " " * (indent + 4)
    lines = [inner]
    for item in items:
        if len(lines[-1]) > len(inner) and len(lines[-1]) + len(item) + 2 > width:
            lines[-1] = lines[-1].rstrip()
            lines.append(inner)
        lines[-1] += f"{item.rstrip(',')}, "
    lines[-1] = lines[-1].rstrip()
    return "\n" + "\n".join(lines) + "\n" + " " * indent


def conjunction(terms: Sequence[str], indent: int) -> str:
    """Return `a and b` for an `if` at column `indent`, in brackets over lines where it is long."""
    line = " and ".join(terms)
    if indent + len(line) + 4 <= WIDTH:
        return line
    inner = "\n" + " " * (indent + 4)
    return f"({inner}{f'{inner}and '.join(terms)}\n{' ' * indent})"


def module_and_name(impl: str) -> tuple[str, str]:
    """Split an implementation path `package.module:name`. Raises SourceError."""
    module, colon, name = impl.partition(":")
    if not colon:
        raise SourceError(f"{impl!r} is not an implementation path")
    return dotted(module), dotted(name)

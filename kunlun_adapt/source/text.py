"""What may enter generated text: checked identifiers, `repr()` of plain values, tame comments."""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from typing import Any

WIDTH = 96
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


class SourceError(ValueError):
    """Something that must not reach generated code."""


def identifier(text: str) -> str:
    """Return `text` if it is an ASCII Python identifier and no keyword. Raises SourceError."""
    if not _DOTTED.match(text) or "." in text or keyword.iskeyword(text):
        raise SourceError(f"{text!r} is not an identifier")
    return text


def dotted(text: str) -> str:
    """Return `text` if it is a dotted path of identifiers. Raises SourceError."""
    for part in text.split("."):
        identifier(part)
    return text


def literal(value: Any) -> str:
    """Return the `repr()` of a plain value. Raises SourceError for anything else."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(literal(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if value is None or isinstance(value, (bool, int, float, str)):
        if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
            return f"float({str(value)!r})"
        return repr(value) if not isinstance(value, str) else ascii(value)
    raise SourceError(f"{value!r} is not a plain value")


def literal_default(source: str | None) -> tuple[bool, Any]:
    """Tell whether an upstream default is a plain literal, and which."""
    if source is None:
        return False, None
    try:
        value = ast.literal_eval(source)
        literal(value)
    except (ValueError, SyntaxError, SourceError, MemoryError, RecursionError):
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


def module_and_name(impl: str) -> tuple[str, str]:
    """Split an implementation path `package.module:name`. Raises SourceError."""
    module, colon, name = impl.partition(":")
    if not colon:
        raise SourceError(f"{impl!r} is not an implementation path")
    return dotted(module), dotted(name)

"""Write the documents of an adopted plugin as YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "nan", "inf"])


class _Dumper(yaml.SafeDumper):
    """Writes every text that could be read as something else in quotes, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.Node:
    bare = bool(_BARE.match(value)) and value.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if bare else '"')


_Dumper.add_representer(str, _text)


def as_yaml(content: Mapping[str, Any], comment: str = "") -> str:
    """Return a document's text, with a comment of one or more lines before it."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    body = yaml.dump(
        dict(content),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
        default_flow_style=False,
    )
    return "\n".join([*lines, body]) if lines else str(body)


def as_stream(documents: list[Mapping[str, Any]], comment: str = "") -> str:
    """Return several documents in one text."""
    return "---\n".join(
        as_yaml(document, comment if index == 0 else "") for index, document in enumerate(documents)
    )

"""How findings spell YAML that a person can paste, and the nearest of several names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]*\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "~"}


def scalar(value: Any) -> str:
    """Return a value as flow YAML: plain where that is safe, else quoted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


def mapping(items: Mapping[str, Any]) -> str:
    """Return a flow mapping, `{a: 1, b: null}`."""
    return "{" + ", ".join(f"{scalar(k)}: {scalar(v)}" for k, v in items.items()) + "}"


def flow(value: Any) -> str:
    """Return a value as flow YAML, whatever is in it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return scalar(value)


def sequence(items: Iterable[Any]) -> str:
    """Return a flow sequence, `[a, b]`."""
    return "[" + ", ".join(scalar(i) for i in items) + "]"


def joined(names: Sequence[str]) -> str:
    """Return names in a sentence: 'a', 'b' and 'c'."""
    return listed([repr(name) for name in names])


def listed(items: Sequence[str]) -> str:
    """Return items in a sentence as they are: a, b and c."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if items[1:] else items)


def nearest(word: str, choices: Iterable[str], cutoff: float = 60) -> str | None:
    """Return the choice that is spelled most like `word`, or None where none comes close."""
    from rapidfuzz import process

    found = process.extractOne(word, sorted(choices), scorer=_likeness, score_cutoff=cutoff)
    return str(found[0]) if found else None


def near_ids(word: str, ids: Iterable[str], cutoff: float = 75) -> list[str]:
    """Return the few ids that are like a word, whole or in a part between slashes, best first."""
    from rapidfuzz import process

    found = process.extract(word, list(ids), scorer=_part_likeness, limit=3, score_cutoff=cutoff)
    return [str(match) for match, *_ in found]


def _part_likeness(word: str, id: str, **_: Any) -> float:
    return max(_likeness(word, part) for part in (id, *id.split("/")))


def _likeness(one: str, other: str, **_: Any) -> float:
    """How alike two names are, from 0 to 100: in letters, or in their words in any order."""
    from rapidfuzz import fuzz

    words = [re.sub(r"[_.:/-]", " ", name) for name in (one, other)]
    return max(
        fuzz.ratio(one, other), fuzz.token_sort_ratio(*words), 0.9 * fuzz.token_set_ratio(*words)
    )


def did_you_mean(word: str, choices: Iterable[str], cutoff: float = 60) -> str | None:
    """Return a question that names the nearest choice, or None."""
    found = nearest(word, choices, cutoff)
    return f"did you mean {found}?" if found else None

"""What a value of one release says otherwise than that of another, in few words."""

from __future__ import annotations

import ast
from collections import Counter

from kunlun_adapt.evolve.diff.naming import listed

SHORT = 120
"""Letters of a value that are shown whole."""
_BEFORE = 30
"""Letters that are shown before the first difference of two long values."""


def value_change(old: str | None, new: str | None) -> str:
    """Say how a value changed: of a collection what came and went, of others the two texts."""
    if old is None or new is None:
        return f"{_head(new or 'none')}, was {_head(old or 'none')}"
    try:
        trees = [ast.parse(text, mode="eval").body for text in (old, new)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        trees = []
    told = _collections(*trees) if trees else ""
    if told:
        return told
    start = _differ(old, new) if max(len(old), len(new)) > SHORT else 0
    return f"{_from(new, start)}, was {_from(old, start)}"


def _collections(old: ast.expr, new: ast.expr) -> str:
    """Say what two collections of one kind differ in; "" where they are none."""
    pair = _inside(old, new)
    if pair is None:
        return ""
    one, other = pair
    if isinstance(one, ast.Dict) and isinstance(other, ast.Dict):
        return _entries(one, other)
    if isinstance(one, (ast.List, ast.Tuple, ast.Set)) and type(one) is type(other):
        assert isinstance(other, (ast.List, ast.Tuple, ast.Set))
        before, after = ([ast.unparse(item) for item in side.elts] for side in (one, other))
        parts = _come_and_gone(before, after)
        common = [
            [*dict.fromkeys(text for text in side if text in rest)]
            for side, rest in ((before, after), (after, before))
        ]
        if not isinstance(one, ast.Set) and common[0] != common[1]:
            parts.append("another order")
        return "; ".join(parts)
    return ""


def _inside(old: ast.expr, new: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Go into calls, such as `frozenset({…})`, that differ in one argument by place only."""
    if not isinstance(old, ast.Call) or not isinstance(new, ast.Call):
        return old, new
    heads = [(ast.unparse(c.func), [ast.unparse(k) for k in c.keywords]) for c in (old, new)]
    if heads[0] != heads[1] or len(old.args) != len(new.args):
        return None
    pairs = [
        pair
        for pair in zip(old.args, new.args, strict=True)
        if ast.unparse(pair[0]) != ast.unparse(pair[1])
    ]
    return _inside(*pairs[0]) if len(pairs) == 1 else None


def _entries(old: ast.Dict, new: ast.Dict) -> str:
    before, after = _by_key(old), _by_key(new)
    parts = _come_and_gone(
        [f"{key}: {value}" for key, value in before.items() if key not in after],
        [f"{key}: {value}" for key, value in after.items() if key not in before],
    )
    changed = [key for key in after if key in before and after[key] != before[key]]
    told = [f"{key}: {value_change(before[key], after[key])}" for key in changed]
    parts += [listed(told)] if told else []
    return "; ".join(parts) or "another order"


def _by_key(of: ast.Dict) -> dict[str, str]:
    pairs = zip(of.keys, of.values, strict=True)
    return {
        ast.unparse(key) if key is not None else f"**{ast.unparse(value)}": ast.unparse(value)
        for key, value in pairs
    }


def _come_and_gone(old: list[str], new: list[str]) -> list[str]:
    come = [_head(text) for text in (Counter(new) - Counter(old)).elements()]
    gone = [_head(text) for text in (Counter(old) - Counter(new)).elements()]
    parts = [f"adds {listed(come)}"] if come else []
    return [*parts, f"no longer {listed(gone)}"] if gone else parts


def _differ(old: str, new: str) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(old), len(new)))


def _from(text: str, differs: int) -> str:
    """Return what stands around the place at which a text begins to differ."""
    start = max(0, differs - _BEFORE)
    return _head(text) if start == 0 else f"…{_head(text[start:])}"


def _head(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"

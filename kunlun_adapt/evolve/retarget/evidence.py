"""What speaks for one symbol being another: names, bodies, parameters, users and imports."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from kunlun_adapt.check.taken_for import LONG, SMALL
from kunlun_adapt.evolve.retarget.company import Company, Users, company
from kunlun_adapt.upstream import Suggestion, Symbol
from kunlun_adapt.upstream.body_text import BodyText, without_docstring
from kunlun_adapt.upstream.following import FollowingResolver
from kunlun_adapt.upstream.syntax import parse_span

Name = Literal["same name", "same name, other class", "other name"]
Body = Literal["same body", "similar body", "other body", "small body", "no body"]
Parameters = Literal["same parameters", "more parameters", "other parameters", "no parameters"]

SIMILAR = 0.6
GRAM = 4
CLEAR = 0.1
"""So much less alike the next candidate has to be."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What two symbols have in common; `alone` where nothing else has as much.

    What stood in the same place already in the older release (`fresh` is false) has not moved
    there: it is a copy, or something else of the same name.
    """

    name: Name
    body: Body
    parameters: Parameters
    company: Company = "nobody follows"
    alone: bool = True
    fresh: bool = True
    imported: bool = False
    """Upstream itself imported the one from the other's place before."""

    @property
    def key(self) -> str:
        """The kind of case: how often it was right is measured for each."""
        if self.imported:
            return "imported from there before"
        parts: list[str] = [self.name, self.body, self.parameters, self.company]
        parts += [] if self.fresh else ["there before"]
        return "; ".join(parts if self.alone else [*parts, "and others too"])

    @property
    def is_worth_a_look(self) -> bool:
        """Whether a person may find that it is what took the symbol's place."""
        follow = self.company == "users or neighbours follow"
        return self.name != "other name" or self.body in ("same body", "similar body") or follow

    @property
    def by_body_alone(self) -> bool:
        """Whether nothing but a body speaks for it, which is never enough."""
        return self.name == "other name" and not self.imported

    @property
    def by_name_alone(self) -> bool:
        """Whether a namesake has another body and no user that came along: no evidence at all."""
        return self.body == "other body" and self.company == "nobody follows" and not self.imported


@dataclass(frozen=True, slots=True)
class Candidate:
    """A symbol of the newer release that a symbol of the older one may be, and why."""

    symbol: Symbol
    evidence: Evidence
    likeness: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What is compared of a definition: how large its body is, and which runs of tokens it has."""

    nodes: int
    grams: Counter[tuple[str, ...]]


def shape_of(reader: FollowingResolver, path: str) -> Shape | None:
    """Return the shape of a function or class, None where its text cannot be had."""
    statement = _statement(reader, path)
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return None
    body = without_docstring(statement.body)
    tokens = _TOKEN.findall(BodyText().items(body))
    grams = Counter(tuple(tokens[i : i + GRAM]) for i in range(max(1, len(tokens) - GRAM + 1)))
    return Shape(sum(1 for part in body for _ in ast.walk(part)), grams)


def head_of(reader: FollowingResolver, path: str) -> list[str]:
    """Return what a class is made of and with: its decorators, its bases and their options."""
    statement = _statement(reader, path)
    if not isinstance(statement, ast.ClassDef):
        return []
    parts = (statement.decorator_list, statement.bases, statement.keywords)
    return [ast.unparse(node) for part in parts for node in part]


def _statement(reader: FollowingResolver, path: str) -> ast.stmt | None:
    text = reader.text(path)
    try:
        return None if text is None else parse_span(text)
    except (SyntaxError, ValueError):
        return None


def likeness(one: Shape | None, other: Shape | None) -> float:
    """Return how much of two bodies is the same, from 0 to 1."""
    if one is None or other is None:
        return 0.0
    shared = sum((one.grams & other.grams).values())
    return 2 * shared / (one.grams.total() + other.grams.total())


def candidates(
    old: FollowingResolver,
    symbol: Symbol,
    new: FollowingResolver,
    near: Iterable[Suggestion],
    users: Users,
) -> list[Candidate]:
    """Return what a symbol of the old release may be in the new one, the likeliest first."""
    own, who = shape_of(old, symbol.path), users.of(old, symbol)
    found: list[Candidate] = []
    for suggestion in near:
        other = new.resolve(suggestion.path)
        if not isinstance(other, Symbol) or not _alike_in_kind(symbol, other):
            continue
        theirs = shape_of(new, other.path)
        like = likeness(own, theirs)
        same = bool(symbol.fingerprint) and symbol.fingerprint == other.fingerprint
        body = _body(own, same, like)
        if own is None:
            # A short value is as many another one's too.
            body = "same body" if same and len(symbol.value or "") >= LONG else "no body"
        fresh = old.definition(other.resolved) is None
        follows = company(old, symbol, new, other, who)
        evidence = Evidence(
            _name(symbol, other), body, _parameters(symbol, other), follows, fresh=fresh
        )
        found.append(Candidate(other, evidence, 1.0 if same else like))
    found.sort(key=_rank, reverse=True)
    return [_placed(item, found) for item in found]


def _placed(item: Candidate, among: list[Candidate]) -> Candidate:
    others = [c for c in among if c.symbol.resolved != item.symbol.resolved]
    close = any(
        c.evidence.name == item.evidence.name
        and c.evidence.fresh == item.evidence.fresh
        and c.evidence.company == item.evidence.company
        and c.likeness > item.likeness - CLEAR
        for c in others
    )
    # Wherever its users went, what does exactly the same may be it too.
    close = close or (item.evidence.body == "similar body" and any(map(_is_a_new_copy, others)))
    return replace(item, evidence=replace(item.evidence, alone=False)) if close else item


def _is_a_new_copy(item: Candidate) -> bool:
    evidence = item.evidence
    return evidence.body == "same body" and evidence.fresh and evidence.name != "other name"


def _rank(item: Candidate) -> tuple[bool, bool, bool, float, str]:
    evidence = item.evidence
    follow = evidence.company == "users or neighbours follow"
    same = evidence.name == "same name"
    return (follow and same, evidence.fresh, same, item.likeness, item.symbol.path)


def _alike_in_kind(one: Symbol, other: Symbol) -> bool:
    """Tell whether both are called, both are classes or both are values."""
    return _sort(one) == _sort(other)


def _sort(symbol: Symbol) -> str:
    if symbol.kind in ("class", "constant", "attribute", "property", "module"):
        return "value" if symbol.kind in ("constant", "attribute") else symbol.kind
    return "called"


def _name(one: Symbol, other: Symbol) -> Name:
    if one.path.rpartition(".")[2] != other.path.rpartition(".")[2]:
        return "other name"
    owners = [s.qualname.rpartition(".")[0] for s in (one, other)]
    return "same name" if owners[0] == owners[1] else "same name, other class"


def _body(own: Shape | None, same: bool, like: float) -> Body:
    if own is None:
        return "same body" if same else "no body"
    if own.nodes < SMALL:
        return "small body"
    if same:
        return "same body"
    return "similar body" if like >= SIMILAR else "other body"


def _parameters(one: Symbol, other: Symbol) -> Parameters:
    if one.signature is None or other.signature is None:
        return "no parameters"
    mine, theirs = _named(one), _named(other)
    if mine == theirs:
        return "same parameters" if mine else "no parameters"
    return "more parameters" if set(mine) <= set(theirs) else "other parameters"


def _named(symbol: Symbol) -> tuple[str, ...]:
    assert symbol.signature is not None
    names = symbol.signature.names
    return names[1:] if symbol.kind in ("method", "classmethod", "property") else names

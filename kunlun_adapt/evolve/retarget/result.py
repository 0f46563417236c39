"""What `retarget` found and did: data for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kunlun_adapt.diagnostics import Position, ReleaseReport
from kunlun_adapt.evolve.retarget.rates import Rate

Outcome = Literal["held", "carried", "proposed", "left"]
"""Nothing to do; done; to be decided by a person who is shown the edit; for a person to find."""


@dataclass(frozen=True, slots=True)
class Account:
    """One binding, or key of the interface, and what the new release asks of it.

    `entry` is the YAML entry as it is for the new release, `values` what is new in it, `range` the
    releases for which it then holds. `review` says what to look at although nothing fell short.
    """

    binding: str
    outcome: Outcome
    position: Position
    codes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    entry: Mapping[str, Any] = field(default_factory=dict)
    range: str | None = None
    review: tuple[str, ...] = ()
    upstream: str | None = None
    added: Mapping[str, Any] = field(default_factory=dict)
    """What a list gets beside: an exclusion, what an entry needs to be spelled, or a repair."""
    between: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Further entries for releases on the way: the range of each, and its values."""
    taken: bool = False
    """Whether the edit is made: certain, or accepted."""

    @property
    def plain(self) -> bool:
        """Whether a longer range is all that there is to it."""
        return not self.values and not self.added and not self.says

    @property
    def confidence(self) -> float | None:
        """The rate that may be counted on of the least sure of its parts, None for a fact."""
        return min((rate.low for rate in self.rates), default=None)

    def to_json(self) -> dict[str, Any]:
        low = self.confidence
        return {
            "binding": self.binding,
            "outcome": self.outcome,
            "codes": list(self.codes),
            "says": list(self.says),
            "evidence": list(self.evidence),
            "confidence": None if low is None else round(low, 3),
            "rates": [{"kind": r.kind, "right": r.right, "wrong": r.wrong} for r in self.rates],
            "range": self.range,
            "values": dict(self.values),
            "entry": dict(self.entry),
            "added": dict(self.added),
            "between": [{"range": text, "values": dict(v)} for text, v in self.between],
            "review": list(self.review),
            "taken": self.taken,
            "file": self.position.file,
            "line": self.position.line,
            "upstream": self.upstream,
        }


@dataclass(frozen=True, slots=True)
class Retargeted:
    """The whole run: `texts` are the workspace's files as they are to be."""

    release: str
    start: str
    through: tuple[str, ...]
    accounts: tuple[Account, ...]
    texts: Mapping[str, str]
    patch: str
    before: tuple[ReleaseReport, ...]
    after: tuple[ReleaseReport, ...]
    claim: tuple[str, str]
    """The releases that the map claimed, and those that it claims now."""

    def of(self, outcome: Outcome) -> tuple[Account, ...]:
        return tuple(a for a in self.accounts if a.outcome == outcome)

    @property
    def counts(self) -> dict[str, int]:
        kinds: tuple[Outcome, ...] = ("held", "carried", "proposed", "left")
        return {kind: len(self.of(kind)) for kind in kinds}

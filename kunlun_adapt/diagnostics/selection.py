"""Which findings a run asks for, by codes or what codes begin with (`KA1` for all KA1xx)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kunlun_adapt.diagnostics.codes import CODES
from kunlun_adapt.diagnostics.report import ReleaseReport

BLOCKING = frozenset({"KA001", "KA002", "KA003", "KA006", "KA009", "KA205"})
"""What keeps other rules from being run: left out, a run would call fine what nobody looked at."""

_SELECTOR = re.compile(r"KA[0-9]{1,3}\Z")


class UnknownCode(ValueError):
    """A selector that stands for no code, or, as `KA` does, for every code."""

    def __init__(self, selector: str) -> None:
        super().__init__(selector)
        self.selector = selector


@dataclass(frozen=True, slots=True)
class Selection:
    """The selectors that were given; none in `select` means every code."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @classmethod
    def of(cls, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Selection:
        """Read selectors, each one or several with commas between. Raises UnknownCode."""
        return cls(_selectors(select), _selectors(ignore))

    def keeps(self, code: str) -> bool:
        """Tell whether findings of a code are asked for: the longer selector wins, then `ignore`.

        What keeps other rules from being run is only left out where `ignore` says so.
        """
        wanted = max((len(s) for s in self.select if code.startswith(s)), default=-1)
        if not self.select or code in BLOCKING:
            wanted = max(wanted, 0)
        return wanted > self._dropped(code)

    def ignores(self, code: str) -> bool:
        """Tell whether a code is left out because `ignore` says so, and not only unasked for."""
        return not self.keeps(code) and self._dropped(code) >= 0

    def _dropped(self, code: str) -> int:
        return max((len(s) for s in self.ignore if code.startswith(s)), default=-1)

    def of_report(self, report: ReleaseReport) -> ReleaseReport:
        """Return the report with only the findings that are asked for."""
        kept = tuple(f for f in report.findings if self.keeps(f.code))
        return replace(report, findings=kept)


def _selectors(texts: Iterable[str]) -> tuple[str, ...]:
    found = [part.strip() for text in texts for part in text.split(",")]
    selectors = []
    for part in found:
        selector = part.upper()
        if not _SELECTOR.match(selector) or not any(c.startswith(selector) for c in CODES):
            raise UnknownCode(part)
        selectors.append(selector)
    return tuple(dict.fromkeys(selectors))

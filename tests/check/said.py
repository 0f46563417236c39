"""What findings say, in the few words that tests compare."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.diagnostics import Finding


def codes(findings: Iterable[Finding]) -> list[str]:
    return [f.code for f in findings]


def only(findings: Iterable[Finding], code: str) -> Finding:
    """Return the one finding that there is, which has this code."""
    listed = list(findings)
    assert [f.code for f in listed] == [code], [(f.code, f.message) for f in listed]
    return listed[0]

"""Findings, their codes and how they are printed: the ground floor."""

from kunlun_adapt.diagnostics.codes import CODES, Code
from kunlun_adapt.diagnostics.finding import (
    AdaptError,
    Finding,
    Position,
    UpstreamPosition,
)
from kunlun_adapt.diagnostics.mend import Change, EntryChange, ItemChange, Mend
from kunlun_adapt.diagnostics.report import (
    ReleaseReport,
    render_github,
    render_json,
    render_text,
    worst,
)
from kunlun_adapt.diagnostics.severity import Severity

__all__ = [
    "CODES",
    "AdaptError",
    "Change",
    "Code",
    "EntryChange",
    "Finding",
    "ItemChange",
    "Mend",
    "Position",
    "ReleaseReport",
    "Severity",
    "UpstreamPosition",
    "render_github",
    "render_json",
    "render_text",
    "worst",
]

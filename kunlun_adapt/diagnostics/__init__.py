"""Findings, their codes and how they are printed: the ground floor."""

from .codes import CODES, Code
from .finding import AdaptError, Finding, Position, Severity, UpstreamPosition
from .report import ReleaseReport, render_github, render_json, render_text, worst

__all__ = [
    "CODES",
    "AdaptError",
    "Code",
    "Finding",
    "Position",
    "ReleaseReport",
    "Severity",
    "UpstreamPosition",
    "render_github",
    "render_json",
    "render_text",
    "worst",
]

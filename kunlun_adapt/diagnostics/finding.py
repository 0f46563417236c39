"""What a check reports: one finding, with both ends named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import total_ordering


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a document: `line` and `column` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class UpstreamPosition:
    """A place in a SGLang release: `file` is relative to the folder that holds `sglang/`."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@total_ordering
class Severity(Enum):
    """How bad a finding is; the order is info < warning < error."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return ("info", "warning", "error").index(self.value)

    def __lt__(self, other: Severity) -> bool:
        return self.rank < other.rank


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that falls short: what, where in the YAML, where upstream, and how to mend it."""

    code: str
    severity: Severity
    message: str
    position: Position
    binding: str | None = None
    target: str | None = None
    upstream: UpstreamPosition | None = None
    suggestion: str | None = None

    @property
    def sort_key(self) -> tuple[Position, str, str]:
        return (self.position, self.code, self.message)

    def with_severity(self, severity: Severity) -> Finding:
        return replace(self, severity=severity)

    def to_json(self) -> dict[str, object]:
        """Return the finding in the JSON shape that `validate --format json` publishes."""
        upstream = (
            None
            if self.upstream is None
            else {"file": self.upstream.file, "line": self.upstream.line}
        )
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "binding": self.binding,
            "target": self.target,
            "file": self.position.file,
            "line": self.position.line,
            "column": self.position.column,
            "upstream": upstream,
            "suggestion": self.suggestion,
        }


class AdaptError(Exception):
    """The job could not be done (exit code 2): a message and what to do next."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

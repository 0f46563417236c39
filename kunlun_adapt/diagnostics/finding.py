"""What a check reports: one finding, with both ends named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from kunlun_adapt.diagnostics.codes import CODES
from kunlun_adapt.diagnostics.mend import Mend
from kunlun_adapt.diagnostics.severity import Severity

DECIDES = "KA205"
"""The code that says that nothing can be bound in a release: it comes before all others."""


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


class Line(Protocol):
    """Whatever knows its upstream file and line."""

    @property
    def file(self) -> str: ...

    @property
    def line(self) -> int: ...


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
    mend: Mend | None = field(default=None, compare=False, repr=False)
    """The edit that the suggestion tells, where it can be carried out."""

    @property
    def sort_key(self) -> tuple[bool, Position, str, str]:
        return (self.code != DECIDES, self.position, self.code, self.message)

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        position: Position,
        *,
        binding: str | None = None,
        target: str | None = None,
        upstream: Line | None = None,
        suggestion: Mend | str | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Make a finding with its code's own severity unless another is given."""
        return cls(
            code=code,
            severity=severity or CODES[code].severity,
            message=message,
            position=position,
            binding=binding,
            target=target,
            upstream=UpstreamPosition(upstream.file, upstream.line) if upstream else None,
            suggestion=suggestion.text if isinstance(suggestion, Mend) else suggestion,
            mend=suggestion if isinstance(suggestion, Mend) else None,
        )

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

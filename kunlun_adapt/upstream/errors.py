"""The errors of this package, each with what the user can do about it."""

from __future__ import annotations


class ReleaseError(Exception):
    """A release cannot be had or cannot be read; `hint` says what to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NoPackageError(ReleaseError):
    """A commit, folder or archive holds no SGLang at all."""


class NoVersionError(ReleaseError):
    """Nothing says which version a commit, folder or archive has."""


class LockError(Exception):
    """A lock file cannot be read; the message starts with `file:line`."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file = file
        self.line = line
        self.message = message

"""Which SGLang is installed here, and what it cannot do that others can."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version


def release() -> str:
    """The SGLang that is installed here."""
    try:
        return version("sglang")
    except PackageNotFoundError:
        return "none"


def before(other: str) -> bool:
    """Tell whether an older SGLang than this one is installed."""
    here = release()
    return here != "none" and Version(here) < Version(other)

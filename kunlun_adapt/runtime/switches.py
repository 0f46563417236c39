"""What the user may switch on while looking for a fault, by the environment."""

from __future__ import annotations

from kunlun_adapt.runtime.probe import switched_on

DEBUG = "KUNLUN_ADAPT_DEBUG"
NO_FALLBACK = "KUNLUN_ADAPT_NO_FALLBACK"


def debug() -> bool:
    """Tell whether each binding's first call is logged. Raises AdaptError where it is unclear."""
    return switched_on(DEBUG, "logs the first call of each binding")


def no_fallback() -> bool:
    """Tell whether a fallback is an error. Raises AdaptError where it is unclear."""
    return switched_on(NO_FALLBACK, "makes a call that falls back an error")


def check_switches() -> None:
    """Raise AdaptError for a switch that says neither yes nor no, before anything asks it."""
    debug()
    no_fallback()

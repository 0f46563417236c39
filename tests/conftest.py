"""Decides which tests can run here; `--require` turns what cannot into a failure."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import PackageNotFoundError, version

import pytest
from hypothesis import settings

# A deadline per example is a timing assertion, and fails on a machine that is busy.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# marker → the modules without which its tests cannot run.
NEEDS = {"torch": ("torch",), "server": ("torch", "sglang"), "upstream": ()}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        default="",
        metavar="MARKERS",
        help="comma-separated markers whose tests must run: one that cannot fails the run",
    )


def pytest_configure(config: pytest.Config) -> None:
    required = {name for name in config.getoption("--require").split(",") if name}
    unknown = required - NEEDS.keys()
    if unknown:
        raise pytest.UsageError(f"--require knows {', '.join(NEEDS)}, not {', '.join(unknown)}")
    for marker in sorted(required):
        absent = _absent(marker)
        if absent:
            raise pytest.UsageError(f"--require {marker}: {', '.join(absent)} not installed here")
    _check_release()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker in NEEDS:
        absent = _absent(marker)
        if not absent:
            continue
        skip = pytest.mark.skip(reason=f"needs {', '.join(absent)}; make test runs it")
        for item in items:
            if marker in item.keywords:
                item.add_marker(skip)


def _absent(marker: str) -> list[str]:
    return [module for module in NEEDS[marker] if importlib.util.find_spec(module) is None]


def _check_release() -> None:
    """Refuse to test another release than the one asked for: a matrix must not test one twice."""
    wanted = os.environ.get("KUNLUN_ADAPT_TEST_SGLANG")
    if not wanted:
        return
    try:
        found = version("sglang")
    except PackageNotFoundError:
        found = "none"
    if found != wanted:
        raise pytest.UsageError(f"KUNLUN_ADAPT_TEST_SGLANG={wanted}, but SGLang here is {found}")

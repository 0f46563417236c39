"""Real releases for the tests of the rules: opened once, and read where a finding points."""

from __future__ import annotations

from functools import lru_cache

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Resolver, open_release

OPEN = 8
"""Releases that are kept open; with its index each takes some 50 MB."""


@lru_cache(maxsize=OPEN)
def facts(version: str) -> Resolver:
    return Resolver(open_release(version))


def upstream_line(version: str, found: Finding) -> str:
    """Return the line of the release that a finding points at."""
    assert found.upstream is not None, found.message
    source = facts(version).release.read(found.upstream.file)
    assert source is not None, found.upstream.file
    return source.decode().split("\n")[found.upstream.line - 1].strip()


def yaml_at(text: str, found: Finding) -> str:
    """Return what stands in a document from the place of a finding to the end of its line."""
    return text.split("\n")[found.position.line - 1][found.position.column - 1 :]

"""Which files of a source tree get into the package that is made of it.

Upstream keeps what builds its kernels below `sglang/` and leaves it out of its wheels: a symbol
there is none of the release's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from kunlun_adapt.upstream.stores import PACKAGE

PROJECT = "pyproject.toml"


def project_data(text: str) -> dict[str, Any]:
    """The tables of a `pyproject.toml`. Raises ValueError or, for deep nesting, RecursionError."""
    # Not at the top: a process that serves opens the installed release, and needs none of it.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    data: dict[str, Any] = tomllib.loads(text)
    return data


def left_out(project: bytes | None) -> Callable[[str], bool]:
    """What tells of a file's path whether a `pyproject.toml` leaves its package out.

    These are the packages that `tool.setuptools.packages.find` excludes; without a file, or with
    one that cannot be read, there are none.
    """
    patterns = [p for p in _excluded(project or b"") if p.startswith(f"{PACKAGE}.")]

    @cache
    def out(folder: str) -> bool:
        return any(fnmatchcase(folder.replace("/", "."), pattern) for pattern in patterns)

    return lambda path: bool(patterns) and out(path.rpartition("/")[0])


def _excluded(project: bytes) -> list[str]:
    try:
        data: Any = project_data(project.decode("utf-8"))
    except (ValueError, RecursionError):
        return []
    for key in ("tool", "setuptools", "packages", "find", "exclude"):
        data = data.get(key) if isinstance(data, dict) else None
    return [item for item in data if isinstance(item, str)] if isinstance(data, list) else []

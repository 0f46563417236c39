"""The generated modules, importable as `kunlun_adapt_generated.*` in this process.

The loader hands out the very text that `kunlun-adapt render` prints, to the compiler as well as to
tracebacks, which therefore show the reviewed line.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import linecache
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType

PACKAGE = "kunlun_adapt_generated"


class GeneratedLoader(importlib.abc.InspectLoader):
    """Loads one generated module from its text."""

    def __init__(self, text: str | None, origin: str) -> None:
        self._text = text
        self._origin = origin

    def is_package(self, fullname: str) -> bool:
        return self._text is None

    def get_source(self, fullname: str) -> str:
        return self._text or ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), self._origin, "exec", dont_inherit=True)


class GeneratedFinder(importlib.abc.MetaPathFinder):
    """Finds the generated modules of one release and profile."""

    def __init__(self, modules: Mapping[str, str], label: str) -> None:
        self.modules = dict(modules)
        self.label = label

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != PACKAGE and not fullname.startswith(f"{PACKAGE}."):
            return None
        name = fullname[len(PACKAGE) + 1 :].replace(".", "/")
        is_package = name in ("", "operators")
        text = self.modules.get(name)
        if text is None and not is_package:
            return None
        origin = self.origin(name)
        loader = GeneratedLoader(text, origin)
        return importlib.machinery.ModuleSpec(
            fullname, loader, origin=origin, is_package=is_package
        )

    def origin(self, name: str) -> str:
        """Return the file name that tracebacks show.

        No file can have it, and it must not end in `>`: Python asks a loader for the lines of a
        file that is not there, but never for those of `<…>`.
        """
        return f"<kunlun-adapt {self.label}>/{name or '__init__'}.py"


def publish(modules: Mapping[str, str], label: str) -> None:
    """Make the generated modules importable; a second call with other text replaces the first."""
    for finder in [f for f in sys.meta_path if isinstance(f, GeneratedFinder)]:
        sys.meta_path.remove(finder)
        for name in finder.modules:
            linecache.cache.pop(finder.origin(name), None)
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, GeneratedFinder(modules, label))

"""The generated modules, importable as `kunlun_adapt_generated.*` in this process.

The loader hands out the very text that `kunlun-adapt render` prints, to the compiler as well as to
`linecache`, so that a traceback shows the reviewed line.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType

PACKAGE = "kunlun_adapt_generated"


class GeneratedLoader(importlib.abc.InspectLoader):
    """Loads one generated module from its text."""

    def __init__(self, finder: GeneratedFinder, text: str | None, name: str) -> None:
        self._finder = finder
        self._text = text
        self._name = name

    def is_package(self, fullname: str) -> bool:
        return self._text is None

    def get_source(self, fullname: str) -> str:
        return self._text or ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), self._name, "exec", dont_inherit=True)


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
        origin = f"<kunlun-adapt {self.label}: {name or 'package'}>"
        loader = GeneratedLoader(self, text, origin)
        return importlib.machinery.ModuleSpec(
            fullname, loader, origin=origin, is_package=is_package
        )


def publish(modules: Mapping[str, str], label: str) -> None:
    """Make the generated modules importable; a second call with other text replaces the first."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, GeneratedFinder)]
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, GeneratedFinder(modules, label))

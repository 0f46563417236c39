"""The base of stand-ins: a module that refuses, by name, each thing that it does not provide.

A stand-in is a module of ours that the map's `shims` puts in the place of a package. What it
defines, it provides; a stand-in that is a folder provides its submodules too, and each of them is a
stand-in of its own::

    # kunlun_adapt/shims/deep_gemm/__init__.py
    from kunlun_adapt.shims.standin import stand_in

    __getattr__ = stand_in("deep_gemm", __name__)

    def get_num_sms() -> int: ...

Anything else is an ordinary miss for who asks (`hasattr` is False, `except ImportError` works), and
the message says what is missing and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import NoReturn


class NotProvided(ModuleNotFoundError):
    """An import of something that a stand-in does not provide; `name` is the package's."""


def stand_in(package: str, module: str) -> Callable[[str], NoReturn]:
    """Make the module named `module` the stand-in for `package`; return its `__getattr__`.

    It takes effect where `sys.modules` holds that module under the name of the package, so a real
    package that is there is never touched.
    """
    standing = sys.modules[module]
    if not hasattr(standing, "__path__"):
        # Without a path Python would say that it "is not a package", and ask no finder.
        standing.__path__ = []
    # `from package import name` looks for a submodule by the name that the module itself bears.
    _FINDER.standing[package] = _FINDER.standing[module] = (package, standing)

    def missing(name: str) -> NoReturn:
        # A missing dunder is how Python and inspect probe a module; it stays an ordinary miss.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        raise AttributeError(_refusal(package, standing, name), name=name, obj=standing)

    return missing


def _refusal(package: str, standing: ModuleType, name: str) -> str:
    return (
        f"{package}.{name} is not provided on this platform ({standing.__name__} stands in for "
        f"{package}); bind it in an operator recipe (operator_recipes/), by the upstream function "
        "that calls it, or let the stand-in provide it"
    )


class _Finder(MetaPathFinder):
    """Answers for what lies below a stand-in: its own submodules, and by name for all else.

    Python turns the AttributeError of `from package import name` into a sentence of its own, but
    asks the finders first, as `name` could be a submodule.
    """

    def __init__(self) -> None:
        self.standing: dict[str, tuple[str, ModuleType]] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        package, standing = self.standing.get(parent, ("", None))
        if standing is None or sys.modules.get(parent) is not standing:
            return None
        own = PathFinder.find_spec(fullname, path)
        if own is not None or name.startswith("__"):
            return own
        # Python takes an error that bears the full name for "no such submodule", and drops it.
        raise NotProvided(_refusal(package, standing, name), name=package.partition(".")[0])


_FINDER = _Finder()
sys.meta_path.insert(0, _FINDER)

"""What the stand-in's other modules share: its name, its error, and callables that refuse."""

from __future__ import annotations

from typing import Any, NoReturn

STANDIN = "kunlun_adapt simulator stand-in for torchvision"
__simulator__ = True


class StandinError(RuntimeError):
    """Raised when something that only the real torchvision can do was asked for."""


class Refused:
    """A callable that may be imported and held, and raises with its name when called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = name
        self.__simulator__ = True

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise StandinError(
            f"{STANDIN}: {self.__name__} was called, but no working torchvision is installed on "
            "this host. Install one that matches the installed torch to serve images."
        )


def refused_class(name: str) -> type:
    """Make a class that may be subclassed and named in isinstance checks, but not built."""

    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        Refused(f"{name}.__init__")()

    return type(name.rpartition(".")[2], (), {"__init__": __init__, "__simulator__": True})


def missing(module: str, name: str) -> AttributeError:
    """Build the error for a name that the stand-in does not have."""
    return AttributeError(f"{STANDIN}: module {module!r} has no attribute {name!r}", name=name)

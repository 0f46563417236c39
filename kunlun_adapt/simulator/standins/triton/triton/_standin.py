"""What the stand-in's other modules share: its name, its error, and mere names."""

from __future__ import annotations

from typing import Any, NoReturn

STANDIN = "kunlun_adapt simulator stand-in for triton"
__simulator__ = True


class StandinError(RuntimeError):
    """Raised when something that only the real Triton can do was asked for."""


def refuse(what: str) -> NoReturn:
    """Raise the error that names what was asked for, the stand-in, and the way out."""
    raise StandinError(
        f"{STANDIN}: {what} was called, but no Triton is installed on this host. "
        "Bind the function that launches it in an operator recipe, "
        "or install the real triton package."
    )


class Placeholder:
    """A name that may be imported, decorated with and compared, but not called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = name
        self.__simulator__ = True

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self.__name__)

    def __repr__(self) -> str:
        return f"<{self.__name__} of the {STANDIN}>"


def missing(module: str, name: str) -> AttributeError:
    """Build the error for a name that the stand-in does not have."""
    return AttributeError(f"{STANDIN}: module {module!r} has no attribute {name!r}", name=name)

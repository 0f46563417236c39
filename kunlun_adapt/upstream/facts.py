"""The one question that the rest of the package asks about a release."""

from __future__ import annotations

from typing import Protocol

from kunlun_adapt.upstream.symbols import Missing, Symbol


class Facts(Protocol):
    """What is known about one release, read from its files or from the lock."""

    @property
    def version(self) -> str:
        """The release's version."""
        ...

    def resolve(self, path: str) -> Symbol | Missing:
        """Follow a dotted path to its definition, or say why there is none."""
        ...

    def members(self, class_path: str) -> dict[str, Symbol]:
        """The methods and attributes of a class by name, inherited ones included."""
        ...

"""One thing that a release offers by name, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kunlun_adapt.upstream.symbols import Location


@dataclass(frozen=True, slots=True)
class Item:
    """A named thing: what it is (a type, a class), its default, its values, and where it stands.

    `places` are further lines, for what stands in several.
    """

    text: str = ""
    default: str | None = None
    choices: tuple[str, ...] | None = None
    location: Location | None = None
    places: tuple[str, ...] = ()


Table = dict[str, Item]


def row_of(item: Item) -> list[Any]:
    """The item as plain values."""
    at = None if item.location is None else [item.location.file, item.location.line]
    return [item.text, item.default, item.choices, at, item.places]


def item_of(row: list[Any]) -> Item:
    """The item that a row was made from."""
    text, default, choices, at, places = row
    return Item(
        text,
        default,
        None if choices is None else tuple(choices),
        None if at is None else Location(*at),
        tuple(places),
    )

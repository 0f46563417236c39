"""The model classes of a package that the plugin registers as a whole."""

from __future__ import annotations

from kunlun_adapt.evolve.adopt.reading import Reading
from kunlun_adapt.evolve.adopt.values import ClassValue, ListValue, Value

ENTRY = "EntryClass"
"""The name under which a module offers its model classes, by upstream's convention."""


def model_classes(reading: Reading, package: str) -> list[tuple[str, str]]:
    """Return (architecture, class path) of every model class that a package's modules offer."""
    found: list[tuple[str, str]] = []
    for name in reading.sources.modules:
        scope = reading.reader.scopes.get(name)
        if scope is None or not (name == package or name.startswith(f"{package}.")):
            continue
        for value in _listed(scope.names.get(ENTRY)):
            if isinstance(value, ClassValue) and value.path is not None:
                found.append((value.node.name, value.path))
    return found


def _listed(value: Value | None) -> list[Value]:
    if isinstance(value, ListValue):
        return value.items
    return [] if value is None else [value]

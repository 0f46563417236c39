"""Read a whole plugin: from its entry points, through all its modules, to what nothing calls."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from kunlun_adapt.evolve.adopt import frames
from kunlun_adapt.evolve.adopt.events import Event, Place
from kunlun_adapt.evolve.adopt.frames import Frame, TooLong
from kunlun_adapt.evolve.adopt.left import Left
from kunlun_adapt.evolve.adopt.project import PLATFORMS, EntryPoint
from kunlun_adapt.evolve.adopt.registries import (
    ADDS,
    called_behind,
    hides_its_table,
    registry_of,
)
from kunlun_adapt.evolve.adopt.sources import Sources
from kunlun_adapt.evolve.adopt.statements import Statements
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    Function,
    Instance,
    Scope,
    Unknown,
    Value,
    Wrapped,
    text_of,
)
from kunlun_adapt.upstream import Missing, Resolver, Symbol


@dataclass(frozen=True, slots=True)
class Reading:
    """What a plugin does, and its classes; `reader` evaluates more of it on demand."""

    sources: Sources
    events: tuple[Event, ...]
    classes: tuple[ClassValue, ...]
    left: tuple[Left, ...]
    reader: Reader


class Reader(Statements):
    """Runs modules once each, as imports do."""

    def __init__(self, sources: Sources, resolver: Resolver) -> None:
        super().__init__(sources)
        self._resolver = resolver
        self._begun: set[str] = set()
        self._fills: dict[str, bool] = {}

    def run_module(self, name: str) -> None:
        """Read a module's statements, unless that has begun already."""
        module = self.sources.modules.get(name)
        if name in self._begun or module is None:
            return
        self._begun.add(name)
        scope = Scope(name, "")
        scope.names["__name__"] = Const(name)
        scope.names["__package__"] = Const(module.package)
        scope.names["__file__"] = Unknown("a path")
        if module.is_package:
            scope.names["__path__"] = self.package_path(name)
        self.scopes[name] = scope
        # What imports it has no say in what it does; only whether it is imported at all.
        frames, self.frames = self.frames, [Frame()]
        try:
            self.block(module.tree.body, scope)
        except (TooLong, RecursionError):
            what = "is too much to follow; what comes later in it is not read"
            self.left.append(Left("file", module.file, 1, what))
            self.fresh()
        finally:
            self.frames = frames

    def fills(self, name: str) -> bool:
        adds = name.rpartition(".")[2].startswith(ADDS)
        if not (self.called or adds) or "()" in name:
            return False
        if name not in self._fills:
            self._fills[name] = registry_of(name, self._resolver, 0) is not None
        return self._fills[name]

    def behind(self, name: str) -> str:
        return name if "()" in name else called_behind(name, self._resolver)

    def hides_what_it_fills(self, name: str) -> bool:
        return "()" not in name and hides_its_table(name, self._resolver)

    def is_missing(self, name: str) -> bool:
        return "()" not in name and isinstance(self._resolver.resolve(name), Missing)

    def is_object(self, name: str) -> bool:
        found = self._resolver.resolve(name) if name.startswith("sglang.") else None
        return isinstance(found, Symbol) and found.kind not in ("constant", "attribute", "external")

    def upstream_fact(self, name: str, attribute: str) -> Value:
        """Return `__module__`, `__qualname__` or `__name__` of an object of upstream's."""
        found = self._resolver.resolve(name)
        if not isinstance(found, Symbol):
            leaf = Const(name.rpartition(".")[2])
            return leaf if attribute == "__name__" else Unknown(f"{attribute} of {name}", True)
        if found.kind == "module":
            return Const(found.path)
        if attribute == "__module__":
            return Const(found.module)
        return Const(found.qualname if attribute == "__qualname__" else found.name)

    def start(self, entry: EntryPoint) -> None:
        """Do what SGLang does with an entry point: import the module, call the function."""
        self.run_module(entry.module)
        found = self.imported(entry.module)
        for part in entry.attribute.split(".") if entry.attribute else ():
            found = self.attribute(found, part)
        self.probing = entry.group == PLATFORMS
        if isinstance(found, Function):
            self.guarded(found, [])
        elif isinstance(found, (ClassValue, Instance, Wrapped)):
            module = self.sources.modules[entry.module]
            self.call(found, [], module.tree, self.scopes[entry.module])
        self.probing = False

    def guarded(self, function: Function, args: list[Value]) -> Value:
        """Follow a function as far as is worth it."""
        self.fresh()
        try:
            return self.follow(function, args, {})
        except (TooLong, RecursionError):
            place = self.place(function.scope, function.node)
            what = f"{function.label} is too much to follow; what it does later is not read"
            self.left.append(Left("file", place.file, place.line, what))
            self.frames = [Frame()]
            self.fresh()
            return Unknown("too much to follow")


def read_plugin(sources: Sources, resolver: Resolver) -> Reading:
    """Read everything that a plugin does to upstream. Nothing of it is imported."""
    reader = Reader(sources, resolver)
    reader.left += sources.left
    starts = [e for e in sources.project.entry_points if e.module in sources.modules]
    for entry in sources.project.entry_points:
        if entry not in starts:
            what = f"the entry point {entry.name} names {entry.module}, which is not here"
            reader.left.append(Left("file", entry.file, 1, what))
    for entry in starts:
        reader.start(entry)
    for name in sources.modules:
        reader.run_module(name)
    reader.called = not starts  # without an entry point anything may be what starts it
    reader.sweeping = True
    _uncalled(reader)
    reader.sweeping = False
    reader.settle()
    classes = tuple(c for c in reader.classes if isinstance(c, ClassValue))
    return Reading(sources, tuple(reader.events), classes, tuple(reader.left), reader)


def _uncalled(reader: Reader) -> None:
    """Read the functions that nothing has called yet, with arguments that nobody knows."""
    index = 0
    while index < len(reader.defined):  # reading one may define others
        if reader.steps_in_all > frames.MOST_IN_ALL:
            rest = len(reader.defined) - index
            file = next(iter(reader.sources.modules.values())).file
            what = f"the plugin is too large: {rest} functions that nothing calls are not read"
            reader.left.append(Left("file", file, 1, what))
            return
        function = reader.defined[index]
        index += 1
        if isinstance(function, Function) and id(function.node) not in reader.seen:
            reader.frames = [Frame()]
            reader.guarded(function, _unknown(function))


def _unknown(function: Function) -> list[Value]:
    parameters = function.node.args
    ordered = [*parameters.posonlyargs, *parameters.args]
    return [Unknown(f"the parameter {p.arg}") for p in ordered]


def class_path(reading: Reading) -> list[tuple[str, Place]]:
    """Return what the platform entry points say that the platform class is."""
    found = []
    for entry in reading.sources.project.entry_points:
        scope = reading.reader.scopes.get(entry.module)
        function = scope.names.get(entry.attribute) if scope is not None else None
        if entry.group == PLATFORMS and isinstance(function, Function):
            text = text_of(reading.reader.guarded(function, []))
            place = reading.reader.place(function.scope, function.node)
            if text is not None:
                found.append((text.replace(":", "."), place))
    return found


def probe_of(reading: Reading) -> str | None:
    """Return the module that the platform's entry point looks for before it says yes."""
    for name in reading.reader.probed:
        outside = name.partition(".")[0] not in ("sglang", "torch", *sys.stdlib_module_names)
        if outside and not reading.reader.is_plugin(name):
            return name
    return None

"""What a plugin's own platform class says, as the parts of a Platform Map."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kunlun_adapt.documents import PlatformMap
from kunlun_adapt.evolve.adopt.events import Place
from kunlun_adapt.evolve.adopt.left import Left
from kunlun_adapt.evolve.adopt.making import Taken
from kunlun_adapt.evolve.adopt.names import identifier, implementation, slug
from kunlun_adapt.evolve.adopt.reading import Reading, class_path, probe_of
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    External,
    Function,
    Made,
    Unknown,
    Value,
    Wrapped,
    plain,
    text_of,
)
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, spelled
from kunlun_adapt.upstream import Resolver, Symbol

_TEXTS = {
    "device.reports_as": "reports_as",
    "device.dispatch_key": "dispatch_key",
    "device.distributed_backend": "distributed_backend",
}
_KIND = "device.kind"
_NAME = "device.name"
_INHERITED = {"reports_as": "cpu", "dispatch_key": "native", "distributed_backend": "gloo"}
"""What upstream's platform answers where a class says nothing."""


@dataclass(slots=True)
class PlatformParts:
    """The sections of the map that the platform class gives."""

    name: str
    device: dict[str, Any]
    factories: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, bool] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    base: str | None = None
    none_meant: bool = False
    """Whether the plugin has no platform class, and no entry point that would lead to one."""


def platform_parts(reading: Reading, resolver: Resolver, shipped: PlatformMap) -> PlatformParts:
    """Return what the map says of the device; `shipped` knows how upstream spells each key."""
    return _Platform(reading, resolver, shipped).parts()


class _Platform:
    def __init__(self, reading: Reading, resolver: Resolver, shipped: PlatformMap) -> None:
        self._reading = reading
        self._resolver = resolver
        self._shipped = shipped
        spelling = spelled(shipped, PLATFORM, resolver.version, True)
        self._upstream = spelling.call if spelling is not None and spelling.call else ""
        self._keys = self._spelled_keys()
        self._made: PlatformParts | None = None

    def parts(self) -> PlatformParts:
        cls, others = self._classes()
        entries = self._reading.sources.project.entry_points
        named = next((e.name for e in entries if e.group.endswith("platforms")), "")
        named = named or next((e.name for e in entries), "") or self._reading.sources.top[0]
        probe = probe_of(self._reading)
        profile = dict(_INHERITED)
        device: dict[str, Any] = {"name": slug(named), "probe": {"module": probe or ""}}
        made = PlatformParts(name=identifier(named), device=device)
        file = next(iter(self._reading.sources.modules.values())).file
        if probe is None:
            device["probe"]["module"] = self._reading.sources.top[0]
            what = "which module tells that the device is there; the plugin's own stands in `probe`"
            made.left.append(Left("platform", file, 1, what))
        if cls is None:
            made.none_meant = not any(e.group.endswith("platforms") for e in entries)
            what = "no subclass of SRTPlatform; `device` holds upstream's own defaults"
            if made.none_meant:
                what += ", and `left_at_default` leaves the platform alone"
            made.left.append(Left("platform", file, 1, what))
        else:
            self._read(cls, made, profile)
            for other in others:
                place = self._place(other)
                what = f"{other.path} is a platform class too; {cls.path} was taken"
                made.left.append(Left("platform", place.file, place.line, what))
        device["profiles"] = {"card": profile}
        return made

    def _place(self, value: ClassValue | Function) -> Place:
        scope = value.scope
        return self._reading.reader.place(scope, value.node)

    def _classes(self) -> tuple[ClassValue | None, list[ClassValue]]:
        """Return the platform class that SGLang is told of, and the others."""
        found = [c for c in self._reading.classes if self._derives(c) and c.path is not None]
        # A class that another one refines is a step on the way.
        bases = {id(b) for c in found for b in list(c.mro())[1:]}
        last = [c for c in found if id(c) not in bases]
        wanted = [path for path, _ in class_path(self._reading)]
        chosen = next((c for c in found if self._dotted(c) in wanted), None)
        chosen = chosen or (last[0] if last else None)
        return chosen, [c for c in last if c is not chosen]

    def _dotted(self, cls: ClassValue) -> str:
        return (cls.path or "").replace(":", ".")

    def _derives(self, cls: ClassValue) -> bool:
        return any(self._is_upstream(b) for b in cls.mro() if isinstance(b, External))

    def _is_upstream(self, base: External) -> bool:
        if base.name == self._upstream or base.name.endswith(".SRTPlatform"):
            return True
        found = self._resolver.resolve(base.name) if base.name.startswith("sglang.") else None
        return isinstance(found, Symbol) and any(b.endswith("SRTPlatform") for b in found.bases)

    def _spelled_keys(self) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Return the keys of the map by the method or field that spells them in this release."""
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for key in self._shipped.interface:
            spelling = spelled(self._shipped, key, self._resolver.version, True)
            name = (spelling.method or spelling.field) if spelling is not None else None
            if spelling is not None and name:
                found.setdefault(name, []).append((key, dict(spelling.argument)))
        return found

    def _read(self, cls: ClassValue, made: PlatformParts, profile: dict[str, str]) -> None:
        made.base = cls.path
        made.device["base"] = cls.path
        upstream = self._resolver.members(self._upstream) if self._upstream else {}
        for name, value in self._members(cls):
            keys = self._keys.get(name, [])
            place = self._member_place(value, cls)
            key = keys[0][0] if keys else ""
            if name == CAPABILITIES:
                self._capabilities(value, made, place)
            elif key in _TEXTS or key == _NAME:
                self._text(key, name, value, made, profile, place)
            elif key == _KIND:
                continue
            elif isinstance(value, (Function, Wrapped)):
                if name.startswith("__") or (name.startswith("_") and name not in upstream):
                    continue
                if name not in upstream and not keys and not self._formerly(name):
                    continue  # a helper of its own
                self._method(name, key, len(keys), value, cls, made, place)
            elif name in upstream and not name.startswith("__"):
                known, content = plain(value)
                what = f"the field {name}"
                text = f"{what} is {content!r}" if known else f"{what} is made at run time"
                made.left.append(
                    Left("platform", place.file, place.line, f"{text}; the base class keeps it")
                )

    def _formerly(self, name: str) -> bool:
        """Tell whether the interface spells some key so in another release."""
        spellings = (s for listed in self._shipped.interface.values() for s in listed)
        return any(name in (s.method, s.field) for s in spellings)

    def _members(self, cls: ClassValue) -> Iterator[tuple[str, Value]]:
        seen: set[str] = set()
        for one in cls.mro():
            if isinstance(one, ClassValue):
                for name, value in one.scope.names.items():
                    if name not in seen:
                        seen.add(name)
                        yield name, value

    def _member_place(self, value: Value, cls: ClassValue) -> Place:
        inner = value.inner if isinstance(value, Wrapped) else value
        return self._place(inner if isinstance(inner, Function) else cls)

    def _returned(self, value: Value) -> Value:
        """Return what a method hands out, as far as its text settles that."""
        function = value.inner if isinstance(value, Wrapped) else value
        if not isinstance(function, Function) or isinstance(function.node, ast.Lambda):
            return Unknown("no method")
        count = len(function.node.args.posonlyargs) + len(function.node.args.args)
        return self._reading.reader.guarded(
            function, [Unknown("an argument") for _ in range(count)]
        )

    def _text(
        self,
        key: str,
        name: str,
        value: Value,
        made: PlatformParts,
        profile: dict[str, str],
        place: Place,
    ) -> None:
        text = text_of(self._returned(value) if isinstance(value, (Function, Wrapped)) else value)
        if text is None:
            kept = profile.get(_TEXTS.get(key, ""), made.device["name"])
            what = f"{name} is made at run time; `{key}` says {kept!r}, check it"
            made.left.append(Left("platform", place.file, place.line, what))
            return
        if key == _NAME:
            made.device["name"] = slug(text)
            if slug(text) != text:
                what = f"{name} is {text!r}, which `device.name` cannot hold; check it"
                made.left.append(Left("platform", place.file, place.line, what))
        else:
            profile[_TEXTS[key]] = text
        made.taken.append(Taken(f"factory/{key}", "factory", name, place.file, place.line))

    def _capabilities(self, value: Value, made: PlatformParts, place: Place) -> None:
        if not isinstance(value, Made):
            what = "capabilities are made at run time"
            made.left.append(Left("platform", place.file, place.line, what))
            return
        for name, given in value.keywords.items():
            keys = self._keys.get(f"{CAPABILITIES}.{name}", [])
            on = given.value if isinstance(given, Const) else None
            if not keys or not isinstance(on, bool):
                what = f"the capability {name}"
                made.left.append(Left("platform", place.file, place.line, what))
                continue
            self._flag(keys[0][0], on, f"{CAPABILITIES}.{name}", made, place)

    def _flag(self, key: str, on: bool, name: str, made: PlatformParts, place: Place) -> None:
        made.capabilities[key.partition(".")[2]] = on
        made.taken.append(Taken(f"factory/{key}", "factory", name, place.file, place.line))

    def _method(
        self,
        name: str,
        key: str,
        count: int,
        value: Value,
        cls: ClassValue,
        made: PlatformParts,
        place: Place,
    ) -> None:
        """A method that only hands out one thing is that thing; any other is kept as it is."""
        given = self._returned(value) if count == 1 else None
        on = given.value if isinstance(given, Const) else None
        if key.startswith(f"{CAPABILITIES}.") and isinstance(on, bool):
            self._flag(key, on, name, made, place)
            return
        impl = self._class_of(given) if given is not None and self._is_bare(value) else None
        if impl is not None and key in ("paged_allocator", "graph_runner", "piecewise_backend"):
            made.factories[key] = impl
        elif impl is not None and key.startswith("kv_pool."):
            made.factories.setdefault("kv_pool", {})[key.partition(".")[2]] = impl
        else:
            made.methods[name] = f"{cls.path}.{name}"
            made.taken.append(Taken(f"method/{name}", "method", name, place.file, place.line))
            return
        made.taken.append(Taken(f"factory/{key}", "factory", name, place.file, place.line))

    def _class_of(self, value: Value) -> str | None:
        if isinstance(value, ClassValue) or (
            isinstance(value, External) and "()" not in value.name
        ):
            return implementation(value, self._resolver)
        return None

    def _is_bare(self, value: Value) -> bool:
        """Tell whether a method does nothing but import and return."""
        function = value.inner if isinstance(value, Wrapped) else value
        if not isinstance(function, Function) or isinstance(function.node, ast.Lambda):
            return False
        plain_ones = (ast.Import, ast.ImportFrom, ast.Return)
        return all(
            isinstance(n, plain_ones)
            or (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
            for n in function.node.body
        )

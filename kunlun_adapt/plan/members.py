"""The platform class of one release: each key of the map under the name that it has there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import Document, PlatformMap, Served, Spelling, in_range
from kunlun_adapt.documents.platform_map import ByProfile, Device, Given
from kunlun_adapt.plan.binding import Binding, Kind, Member, Value
from kunlun_adapt.plan.nearest import nearest_known
from kunlun_adapt.upstream import Facts, Missing, Symbol

PLATFORM = "platform"
CAPABILITIES = "capabilities"
PLATFORM_KIND = "platform_kind"
SERVER_ARGS = "server_args"
SERVER_ARGS_ACCESSOR = "server_args_accessor"
"""The key under which the interface spells the function that hands out the server arguments."""


def spelled(
    platform_map: PlatformMap, key: str, release: str, beyond: bool = False
) -> Spelling | None:
    """Return how `key` is spelled in `release`; `kv_pool.mha` may be covered by `kv_pool`.

    Beyond the claims the nearest spelling stands in. None does for a release that is older than all
    of them, which does without the key, unless they begin with the map's claim: then nobody has
    looked at what is older.
    """
    others: list[Spelling] = []
    for name in (key, key.rpartition(".")[0]):
        for spelling in platform_map.interface.get(name, ()):
            if name != key and spelling.call is not None:
                continue
            if in_range(spelling.sglang, release):
                return spelling
            others.append(spelling)
    ranges = [s.sglang for s in others]
    index = nearest_known(ranges, release, platform_map.sglang) if beyond else None
    return None if index is None else others[index]


def of_base(device: Device, impl: str) -> bool:
    """Tell whether an implementation is a method of the platform class written by hand."""
    return device.base is not None and impl.startswith(f"{device.base}.")


def plan_members(
    document: Document[PlatformMap], facts: Facts, profile: str, beyond: bool = False
) -> list[Member]:
    """Return a member for every key that the map gives, bound or excluded, in the map's order."""
    platform_map = document.model
    platform = spelled(platform_map, PLATFORM, facts.version, beyond)
    base = platform.call if platform else None
    known = facts.members(base) if base else {}
    capabilities = spelled(platform_map, CAPABILITIES, facts.version)
    flags = facts.members(capabilities.call) if capabilities and capabilities.call else {}
    members = []
    for key, kind, value, content, position in _keys(document, profile, facts.version, beyond):
        spelling = spelled(platform_map, key, facts.version, beyond)
        if spelling is None and key.startswith("methods."):
            spelling = Spelling(method=key.partition(".")[2])
        symbol, target = _resolve(spelling, base, known, capabilities, flags, facts)
        claims = [s.sglang for s in platform_map.interface.get(key, ())]
        left = _left_out(platform_map, key, facts.version)
        served = platform_map.served.get(key, Served(simulator=False, why="not stated"))
        members.append(
            Member(
                binding=Binding(
                    id=binding_of(key),
                    kind=kind,
                    family="platform",
                    target=target,
                    status="bound" if left is None else "excluded",
                    why=f"the platform's {key}",
                    required=True,
                    claims=" | ".join(claims) or platform_map.sglang,
                    position=position,
                    served=served.simulator,
                    served_why=served.why,
                    status_why=left,
                ),
                key=key,
                value=value,
                content=content,
                spelling=spelling,
                symbol=symbol,
            )
        )
    return members


def _left_out(platform_map: PlatformMap, key: str, release: str) -> str | None:
    """Return why the release does without the key, where `left_at_default` names it."""
    for left in platform_map.left_at_default:
        if left.member == key and in_range(left.sglang, release):
            return left.why
    return None


def binding_of(key: str) -> str:
    """Return the id of the binding that a key of the map makes."""
    method = key == SERVER_ARGS or key.startswith("methods.")
    return f"method/{key.removeprefix('methods.')}" if method else f"factory/{key}"


def _keys(
    document: Document[PlatformMap], profile: str, release: str, beyond: bool
) -> Iterable[tuple[str, Kind, Value, Any, Position]]:
    """Yield (key, kind, what the value is, the value, position) for all that the map gives."""
    m = document.model
    claim = m.sglang if beyond else None
    at = document.key_at
    here = m.device.profiles[profile]  # type: ignore[index]  # checked by make_plan
    place = ("device", "profiles", profile)
    yield "device.kind", "factory", "upstream", PLATFORM_KIND, at("device")
    yield "device.name", "factory", "text", m.device.name, at("device", "name")
    for field in ("reports_as", "dispatch_key", "distributed_backend"):
        yield f"device.{field}", "factory", "text", getattr(here, field), at(*place, field)
    factories = m.factories
    if factories.attention_backend is not None:
        name = factories.attention_backend.name
        yield "attention_backend", "factory", "text", name, at("factories", "attention_backend")
    for pool, impl in factories.kv_pool.items():
        yield f"kv_pool.{pool}", "factory", "class", impl, at("factories", "kv_pool", pool)
    for name in ("paged_allocator", "graph_runner", "piecewise_backend"):
        cls = _given(getattr(factories, name), profile, release, claim)
        if cls is not None:
            yield name, "factory", "class", cls, at("factories", name)
    if factories.compile_backend is not None:
        text = factories.compile_backend
        yield "compile_backend", "factory", "text", text, at("factories", "compile_backend")
    for name, impl in factories.quantization.items():
        yield (
            f"quantization.{name}",
            "factory",
            "class",
            impl,
            at("factories", "quantization", name),
        )
    for name, method in m.methods.items():
        chosen = _given(method, profile, release, claim)
        if chosen is not None:
            yield f"methods.{name}", "method", "function", chosen, at("methods", name)
    for name, flag in m.capabilities.items():
        on = flag if isinstance(flag, bool) else flag.get(profile)  # type: ignore[call-overload]
        if on is not None:
            yield f"{CAPABILITIES}.{name}", "factory", "flag", on, at(CAPABILITIES, name)
    if m.server_args:
        yield SERVER_ARGS, "method", "server_args", None, at(SERVER_ARGS)


def _given(
    given: Given | ByProfile | None, profile: str, release: str, claim: str | None
) -> str | None:
    """Return what implements a member for a profile in a release, given a claim the nearest."""
    mine: Given | None = given.get(profile) if isinstance(given, dict) else given  # type: ignore[call-overload]
    if not isinstance(mine, list):
        return mine
    for entry in mine:
        if in_range(entry.sglang, release):
            return entry.impl
    ranges = [entry.sglang for entry in mine]
    index = None if claim is None else nearest_known(ranges, release, claim)
    return None if index is None else mine[index].impl


def _resolve(
    spelling: Spelling | None,
    base: str | None,
    known: dict[str, Symbol],
    capabilities: Spelling | None,
    flags: dict[str, Symbol],
    facts: Facts,
) -> tuple[Symbol | Missing | None, str]:
    """Return the upstream member behind a spelling and its dotted path."""
    if spelling is None or base is None:
        return None, ""
    name = spelling.method or spelling.field or ""
    if name.startswith(f"{CAPABILITIES}.") and capabilities and capabilities.call:
        leaf = name.partition(".")[2]
        target = f"{capabilities.call}.{leaf}"
        return flags.get(leaf) or facts.resolve(target), target
    target = f"{base}.{name}"
    return known.get(name) or facts.resolve(target), target

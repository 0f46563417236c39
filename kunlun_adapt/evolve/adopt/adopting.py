"""Read a plugin written by hand, and say the same in YAML."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import Catalog, PlatformMap
from kunlun_adapt.evolve.adopt.bindings import bind
from kunlun_adapt.evolve.adopt.document import as_stream, as_yaml
from kunlun_adapt.evolve.adopt.left import Left
from kunlun_adapt.evolve.adopt.making import Bound, Taken
from kunlun_adapt.evolve.adopt.platform import PlatformParts, platform_parts
from kunlun_adapt.evolve.adopt.reading import read_plugin
from kunlun_adapt.evolve.adopt.sources import Sources
from kunlun_adapt.locate import MAP_FILE, OPERATORS
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, SERVER_ARGS
from kunlun_adapt.upstream import Resolver

OPERATOR_FILE = f"{OPERATORS}/adopted.yaml"
_OPTIONAL = (
    "attention_backend",
    "compile_backend",
    "graph_runner",
    "paged_allocator",
    "piecewise_backend",
    "quantization",
)
"""Keys of `factories`, which are spelled where they are given."""
_MODEL_REGISTRY = "sglang.srt.models.registry.ModelRegistry"


@dataclass(frozen=True, slots=True)
class Adoption:
    """What became of a plugin: the documents, what was taken over, and what was left."""

    sources: Sources
    release: str
    heading: str
    content: dict[str, Any]
    """The Platform Map as data; `files` has it, and all else, as text."""
    files: dict[str, str]
    taken: tuple[Taken, ...]
    left: tuple[Left, ...]

    def moved(self, out: Path) -> Adoption:
        """Return the same for a workspace in another folder."""
        content = {**self.content, "sources": [_from(out, root) for root in self.sources.roots]}
        return replace(self, files={**self.files, MAP_FILE: as_yaml(content, self.heading)})


def wanted_release(sources: Sources, known: tuple[str, ...]) -> str | None:
    """Return the release that a plugin asks for: the one it pins, else the newest it allows.

    `known` are the releases of which anything is known; None where none of them fits.
    """
    stated = sources.project.sglang
    specifiers = SpecifierSet(stated)
    for one in specifiers:
        if one.operator in ("==", "===") and not one.version.endswith(".*"):
            return one.version
    fitting = [r for r in known if specifiers.contains(r, prereleases=True)]
    return max(fitting or known, key=Version, default=None)


def claim_of(release: str) -> str:
    """Return the range that holds a release and its post-releases, and no other."""
    version = Version(release)
    parts = list(version.release)
    parts[-1] += 1
    return f">={version.public},<{'.'.join(map(str, parts))}"


def adopt_plugin(sources: Sources, resolver: Resolver, shipped: Catalog, out: Path) -> Adoption:
    """Return the workspace that says what a plugin does, for the release it was written for.

    `out` is the folder that it is for: it points from there to the plugin's source. `shipped` is
    the workspace that ships, which knows how each release spells the interface. Raises AdaptError.
    """
    resolver.use_cache()
    if shipped.platform_map is None:
        raise AdaptError("the workspace that ships does not load", "reinstall kunlun-adapt")
    ours = shipped.platform_map.model
    claim = claim_of(resolver.version)
    reading = read_plugin(sources, resolver)
    parts = platform_parts(reading, resolver, ours)
    bound = bind(reading, resolver, claim)
    left = _merged((*reading.reader.left, *parts.left, *bound.left))
    heading = f"Read from {sources.top[0]}, for sglang {resolver.version}; edit it from here on."
    content = _map(sources, parts, bound, claim, ours, out)
    files = {MAP_FILE: as_yaml(content, heading)}
    if bound.operators:
        files[OPERATOR_FILE] = as_stream(list(bound.operators), heading)
    resolver.keep_answers()
    taken = tuple(sorted((*parts.taken, *bound.taken), key=lambda t: (t.file, t.line, t.id)))
    return Adoption(sources, resolver.version, heading, content, files, taken, tuple(left))


def _merged(left: Iterable[Left]) -> list[Left]:
    """Return what was left in order, each thing once with all the bindings that it is about."""
    found: dict[Left, list[str]] = {}
    for one in left:
        found.setdefault(replace(one, bindings=()), []).extend(one.bindings)
    return sorted(replace(x, bindings=tuple(dict.fromkeys(ids))) for x, ids in found.items())


def _map(
    sources: Sources, parts: PlatformParts, bound: Bound, claim: str, ours: PlatformMap, out: Path
) -> dict[str, Any]:
    interface: dict[str, Any] = {
        key: [s.model_dump(exclude_defaults=True) for s in spellings]
        for key, spellings in ours.interface.items()
        if _given(key, parts)
    }
    if bound.models and "models" not in interface:
        interface["models"] = [{"call": _MODEL_REGISTRY}]
    why = "the plugin has hooks only, and no platform class"
    left_at_default = [{"member": PLATFORM, "why": why}] if parts.none_meant else []
    content: dict[str, Any] = {
        "apiVersion": "kunlun-adapt/v1",
        "kind": "PlatformMap",
        "name": parts.name,
        "sglang": claim,
        "sources": [_from(out, root) for root in sources.roots],
        "device": parts.device,
        "factories": parts.factories,
        "methods": parts.methods,
        "capabilities": parts.capabilities,
        "interface": interface,
        "left_at_default": left_at_default,
        "environment": bound.environment,
        "shims": bound.shims,
        "models": bound.models,
        "hooks": bound.hooks,
    }
    return {key: value for key, value in content.items() if value not in ({}, [])}


def _given(key: str, parts: PlatformParts) -> bool:
    """Tell whether the map has anything to spell under a key, or needs to know it anyway."""
    first, _, rest = key.partition(".")
    if first == CAPABILITIES and rest:
        return rest in parts.capabilities
    if first == "kv_pool":
        return not rest or rest in parts.factories.get(first, {})
    if first in _OPTIONAL:
        return first in parts.factories
    return first != SERVER_ARGS


def _from(out: Path, root: Path) -> str:
    """Return a folder as seen from the workspace."""
    return Path(os.path.relpath(root, out.resolve())).as_posix()

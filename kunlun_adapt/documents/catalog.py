"""A workspace: every document in it, loaded, typed and cross-checked for names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents.adaptation_recipe import AdaptationRecipe
from kunlun_adapt.documents.loader import MAX_BYTES, load_bytes, load_file
from kunlun_adapt.documents.operator_recipe import OperatorRecipe
from kunlun_adapt.documents.parse import Document, parse
from kunlun_adapt.documents.platform_map import Hook, PlatformMap
from kunlun_adapt.locate import MAP_FILE, OPERATORS, RECIPES, workspace_files

_NAMED = re.compile(
    r"(?:^|[\s{,])(?:name|id|module|arg):\s*['\"]?(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
)


@dataclass(frozen=True, slots=True)
class HookEntry:
    """A hook, the document that states it (the map or a recipe), and where in it."""

    document: Document[PlatformMap] | Document[AdaptationRecipe]
    path: tuple[str | int, ...]
    hook: Hook


@dataclass(frozen=True, slots=True)
class Catalog:
    """The typed documents of a workspace, in a stable order, and the findings made on the way.

    `unread` has the names that stand in documents which could not be read: what they would define
    is not known, but it is no slip to refer to it.
    """

    root: Path
    platform_map: Document[PlatformMap] | None
    operators: tuple[Document[OperatorRecipe], ...]
    recipes: tuple[Document[AdaptationRecipe], ...]
    findings: tuple[Finding, ...]
    unread: frozenset[str] = frozenset()

    @property
    def hooks(self) -> tuple[HookEntry, ...]:
        """Every hook of the workspace: the map's in its order, then each recipe's."""
        documents: list[Document[PlatformMap] | Document[AdaptationRecipe]] = []
        if self.platform_map is not None:
            documents.append(self.platform_map)
        documents += self.recipes
        return tuple(
            HookEntry(document, ("hooks", i), hook)
            for document in documents
            for i, hook in enumerate(document.model.hooks)
        )

    def operator(self, name: str) -> Document[OperatorRecipe] | None:
        return next((d for d in self.operators if d.model.name == name), None)


def load_catalog(root: Path, texts: Mapping[str, str] | None = None) -> Catalog:
    """Load every document under `root`; faults are in `Catalog.findings`, never raised.

    `texts` stand in for files of the workspace by their names: what is not written yet.
    """
    findings: list[Finding] = []
    unread: set[str] = set()
    by_kind: dict[str, list[Document[Any]]] = {MAP_FILE: [], OPERATORS: [], RECIPES: []}
    expected = {MAP_FILE: "PlatformMap", OPERATORS: "OperatorRecipe", RECIPES: "AdaptationRecipe"}
    for name, path in workspace_files(root):
        place = name.split("/", 1)[0]
        given = None if texts is None else texts.get(name)
        if given is None:
            raws, faults = load_file(path, name, broken=True)
        else:
            raws, faults = load_bytes(given.encode(), name, broken=True)
        findings.extend(faults)
        lost = bool(faults)
        if place == MAP_FILE and len(raws) > 1:
            message = f"{MAP_FILE} holds {len(raws)} documents; there is one Platform Map"
            findings.append(
                Finding.of("KA002", message, raws[1].at(), suggestion="keep the first one")
            )
        for raw in raws:
            document, faults = parse(raw, expected[place])
            findings.extend(faults)
            if document is None or raw.broken:
                lost = True
            else:
                by_kind[place].append(document)
        if lost:
            unread |= _names_in(path)
    maps = by_kind[MAP_FILE]
    catalog = Catalog(
        root=root,
        platform_map=maps[0] if maps else None,
        operators=tuple(by_kind[OPERATORS]),
        recipes=tuple(by_kind[RECIPES]),
        findings=(),
    )
    findings.extend(_misnamed(root))
    findings.extend(_duplicates(catalog))
    return replace(catalog, findings=tuple(findings), unread=frozenset(unread))


def _names_in(path: Path) -> set[str]:
    """Return what looks like a name in a file that is not readable as a whole."""
    try:
        if not path.is_file():  # opening a pipe would wait for somebody to write
            return set()
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return set()
    return {found["name"] for found in _NAMED.finditer(text)}


def _misnamed(root: Path) -> list[Finding]:
    """A document under another suffix would be passed over without a word."""
    return [
        Finding.of(
            "KA001",
            "only files named *.yaml are read",
            Position(path.relative_to(root).as_posix(), 1, 1),
            suggestion=f"rename it to {path.stem}.yaml",
        )
        for folder in (OPERATORS, RECIPES)
        for path in sorted((root / folder).rglob("*.yml"))
    ]


def _duplicates(catalog: Catalog) -> list[Finding]:
    findings: list[Finding] = []
    seen: dict[tuple[str, str], Position] = {}

    def see(kind: str, name: str, document: Document[Any], *path: str | int) -> None:
        position = document.at(*path)
        if (kind, name) in seen:
            message = (
                f"{kind.partition(' of ')[0]} {name!r} is already defined at {seen[kind, name]}"
            )
            tip = "rename or remove one of them"
            findings.append(Finding.of("KA004", message, position, suggestion=tip))
        seen.setdefault((kind, name), position)

    if catalog.platform_map is not None:
        for i, shim in enumerate(catalog.platform_map.model.shims):
            see("shim", shim.module, catalog.platform_map, "shims", i, "module")
    for entry in catalog.hooks:
        see("hook", entry.hook.id, entry.document, *entry.path, "id")
    for document in catalog.operators:
        see("operator", document.model.name, document, "name")
        for i, tier in enumerate(document.model.kernels):
            # By file and line, so that an operator given twice is not also its tiers given twice.
            see(f"tier of {document.at('name')}", tier.name, document, "kernels", i, "name")
    for recipe in catalog.recipes:
        see("recipe", recipe.model.name, recipe, "name")
    return findings

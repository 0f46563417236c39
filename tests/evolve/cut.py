"""Cut a workspace back to one release: what a person had who knew that release and none later."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet

from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.fields import ANY
from kunlun_adapt.documents.loader import load_bytes
from kunlun_adapt.locate import LOCK_FILE, MAP_FILE, OPERATORS, RECIPES, workspace_files

RANGED = ("server_args", "environment", "shims", "models", "left_at_default", "accepts")


def cut_back(root: Path, to: Path, release: str) -> None:
    """Write to a folder what a workspace says of one release; its claim is exactly that release."""
    texts = {}
    for name, path in workspace_files(root):
        documents, findings = load_bytes(path.read_bytes(), name)
        assert not findings, findings
        texts[name] = [document.data for document in documents]
    for name, documents in texts.items():
        if name.startswith(OPERATORS):
            texts[name] = [d for d in documents if _operator(d, release)]
        elif name.startswith(RECIPES):
            texts[name] = [d for d in documents if in_range(d.get("sglang", ANY), release)]
    documents = [d for found in texts.values() for d in found]
    for document in documents:
        if document["kind"] != "OperatorRecipe":
            _hooks(document, release)
    _map(texts[MAP_FILE][0], release)
    names = {d["name"] for d in documents if d["kind"] == "OperatorRecipe"}
    ids = {hook["id"] for d in documents for hook in d.get("hooks", [])}
    ids |= {f"{d['name']}/{_id(b)}" for d in documents for b in d.get("binds", [])}
    for document in documents:
        _references(document, names, ids)
    for name, found in texts.items():
        if found:
            place = to / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(_dumped(found), encoding="utf-8")
    rows = (root / LOCK_FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [r for r in rows[1:] if json.loads(r).get("release") == release]
    (to / LOCK_FILE).write_text("".join([rows[0], *kept]), encoding="utf-8")


def _dumped(documents: Iterable[Any]) -> str:
    text: str = yaml.safe_dump_all(documents, sort_keys=False, width=10**6, allow_unicode=True)
    return text


def _id(bind: dict[str, Any]) -> str:
    return str(bind.get("id") or bind["target"].rpartition(".")[2])


def _open(entry: dict[str, Any], release: str) -> None:
    """Take from a range the end that only later releases told of."""
    text = entry.get("sglang")
    if text is None or _ends_next(text, release):
        return
    kept = [s for s in SpecifierSet(text) if s.operator not in ("<", "<=")]
    entry["sglang"] = ",".join(sorted(map(str, kept))) or ANY


def _ends_next(text: str, release: str) -> bool:
    """Tell whether a range is for this very release: that nothing later is claimed is no news."""
    *head, last = release.split(".")
    after = ".".join([*head, str(int(last) + 1)])
    return text == f">={release},<{after}"


def _ranged(entries: list[dict[str, Any]], release: str) -> list[dict[str, Any]]:
    kept = [e for e in entries if in_range(e.get("sglang", ANY), release)]
    for entry in kept:
        _open(entry, release)
    return kept


def _operator(document: dict[str, Any], release: str) -> bool:
    binds = _ranged(document.get("binds", []), release)
    for bind in binds:
        _exclusions(bind, release)
    document["binds"] = binds
    return bool(binds) or bool(document.get("serves"))


def _exclusions(entry: dict[str, Any], release: str) -> None:
    for key in ("excluded", "accepts"):
        if key in entry:
            entry[key] = _ranged(entry[key], release)
            if not entry[key]:
                del entry[key]


def _hooks(document: dict[str, Any], release: str) -> None:
    kept = []
    for hook in document.get("hooks", []):
        hook["at"] = _ranged(hook["at"], release)
        _exclusions(hook, release)
        if hook["at"]:
            kept.append(hook)
    ids = {hook["id"] for hook in kept}
    for hook in kept:
        if "runs_after" in hook:
            hook["runs_after"] = [i for i in hook["runs_after"] if i in ids]
    if "hooks" in document:
        document["hooks"] = kept
    if document["kind"] == "AdaptationRecipe":
        _open(document, release)
        rows = document.get("acceptance", [])
        document["acceptance"] = [r for r in rows if r.get("sglang", release) == release]


def _map(document: dict[str, Any], release: str) -> None:
    document["sglang"] = f"=={release}"
    interface = document["interface"]
    for key in list(interface):
        interface[key] = _ranged(interface[key], release)
        if not interface[key]:
            del interface[key]
    gone = [k for k in document["capabilities"] if f"capabilities.{k}" not in interface]
    for key in gone:
        del document["capabilities"][key]
        document["served"].pop(f"capabilities.{key}", None)
    for key in RANGED:
        if key in document:
            document[key] = _ranged(document[key], release)
    document["left_at_default"] = [
        e for e in document["left_at_default"]
        if not e["member"].startswith("capabilities.")
    ]  # fmt: skip
    document["stack"] = [row for row in document["stack"] if row["sglang"] == release]


def _references(document: dict[str, Any], operators: set[str], ids: set[str]) -> None:
    for point in document.get("landing_points", []):
        if "bindings" in point:
            point["bindings"] = [b for b in point["bindings"] if _known(b, operators | ids)]
    for key, known in (("operators", operators), ("bindings", ids | operators)):
        if key in document:
            document[key] = [name for name in document[key] if _known(name, known)]
    if "conflicts" in document:
        known = ids | operators
        document["conflicts"] = [
            c for c in document["conflicts"] if all(_known(n, known) for n in c["between"])
        ]


def _known(name: str, known: set[str]) -> bool:
    # Keys of the map, shims and the like are not cut.
    return name in known or "." in name or name.startswith(("factory/", "method/", "shim/"))

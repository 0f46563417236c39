"""Copies the documents aside and spoils the copy, to see that a spoiled one is noticed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ("platform_map.yaml", "operator_recipes", "recipes", "templates", "adapt.lock")
# Goes on PYTHONPATH: holds `kunlun_sabotage`, which the spoiled documents point at.
SABOTAGE = Path(__file__).resolve().parent / "sabotage"


def copy_workspace(folder: Path) -> Path:
    """Copy the documents of this checkout into `folder`."""
    folder.mkdir(parents=True)
    for name in DOCUMENTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy2(source, folder / name)
    return folder


def replace_kernels(workspace: Path, operator: str, implementation: str) -> None:
    """Let every tier of one operator that is no fallback be served by `implementation`."""
    for path in sorted((workspace / "operator_recipes").rglob("*.yaml")):
        for recipe in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if recipe["name"] != operator:
                continue
            served = [tier["impl"] for tier in recipe["kernels"] if not tier.get("fallback")]
            for old in served:
                _replace(path, old, implementation)
            if served:
                return
    raise LookupError(f"no tier of {operator} in {workspace}")


def replace_hook(workspace: Path, target_end: str, implementation: str) -> str:
    """Let the hook on a target that ends so be served by `implementation`; return its id."""
    path = workspace / "platform_map.yaml"
    for hook in yaml.safe_load(path.read_text(encoding="utf-8"))["hooks"]:
        if "impl" in hook and any(place["target"].endswith(target_end) for place in _places(hook)):
            _replace(path, hook["impl"], implementation)
            return str(hook["id"])
    raise LookupError(f"no hook on …{target_end} in {workspace}")


def _places(hook: dict[str, Any]) -> list[dict[str, Any]]:
    places = hook["at"]
    return places if isinstance(places, list) else [places]


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise LookupError(f"{old} is not in {path}")
    path.write_text(text.replace(old, new), encoding="utf-8")

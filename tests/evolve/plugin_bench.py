"""A small release and a plugin of a few lines: what becomes of it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kunlun_adapt.documents import Catalog, load_catalog
from kunlun_adapt.evolve.adopt import Adoption, adopt_plugin, read_sources
from kunlun_adapt.upstream import Resolver, open_release
from tests.check.bench import UPSTREAM

ROOT = Path(__file__).resolve().parents[2]

MORE_UPSTREAM = {
    "sglang/srt/plugins/hook_registry.py": "class HookRegistry: ...\nclass HookType: ...\n",
    "sglang/srt/layers/attention/registry.py": """\
        BACKENDS = {}
        PAIRS = {}
        HANDLERS = []

        def register_attention_backend(name):
            def decorator(fn):
                BACKENDS[name] = fn
                return fn
            return decorator

        def register_pair(one, other):
            return _register(one, other)

        def _register(one, other):
            def decorator(fn):
                PAIRS[one, other] = fn
                return fn
            return decorator

        def register_handler(weight, name, fn):
            HANDLERS.append(fn)

        def register_second(weight, name, fn):
            BACKENDS[name] = fn

        def register_nothing(fn):
            return fn

        NAMES = []

        def add_names(names):
            NAMES.extend(names)

        def note(name, fn):
            BACKENDS[name] = fn
        """,
    "sglang/srt/models/registry.py": """\
        class _ModelRegistry:
            models = {}
            def register(self, package_name, overwrite=False):
                self.models.update({})

        ModelRegistry = _ModelRegistry()
        """,
    "sglang/srt/models/llama.py": "class LlamaForCausalLM:\n    pass\n",
}
PROJECT = """\
[project]
name = "ours"
[project.entry-points."sglang.srt.platforms"]
ours = "ours:activate"
[project.entry-points."sglang.srt.plugins"]
ours = "ours.install:register"
"""
IMPORTS = """\
from sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook
import sglang.srt.utils.common as common
from sglang.srt.layers.attention import registry
"""
COMMON = "sglang.srt.utils.common"


@cache
def shipped() -> Catalog:
    return load_catalog(ROOT)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


@dataclass
class PluginBench:
    """A folder with a small SGLang and room for a plugin."""

    root: Path
    adoption: Adoption | None = None
    upstream: dict[str, str] = field(default_factory=lambda: {**UPSTREAM, **MORE_UPSTREAM})

    def resolver(self) -> Resolver:
        return Resolver(open_release(str(write(self.root / "upstream", self.upstream))))

    def adopt(self, install: str = "", **files: str) -> Adoption:
        """Adopt a plugin whose `ours/install.py` has this text after a few imports."""
        plugin = {
            "pyproject.toml": PROJECT,
            "ours/__init__.py": "def activate():\n    return None\n",
            "ours/install.py": IMPORTS + textwrap.dedent(install).lstrip("\n"),
            **{f"ours/{name}.py": text for name, text in files.items()},
        }
        return self.read(write(self.root / "plugin", plugin))

    def read(self, path: Path) -> Adoption:
        self.adoption = adopt_plugin(
            read_sources(path), self.resolver(), shipped(), self.root / "out"
        )
        return self.adoption


def the_map(adoption: Adoption) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(adoption.files["platform_map.yaml"])
    return found


def hooks(adoption: Adoption) -> dict[str, dict[str, Any]]:
    """Return the hooks by their targets; of several on one the last."""
    listed: list[dict[str, Any]] = the_map(adoption).get("hooks", [])
    return {hook["at"][0]["target"]: hook for hook in listed}


def left(adoption: Adoption) -> list[tuple[str, str, int]]:
    return [(x.reason, x.file, x.line) for x in adoption.left if x.reason != "platform"]

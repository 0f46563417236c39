"""A made-up SGLang that can run, a workspace for it, and processes in which the two meet.

It has what the runtime meets in a real one: a module that resolves the platform while it is half
imported, kernels that are imported by name, a table of out-of-tree forwards, two plugin doors. How
HookRegistry wraps is left to the tests that run against the real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MAP = "platform_map.yaml"
RECIPE = "operator_recipes/activation.yaml"

UPSTREAM: dict[str, str] = {
    "sglang/__init__.py": "",
    "sglang/version.py": '__version__ = "1.2.0"\n',
    "sglang/srt/platforms/interface.py": """\
        class SRTPlatform:
            device_name = "unknown"

            def get_dispatch_key_name(self):
                return "native"
        """,
    "sglang/srt/platforms/__init__.py": """\
        import importlib

        _current_platform = None

        def _resolve():
            from kunlun_adapt.plugin import activate

            path = activate()
            if path is None:
                from sglang.srt.platforms.interface import SRTPlatform

                return SRTPlatform()
            module, _, name = path.partition(":")
            return getattr(importlib.import_module(module), name)()

        def __getattr__(name):
            global _current_platform
            if name != "current_platform":
                raise AttributeError(name)
            if _current_platform is None:
                _current_platform = _resolve()
            return _current_platform
        """,
    "sglang/srt/plugins/hook_registry.py": """\
        import enum
        import importlib

        class HookType(enum.Enum):
            REPLACE = "replace"

        class HookRegistry:
            _hooks = {}
            _patched = set()

            @classmethod
            def register(cls, target, hook, hook_type):
                cls._hooks.setdefault(target, []).append((hook_type, hook, None))

            @classmethod
            def apply_hooks(cls):
                for target, hooks in cls._hooks.items():
                    module, _, name = target.rpartition(".")
                    for _, hook, _ in hooks:
                        setattr(importlib.import_module(module), name, hook)
        """,
    "sglang/srt/plugins/__init__.py": """\
        def load_plugins():
            from kunlun_adapt.plugin import register
            from sglang.srt.plugins.hook_registry import HookRegistry

            try:
                register()
            except Exception as error:
                print("swallowed", error)
            HookRegistry.apply_hooks()
        """,
    "sglang/srt/utils/common.py": """\
        from sglang.srt.platforms import current_platform

        CHOICES = ["triton"]
        LIMIT = 7

        def late(x):
            return "upstream"

        def affinity(gpu_id, nodes=1):
            return "upstream", gpu_id
        """,
    "sglang/kernels/ops.py": """\
        def silu(input, out=None):
            return "upstream"
        """,
    "sglang/srt/layers.py": """\
        from sglang.kernels.ops import silu

        class Op:
            _oot_forward_registry = {}

            @classmethod
            def register_oot_forward(cls, op, forward, key):
                cls._oot_forward_registry.setdefault(key, {})[op] = forward

        class Silu(Op):
            def forward_native(self, x):
                return "upstream"
        """,
    "tiny_runtime.py": "",
    "torch/__init__.py": "",
    "torch/compiler.py": """\
        def is_compiling():
            return False

        is_dynamo_compiling = is_compiling
        """,
    "ours.py": """\
        class Thing:
            shape = (2, 3)
            ndim = 2
            dtype = "torch.float16"

        def golden(x, out):
            if x.ndim == 3:
                raise ArithmeticError("raised inside the golden")
            return "ours"

        def affinity(call):
            return "ours", call.args["gpu_id"]

        def device(self):
            return "tiny"
        """,
}

WORKSPACE: dict[str, str] = {
    MAP: """\
apiVersion: kunlun-adapt/v1
kind: PlatformMap
name: tiny
sglang: ">=1.0,<2"
device:
  name: tiny
  probe: {module: tiny_runtime}
  profiles:
    card: {reports_as: cuda, dispatch_key: tinykey, distributed_backend: nccl}
interface:
  platform: [{call: sglang.srt.platforms.interface.SRTPlatform}]
  device.name: [{field: device_name}]
  device.dispatch_key: [{method: get_dispatch_key_name}]
  process.scheduler: [{call: sglang.srt.utils.common.affinity}]
left_at_default:
  - {member: device.kind, why: the made-up platform has none}
  - {member: device.reports_as, why: the made-up platform has none}
  - {member: device.distributed_backend, why: the made-up platform has none}
environment:
  - {name: TINY_SETTING, default: "1", why: a test reads it}
hooks:
  - id: choices
    why: upstream refuses names that are not in its list
    type: extend
    value: [tiny]
    at: [{target: sglang.srt.utils.common.CHOICES}]
""",
    RECIPE: """\
apiVersion: kunlun-adapt/v1
kind: OperatorRecipe
name: silu
family: activation
why: a test calls it
golden: "ours:golden"
params: {x: "Tensor[rows, d]", out: "Tensor[rows, d] | None"}
returns: "Tensor[rows, d]"
capture: safe
binds:
  - {target: sglang.kernels.ops.silu, style: function, args: {x: input, out: out}}
  - {target: sglang.srt.layers.Silu, style: oot_forward, args: {x: x}}
kernels:
  - {name: golden, fallback: true, when: {x.ndim: [2, 3]}}
otherwise: error
precision: {float32: {cosine: 0.9999}}
cases: {x: [[1, 256]]}
""",
}

LATE = "  - {target: sglang.srt.utils.common.late, style: function, args: {x: x}}\n"
"""A place in the module that is half imported when the early door opens."""
STARTED = "import sglang.srt.utils.common as common, sglang.srt.layers as layers\n"
SHOW = """
from kunlun_adapt.runtime import ledger
from sglang.srt.plugins import load_plugins
load_plugins()
print({e.id: e.state for e in ledger.LEDGER.entries.values()})
"""


@dataclass(frozen=True)
class Stage:
    """The texts of an SGLang and a workspace; `run` puts them on disk and starts a process."""

    root: Path
    cache: Path
    upstream: Mapping[str, str] = field(default_factory=lambda: dict(UPSTREAM))
    workspace: Mapping[str, str] = field(default_factory=lambda: dict(WORKSPACE))

    def edit(self, file: str, old: str, new: str) -> Stage:
        """Replace a text that stands exactly once in a file."""
        place = "workspace" if file in self.workspace else "upstream"
        files: Mapping[str, str] = getattr(self, place)
        assert files[file].count(old) == 1, f"{old!r} stands {files[file].count(old)} times"
        return replace(self, **{place: {**files, file: files[file].replace(old, new)}})

    def add(self, file: str, text: str) -> Stage:
        """Append to a file, or make one."""
        place = "workspace" if file in self.workspace else "upstream"
        files: Mapping[str, str] = getattr(self, place)
        before = textwrap.dedent(files.get(file, ""))
        return replace(self, **{place: {**files, file: before + textwrap.dedent(text)}})

    def drop(self, file: str) -> Stage:
        return replace(self, upstream={f: t for f, t in self.upstream.items() if f != file})

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    def write(self) -> None:
        """Put both on disk, with the lock of the made-up release."""
        from kunlun_adapt.documents import load_catalog
        from kunlun_adapt.evolve.lock import lock_for
        from kunlun_adapt.upstream import Resolver, open_release, write_lock

        for folder, files in (("tree", self.upstream), ("workspace", self.workspace)):
            for name, text in files.items():
                path = self.root / folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(textwrap.dedent(text), encoding="utf-8")
        catalog = load_catalog(self.root / "workspace")
        if catalog.platform_map is not None:
            lock, _ = lock_for(catalog, Resolver(open_release(str(self.tree))))
            write_lock(self.root / "workspace" / "adapt.lock", lock)

    def run(
        self, code: str, *, write: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `code` in a process of its own; variables that are "" are left out."""
        if write:
            self.write()
        given = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.root),
            "PYTHONPATH": os.pathsep.join([str(self.tree), str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KUNLUN_ADAPT_WORKSPACE": str(self.root / "workspace"),
            "KUNLUN_ADAPT_CACHE": str(self.cache),
            **environment,
        }
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={k: v for k, v in given.items() if v},
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def refused(done: subprocess.CompletedProcess[str], *needles: str) -> str:
    """Assert that the process was refused with SGLang's exit code, in words that name `needles`."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.count("the start is refused") == 1, done.stderr
    for needle in (*needles, "What to do:"):
        assert needle in done.stderr, f"{needle!r} is not in\n{done.stderr}"
    return done.stderr


def fine(done: subprocess.CompletedProcess[str]) -> str:
    """Assert that the process ended well; return what it printed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

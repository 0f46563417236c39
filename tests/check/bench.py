# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""A small release and a workspace without findings; tests change one thing and look what is said."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kunlun_adapt.check import check_release
from kunlun_adapt.check.usage import CODES_OF_USAGE
from kunlun_adapt.diagnostics import Finding, ReleaseReport
from kunlun_adapt.documents import Catalog, load_catalog
from kunlun_adapt.upstream import Facts, Lock, Resolver, open_release

MAP = "platform_map.yaml"
RECIPE = "operator_recipes/activation.yaml"
IMPLS = "our_impls.py"

UPSTREAM: dict[str, str] = {
    "sglang/__init__.py": "",
    "sglang/version.py": '__version__ = "0.5.19"\n',
    "sglang/srt/plugins/__init__.py": "",
    "sglang/srt/platforms/__init__.py": "",
    "sglang/srt/platforms/device_mixin.py": '''\
        import enum

        class PlatformEnum(enum.Enum):
            OOT = enum.auto()

        class DeviceMixin:
            _enum = None
            device_name: str = "unknown"
            device_type: str = "cpu"

            def get_device_total_memory(self, device_id: int = 0) -> int:
                """[Active] Bytes."""
                raise NotImplementedError

            def get_device_uuid(self, device_id: int = 0) -> str:
                """[Planned] Identifier."""
                raise NotImplementedError

            def get_torch_distributed_backend_str(self) -> str:
                return "gloo"
        ''',
    "sglang/srt/platforms/interface.py": """\
        import msgspec
        from sglang.srt.platforms.device_mixin import DeviceMixin, PlatformEnum

        class PlatformCapabilities(msgspec.Struct, frozen=True):
            graph_capture: bool = False
            supports_triton: bool = False

        class SRTPlatform(DeviceMixin):
            capabilities: PlatformCapabilities = PlatformCapabilities()

            def get_default_attention_backend(self) -> str:
                raise NotImplementedError

            def get_kv_pool_cls(self, *, kind):
                return None

            def get_graph_runner_cls(self):
                return None

            def get_dispatch_key_name(self) -> str:
                return "native"

            def supports_mamba(self) -> bool:
                return False
        """,
    "sglang/srt/layers/fused.py": """\
        class BaseFusedOp:
            @classmethod
            def register_oot_forward(cls, op, forward, key):
                pass

            def forward(self, *args, **kwargs):
                pass
        """,
    "sglang/srt/layers/activation.py": """\
        from sglang.srt.layers.fused import BaseFusedOp

        class SiluAndMul(BaseFusedOp):
            def forward_native(self, x):
                return x

        class Plain:
            def forward(self, x):
                return x
        """,
    "sglang/kernels/ops/activation.py": """\
        import triton

        def silu_and_mul(input, out=None):
            return input

        @triton.jit
        def silu_kernel(x, out):
            pass

        def register_custom_op(fn):
            return fn

        @register_custom_op
        def gelu_and_mul(input, out=None):
            return input
        """,
    "sglang/kernels/ops/__init__.py": "from sglang.kernels.ops.activation import silu_and_mul\n",
    "sglang/srt/runner.py": """\
        class Base:
            @classmethod
            def make(cls, size):
                return cls()

        class GraphRunner(Base):
            @property
            def size(self):
                return 1

            async def wait(self, seconds):
                return seconds

            def replay(self, batch, skip=False):
                return batch
        """,
    "sglang/srt/utils/common.py": """\
        ENABLED = True
        CHOICES = ["triton"]

        def set_affinity(gpu_id, tp_size, nnodes=1):
            return gpu_id
        """,
    "sglang/srt/utils/old.py": "from sglang.srt.utils.common import vanished\n",
    "sglang/srt/managers/scheduler.py": "def run_scheduler_process(server_args):\n    load_plugins()\n",
    "sglang/srt/model_executor/graphs.py": "def wanted(platform):\n    return platform.capabilities.graph_capture\n",
}

WORKSPACE: dict[str, str] = {
    MAP: """\
apiVersion: kunlun-adapt/v1
kind: PlatformMap
name: kunlun
sglang: ">=0.5.17,<0.5.24"
device:
  name: kunlun
  probe: {module: torch_xmlir}
  profiles:
    card: {reports_as: cuda, dispatch_key: cuda, distributed_backend: nccl}
    simulator: {reports_as: cpu, dispatch_key: native, distributed_backend: gloo}
factories:
  attention_backend: {name: kunlun, class: "our_impls:Backend"}
  kv_pool:
    mha: "our_impls:Pool"
    mla: "our_impls:Pool"
  graph_runner: "sglang.srt.runner:GraphRunner"
methods:
  get_device_total_memory: "our_impls:total_memory"
capabilities:
  graph_capture: {card: true, simulator: false}
  triton: false
interface:
  platform:
    - {call: sglang.srt.platforms.interface.SRTPlatform}
  platform_kind:
    - {call: sglang.srt.platforms.device_mixin.PlatformEnum.OOT}
  capabilities:
    - {call: sglang.srt.platforms.interface.PlatformCapabilities}
  device.kind:
    - {field: _enum}
  device.name:
    - {field: device_name}
  device.reports_as:
    - {field: device_type}
  device.dispatch_key:
    - {method: get_dispatch_key_name}
  device.distributed_backend:
    - {method: get_torch_distributed_backend_str}
  attention_backend:
    - {method: get_default_attention_backend}
  kv_pool:
    - {method: get_kv_pool_cls, argument: {kind: $key}}
  graph_runner:
    - {method: get_graph_runner_cls}
  capabilities.graph_capture:
    - {sglang: "<0.5.18", method: support_cuda_graph}
    - {sglang: ">=0.5.18", field: capabilities.graph_capture}
  capabilities.triton:
    - {field: capabilities.supports_triton}
  process.scheduler:
    - {call: sglang.srt.managers.scheduler.run_scheduler_process}
left_at_default:
  - {member: supports_mamba, why: no recurrent model is bound}
hooks:
  - id: affinity
    why: pin each worker to the cores near its card
    type: replace
    impl: "our_impls:set_affinity"
    at:
      - {sglang: "<0.5.18", target: sglang.srt.utils.common.set_gpu_affinity, args: {gpu_id: gpu_id}}
      - {sglang: ">=0.5.18", target: sglang.srt.utils.common.set_affinity, args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}
    served: {simulator: false, why: upstream calls it on cards only}
  - id: choices
    why: upstream refuses names that are not in its list
    type: extend
    value: [kunlun]
    at:
      - {target: sglang.srt.utils.common.CHOICES}
stack:
  - {sglang: ">=0", verified: simulator}
""",
    RECIPE: """\
apiVersion: kunlun-adapt/v1
kind: OperatorRecipe
name: silu_and_mul
family: activation
why: upstream's kernel needs a compiler that the host lacks
golden: "our_impls:silu_golden"
params:
  x: "Tensor[rows, 2*d]"
  out: "Tensor[rows, d] | None"
returns: "Tensor[rows, d]"
mutates: [out]
capture: safe
binds:
  - target: sglang.kernels.ops.activation.silu_and_mul
    style: function
    args: {x: input, out: out}
  - target: sglang.srt.layers.activation.SiluAndMul
    style: oot_forward
    args: {x: x}
derive:
  rows: "x.shape[0]"
kernels:
  - name: swiglu
    impl: "our_impls:swiglu"
    when:
      x.dtype: [float16, bfloat16]
      rows: "<= 8192"
    prepare: {x: contiguous}
    fixed: {turn: true}
  - name: golden
    fallback: true
otherwise: error
precision:
  bfloat16: {cosine: 0.9999}
  float16: {cosine: 0.9999}
  float32: {cosine: 0.9999}
cases:
  x: [[1, 256], [8193, 512]]
""",
    IMPLS: """\
class Backend:
    pass


class Pool:
    pass


def total_memory(device_id=0):
    return 1


def set_affinity(call):
    return call.args.get("gpu_id")


def silu_golden(x, out):
    return x


def swiglu(x, out, *, turn):
    return x
""",
}


@dataclass(frozen=True)
class Bench:
    """A workspace and a release as texts; `write` puts them on disk and checks them."""

    root: Path
    upstream: Mapping[str, str] = field(default_factory=lambda: dict(UPSTREAM))
    workspace: Mapping[str, str] = field(default_factory=lambda: dict(WORKSPACE))
    used: bool = False
    """Whether to hear of upstream's uses too: nothing uses most of what tests add to the release."""

    def edit(self, file: str, old: str, new: str) -> Bench:
        """Replace a text that stands exactly once in a file of the workspace or the release."""
        place = "workspace" if file in self.workspace else "upstream"
        files: Mapping[str, str] = getattr(self, place)
        assert files[file].count(old) == 1, f"{old!r} stands {files[file].count(old)} times"
        changed = {**files, file: files[file].replace(old, new)}
        return replace(self, **{place: changed})

    def add(self, file: str, text: str) -> Bench:
        """Append to a file of the workspace or the release, or make one."""
        place = "upstream" if file.startswith("sglang/") else "workspace"
        files: Mapping[str, str] = getattr(self, place)
        before = textwrap.dedent(files.get(file, ""))
        return replace(self, **{place: {**files, file: before + textwrap.dedent(text)}})

    def drop(self, file: str) -> Bench:
        """Leave a file, or all files below a folder, out of the release."""
        kept = {f: t for f, t in self.upstream.items() if not f.startswith(file)}
        return replace(self, upstream=kept)

    def version(self, text: str) -> Bench:
        return self.edit("sglang/version.py", "0.5.19", text)

    def resolver(self) -> Resolver:
        _write(self.root / "release", self.upstream)
        return Resolver(open_release(str(self.root / "release")))

    def catalog(self) -> Catalog:
        _write(self.root / "workspace", self.workspace)
        return load_catalog(self.root / "workspace")

    def report(
        self, *, facts: Facts | None = None, lock: Lock | None = None, beyond: bool = False
    ) -> ReleaseReport:
        catalog = self.catalog()
        facts = facts or self.resolver()
        report = check_release(catalog, facts, lock=lock, beyond_claims=beyond)
        if self.used:
            return report
        heard = tuple(f for f in report.findings if f.code not in CODES_OF_USAGE)
        return replace(report, findings=heard)

    def findings(
        self, *, facts: Facts | None = None, lock: Lock | None = None, beyond: bool = False
    ) -> tuple[Finding, ...]:
        return self.report(facts=facts, lock=lock, beyond=beyond).findings

    def place(self, file: str, needle: str, skip: int = 0) -> str:
        """Return where a text stands in the workspace: `file:line:column`, `skip` characters in."""
        text = self.workspace[file]
        assert text.count(needle) == 1, f"{needle!r} stands {text.count(needle)} times"
        index = text.index(needle) + skip
        line = text.count("\n", 0, index) + 1
        return f"{file}:{line}:{index - text.rfind(chr(10), 0, index)}"


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

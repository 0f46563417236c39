"""Two small releases and the workspace between them, for the tests of the Feature Diff."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from kunlun_adapt.evolve.diff import Change, Fact, FeatureDiff, Item, feature_diff
from kunlun_adapt.upstream import Lock, open_release
from kunlun_adapt.upstream.following import FollowingResolver
from tests.check.bench import Bench

OLD, NEW = "0.5.18", "0.5.19"

BASICS = {
    "sglang/srt/server_args.py": """\
        from typing import List, Optional

        class ServerArgs:
            model_path: str
            page_size: Optional[int] = None
            backend: A[Optional[str], Arg(help="…", choices=BACKENDS)] = None
            _private: bool = False

        BACKENDS = ["triton", "torch"]
        """,
    "sglang/srt/environ.py": """\
        class Envs:
            SGLANG_LOG = EnvBool(False)
            SGLANG_DIR = EnvStr("/tmp")

        """,
    "sglang/srt/plugins/__init__.py": "def load_plugins():\n    pass\n",
    "sglang/srt/layers/attention/attention_registry.py": """\
        def register_attention_backend(name):
            return lambda make: make

        @register_attention_backend("triton")
        def create_triton(runner):
            return None
        """,
    "sglang/srt/layers/quantization/__init__.py": 'QUANTIZATION_METHODS = {"fp8": Fp8}\n',
    "sglang/srt/models/llama.py": """\
        class LlamaForCausalLM:
            pass

        EntryClass = [LlamaForCausalLM]
        """,
    "sglang/srt/model_executor/graphs.py": """\
        from sglang.srt.platforms import current_platform
        from sglang.kernels.ops.activation import silu_and_mul
        from sglang.srt.utils.common import set_affinity

        def wanted():
            return current_platform.get_graph_runner_cls()

        def run(x):
            set_affinity(0, 1)
            return silu_and_mul(x)
        """,
    "sglang/srt/platforms/__init__.py": "current_platform = None\n",
}


@dataclass(frozen=True)
class Pair:
    """The bench's release as it was and as it is; the workspace is that of `new`."""

    old: Bench
    new: Bench
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, bench: Bench) -> Pair:
        for file, text in BASICS.items():
            files = {**bench.upstream, file: text}
            bench = replace(bench, upstream=files)
        return cls(replace(bench.version(OLD), root=bench.root / "old"), bench)

    def edit(self, file: str, old: str, new: str) -> Pair:
        """Change a file of the new release, or of the workspace."""
        return replace(self, new=self.new.edit(file, old, new))

    def add(self, file: str, text: str) -> Pair:
        return replace(self, new=self.new.add(file, text))

    def drop(self, file: str) -> Pair:
        return replace(self, new=self.new.drop(file))

    def before(self, file: str, old: str, new: str) -> Pair:
        """Change a file of the old release only."""
        return replace(self, old=self.old.edit(file, old, new))

    def diff(self) -> FeatureDiff:
        return feature_diff(self.new.catalog(), self.lock, following(self.old), following(self.new))


def following(bench: Bench) -> FollowingResolver:
    bench.resolver()
    return FollowingResolver(open_release(str(Path(bench.root) / "release")))


def change(diff: FeatureDiff, subject: str) -> Change:
    """The one change whose subject is this path, or ends in it."""
    found = [c for c in diff.changes if c.subject == subject or c.subject.endswith(f".{subject}")]
    assert len(found) == 1, [c.subject for c in diff.changes]
    return found[0]


def fact(change: Change, aspect: str) -> Fact:
    """The one fact of an aspect."""
    found = [item for item in change.facts if item.aspect == aspect]
    assert len(found) == 1, change.facts
    return found[0]


def item(diff: FeatureDiff, part: str) -> Item:
    """The one step whose title has this part."""
    found = [step for step in diff.checklist if part in step.title]
    assert len(found) == 1, [step.title for step in diff.checklist]
    return found[0]

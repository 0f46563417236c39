"""The ways to break a plugin, each on a made-up SGLang with the real HookRegistry.

Each is a change of the stage, or of what is on disk once the lock is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.runtime.stage import MAP, RECIPE, Stage

AFFINITY = """\
  - id: near
    why: a test sabotages it
    type: replace
    impl: "ours:affinity"
    at:
      - {target: sglang.srt.utils.common.affinity, args: {gpu_id: gpu_id}, ignores: [nodes]}
"""
NEEDS = '  - {name: fast, impl: "ours:golden", needs: [kunlun_ops.swigl]}\n'
WORKER = "  process.detokenizer: [{call: sglang.srt.worker.run}]\n"
CACHE = "from sglang.srt.memory import Pool\n\n\nclass Cache(Pool):\n    pass\n"
OUR_POOL = "import sglang.srt.memory as memory\n\n\nclass Pool(memory.Pool):\n    pass\n"
CAPABLE = """\
    class SRTPlatform:
            def support_graph(self):
                return False
"""
LAUNCH = """\
import sys

import sglang.srt.utils.common
import sglang.srt.layers
from sglang.srt.plugins import load_plugins

load_plugins()
print("started", *sys.argv[1:])
"""
RUN = """\
def run():
    from sglang.srt.plugins import load_plugins

    load_plugins()
"""
SECOND = """\
from sglang.srt.plugins.hook_registry import HookRegistry, HookSource, HookType


def silu(*args, **kwargs):
    return "theirs"


HookRegistry.register(
    "sglang.kernels.ops.silu", silu, HookType.REPLACE, source=HookSource("second", "second-plugin")
)
"""
NEVER_LOADS = """\
import time

import sglang.srt.utils.common


def run():
    print("started", flush=True)  # it must not come so far
    time.sleep(50)
"""
STARTS_WORKER = """
import multiprocessing

from sglang.srt.worker import run

worker = multiprocessing.get_context("spawn").Process(target=run)
worker.start()
worker.join()
if worker.exitcode:
    sys.exit(worker.exitcode)
print("""
REGISTRY = "sglang/srt/plugins/hook_registry.py"


@dataclass(frozen=True)
class Said:
    """How a start ends: its exit code, and what its words name (a code or id, a place, a hint)."""

    words: tuple[str, ...]
    code: int = 1


@dataclass(frozen=True)
class Sabotage:
    """What is broken, and what is said of it before SGLang is started and by SGLang's process.

    `checked` is what `serve` says; None where only a process can know. `started` is what a process
    says that is started without it; None where that cannot know. `AT` in a place is the line of
    the last hook's target.
    """

    change: Callable[[Stage], Stage]
    checked: Said | None
    started: Said | None
    on_disk: Callable[[Path], None] = lambda root: None
    environment: Mapping[str, str] = field(default_factory=dict)


def whole(stage: Stage, registry: str) -> Stage:
    """The stage with a launcher, a worker that loads plugins, and the real HookRegistry's text."""
    function = "process.scheduler: [{call: sglang.srt.utils.common.affinity}]"
    spelled = stage.edit(MAP, function, "process.scheduler: [{call: sglang.srt.run.run}]")
    launched = spelled.add("sglang/srt/run.py", RUN).add("sglang/launch_server.py", LAUNCH)
    return replace(launched, upstream={**launched.upstream, REGISTRY: registry})


def hooked(stage: Stage, *hooks: str) -> Stage:
    """The stage with more hooks, the last of the map."""
    text = stage.workspace[MAP] + "".join(hooks or (AFFINITY,))
    return replace(stage, workspace={**stage.workspace, MAP: text})


def on(target: str, implementation: str) -> str:
    """The hook on another target, of which nothing is said about the call."""
    head = AFFINITY.replace("ours:affinity", implementation).partition("      - ")[0]
    return f"{head}      - {{target: {target}}}\n"


def _on_disk(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


def _second_replace(stage: Stage) -> Stage:
    return hooked(hooked(stage), AFFINITY.replace("id: near", "id: nearer"))


def _class_held(stage: Stage) -> Stage:
    """A class that another module has derived from by the time hooks are applied."""
    return hooked(
        stage.add("sglang/srt/memory.py", "class Pool:\n    pass\n")
        .add("sglang/srt/cache.py", CACHE)
        .edit("sglang/launch_server.py", "import sglang.srt.layers", "import sglang.srt.cache")
        .add("our_pool.py", OUR_POOL),
        on("sglang.srt.memory.Pool", "our_pool:Pool"),
    )


def _raises_at_import(stage: Stage) -> Stage:
    broken = 'raise RuntimeError("broken on purpose")\n\n\ndef act(call): ...\n'
    return hooked(stage.add("broken.py", broken), AFFINITY.replace("ours:affinity", "broken:act"))


def _second_package(stage: Stage) -> Stage:
    """Another package that is installed, with a platform under our name."""
    points = "[sglang.srt.platforms]\nkunlun = other:activate\n"
    return stage.add("other-1.0.dist-info/METADATA", "Name: other\nVersion: 1.0\n").add(
        "other-1.0.dist-info/entry_points.txt", points
    )


def _for_the_worker(stage: Stage, spelling: str = "") -> Stage:
    """A hook for a process; what that runs in this release is said by `spelling`."""
    worker = AFFINITY.replace("    impl:", "    process: [detokenizer]\n    impl:")
    spelled = stage.edit(MAP, "left_at_default:", f"{spelling}left_at_default:")
    return hooked(spelled.add("sglang/srt/worker.py", NEVER_LOADS), worker)


def _worker_that_never_loads(stage: Stage) -> Stage:
    started = stage.edit("sglang/launch_server.py", "\nprint(", STARTS_WORKER)
    return _for_the_worker(started, WORKER)


SABOTAGES: dict[str, Sabotage] = {
    "target renamed": Sabotage(
        lambda stage: stage,
        Said(("KA101", "silu/silu", f"{RECIPE}:11:", "sglang.kernels.ops does not define")),
        Said(("silu/silu", f"{RECIPE}:11:", "kunlun-adapt validate", "it suggests the edit")),
        _on_disk("sglang/kernels/ops.py", "def silu", "def swish"),
    ),
    "class already imported by another module": Sabotage(
        _class_held,
        None,
        Said(("near", f"{MAP}:AT:", "sglang.srt.cache.Cache", "list them in `repair`")),
    ),
    "two replaces": Sabotage(
        lambda stage: hooked(stage, AFFINITY, AFFINITY.replace("near", "nearer")),
        Said(("KA401", "near (replace)", "nearer (replace)", f"{MAP}:AT:", "merge them")),
        Said(("near", f"{MAP}:", "is replaced again", "the last one win")),
    ),
    "two replaces, one of them another plugin's": Sabotage(
        lambda stage: stage.add("second.py", SECOND).edit(
            "sglang/launch_server.py", "\nload_plugins()", "\nimport second\n\nload_plugins()"
        ),
        None,
        Said(
            (
                "silu/silu",
                f"{RECIPE}:11:",
                "sglang.kernels.ops.silu is replaced by second-plugin (second.silu); it is "
                "kunlun-adapt's as well",
                "SGLANG_PLUGINS says which plugins are loaded",
            )
        ),
    ),
    "replaced signature": Sabotage(
        hooked,
        Said(("KA105", "near", f"{MAP}:AT:", "`ignores: {nodes: $any, bind: null}`")),
        Said(("near", f"{MAP}:AT:", "takes bind, neither mapped", "it suggests the edit")),
        _on_disk("sglang/srt/utils/common.py", "nodes=1", "nodes=1, bind=None"),
    ),
    "hook on a module constant": Sabotage(
        lambda stage: hooked(stage, on("sglang.srt.utils.common.LIMIT", "ours:affinity")),
        Said(("KA122", "near", f"{MAP}:AT:", "use `type: set`")),
        Said(("near", f"{MAP}:AT:", "a value takes `type: set`")),
    ),
    "implementation that raises at import": Sabotage(
        _raises_at_import,
        None,
        Said(("near", f"{MAP}:AT:", "broken:act cannot be loaded: RuntimeError: broken on")),
    ),
    "missing vendor op": Sabotage(
        lambda stage: stage.edit(RECIPE, "kernels:\n", f"kernels:\n{NEEDS}"),
        Said(("KA307", "silu/silu", f"{RECIPE}:14:", "did you mean kunlun_ops.swiglu?")),
        Said(("silu/silu", f"{RECIPE}:11:", "needs kunlun_ops.swigl", "install the stack")),
    ),
    "second plugin under our name": Sabotage(
        _second_package,
        Said(("kunlun = other:activate (from other)", "try: uninstall"), code=2),
        Said(("kunlun = other:activate (from other)", "uninstall the one")),
    ),
    "second plugin chosen": Sabotage(
        lambda stage: stage,
        Said(("SGLANG_PLATFORM=other", "try: unset SGLANG_PLATFORM"), code=2),
        None,
        environment={"SGLANG_PLATFORM": "other"},
    ),
    "release outside the range": Sabotage(
        lambda stage: stage,
        Said(("KA009", f"{MAP}:4:", "sglang 2.5.0", "--beyond-claims")),
        Said(("sglang 2.5.0 lies outside", "widen the claim", "KUNLUN_ADAPT_UNVERIFIED=1")),
        _on_disk("sglang/version.py", "1.2.0", "2.5.0"),
    ),
    "unknown YAML key": Sabotage(
        lambda stage: stage.edit(MAP, "  - id: choices\n", "  - id: choices\n    unknown: 1\n"),
        Said(("KA003", f"{MAP}:23:", "hooks[0]", "known keys: id, why")),
        Said(("KA003", f"{MAP}:23:", "hooks[0]", "kunlun-adapt validate")),
    ),
    "worker process that is not spelled": Sabotage(
        _for_the_worker,
        Said(("KA407", "near", f"{MAP}:", "process.detokenizer")),
        Said(("near", f"{MAP}:AT:", "what the detokenizer process runs", "`interface`")),
    ),
    "worker process that never loads plugins": Sabotage(
        _worker_that_never_loads,
        Said(("KA407", f"{MAP}:15:", "never calls load_plugins()", "add `loads_plugins: false`")),
        Said(
            (
                "in the detokenizer process",
                "near",
                f"{MAP}:AT:",
                "run never calls load_plugins(): let process.detokenizer in `interface` say",
            )
        ),
    ),
    "capability left at its default": Sabotage(
        lambda stage: stage.edit(
            "sglang/srt/platforms/interface.py", "    class SRTPlatform:", CAPABLE
        ),
        Said(("warning KA203", f"{MAP}:1:", "support_graph", "left_at_default: add"), code=0),
        None,
    ),
}

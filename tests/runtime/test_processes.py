"""Hooks in the processes of SGLang, also in those in which it loads no plugins."""

from __future__ import annotations

import json

import pytest

from tests.runtime.stage import MAP, Stage, fine, refused

AFFINITY = "sglang.srt.utils.common.affinity"
HOOK = f"""\
  - id: near
    why: it differs by process
    type: replace
    process: [detokenizer]
    impl: "ours:affinity"
    at: [{{target: {AFFINITY}, args: {{gpu_id: gpu_id}}, ignores: [nodes]}}]
"""
SPELLED = (
    "  process.detokenizer: "
    "[{call: sglang.srt.detokenizer.run_detokenizer_process, loads_plugins: false}]\n"
    "  process.tokenizer: [{call: sglang.srt.http_server.init_worker, loads_plugins: false}]\n"
)
FILES = {
    "sglang/srt/detokenizer.py": """\
        import sglang.srt.utils.common as common

        def run_detokenizer_process(say, *more):
            say(common.affinity(3))
            from kunlun_adapt.runtime import ledger, roles
            say(roles.current(), ledger.LEDGER.entries["near"].state)
        """,
    "sglang/srt/http_server.py": """\
        import sglang.srt.utils.common as common

        async def init_worker():
            return common.affinity(3)

        def serve():
            import asyncio
            print(asyncio.run(init_worker()))
            from kunlun_adapt.runtime import roles
            print(roles.current())
        """,
    "sglang/srt/engine.py": """\
        from sglang.srt.detokenizer import run_detokenizer_process

        class Engine:
            run = staticmethod(run_detokenizer_process)
        """,
}
START = """\
import multiprocessing
def main(target, *args, method="spawn"):
    child = multiprocessing.get_context(method).Process(target=target, args=args)
    child.start()
    child.join()
    print("exit", child.exitcode)
"""
DETOKENIZER = f"{START}from sglang.srt.engine import Engine\nmain(Engine.run, print)\n"


@pytest.fixture
def served(stage: Stage) -> Stage:
    for file, text in FILES.items():
        stage = stage.add(file, text)
    stage = stage.edit(MAP, "hooks:\n", f"hooks:\n{HOOK}")
    return stage.edit(MAP, "  process.scheduler", f"{SPELLED}  process.scheduler")


def test_a_process_without_plugins_gets_its_hooks_before_it_runs(served: Stage) -> None:
    out = fine(served.run(DETOKENIZER))
    assert out.splitlines() == ["('ours', 3)", "detokenizer applied", "exit 0"]


def test_the_process_that_starts_it_does_not(served: Stage) -> None:
    code = """
    from sglang.srt.plugins import load_plugins
    import sglang.srt.engine, sglang.srt.utils.common as common
    load_plugins()
    from kunlun_adapt.runtime import ledger, roles
    print(common.affinity(3), ledger.LEDGER.entries["near"].detail, roles.current())
    """
    assert fine(served.run(code)).strip() == "('upstream', 3) for detokenizer only main"


def test_a_process_that_was_imported_before_us_gets_them_too(served: Stage) -> None:
    """Its parent must hand it a function that both of them find under one name."""
    code = f"""
import sys, types
import sglang.srt.utils
sys.modules["sglang.srt.utils.common"] = types.ModuleType("too early")
import sglang.srt.engine
del sys.modules["sglang.srt.utils.common"]
import sglang.srt.utils.common
{DETOKENIZER}"""
    out = fine(served.run(code))
    assert out.splitlines() == ["('ours', 3)", "detokenizer applied", "exit 0"]


def test_a_worker_that_becomes_a_tokenizer_gets_its_hooks(served: Stage) -> None:
    here = served.edit(MAP, "process: [detokenizer]", "process: [main, tokenizer]")
    code = f"{START}import sglang.srt.http_server as s\nmain(s.serve)\n"
    assert fine(here.run(code)).splitlines() == ["('ours', 3)", "tokenizer", "exit 0"]


def test_a_hook_that_fails_there_ends_the_process(served: Stage) -> None:
    broken = served.edit(MAP, "ours:affinity", "gone:affinity")
    done = broken.run(DETOKENIZER)
    assert done.stdout.split() == ["exit", "1"]
    for needle in ("the start is refused", "near", "gone:affinity cannot be loaded"):
        assert needle in done.stderr
    assert "in the detokenizer process" in done.stderr


def test_a_forked_process_is_told_that_it_has_the_wrong_hooks(served: Stage) -> None:
    code = f"""{START}
from sglang.srt.plugins import load_plugins
from sglang.srt.engine import Engine
load_plugins()
main(Engine.run, print, method="fork")
"""
    done = served.run(code)
    assert done.stdout.split() == ["exit", "1"]
    assert "this process has those of the main process already" in done.stderr
    # Before the parent has any, a forked child gets its own.
    first = served.run(code.replace("load_plugins()\n", ""), write=False)
    assert fine(first).splitlines() == ["('ours', 3)", "detokenizer applied", "exit 0"]


def test_a_forked_helper_has_what_its_parent_has(served: Stage) -> None:
    here = served.edit(MAP, "    process: [detokenizer]\n", "")
    code = f"""{START}
from sglang.srt.plugins import load_plugins
import sglang.srt.utils.common as common
load_plugins()
def helper():
    from kunlun_adapt.plugin import activate, register
    from kunlun_adapt.runtime import ledger
    before = common.affinity
    assert activate() and register() is None and load_plugins() is None
    print(common.affinity is before, common.affinity(3), common.CHOICES)
    print([ledger.LEDGER.entries[id].state for id in ("near", "choices")])
main(helper, method="fork")
"""
    assert fine(here.run(code)).splitlines() == [
        "True ('ours', 3) ['triton', 'tiny']",
        "['applied', 'applied']",
        "exit 0",
    ]


def test_a_process_of_which_nobody_knows_what_it_runs_is_refused(served: Stage) -> None:
    lost = served.edit(MAP, "run_detokenizer_process, loads", "run_gone, loads")
    refused(lost.run("import sglang.srt.utils.common"), "near", "the detokenizer process runs")
    optional = lost.edit(MAP, 'impl: "ours:affinity"', 'impl: "ours:affinity"\n    required: false')
    done = optional.run("import sglang.srt.utils.common")
    fine(done)
    assert "near is for the detokenizer process, and nothing says what that runs" in done.stderr


def test_what_a_process_runs_must_be_a_function(served: Stage) -> None:
    other = served.add("sglang/srt/detokenizer.py", "\nrun_detokenizer_process = 1\n")
    refused(
        other.run("import sglang.srt.detokenizer"),
        "our hooks cannot reach the detokenizer process",
        "process.detokenizer",
    )


def test_a_process_that_runs_what_it_is_handed(served: Stage) -> None:
    code = f"""{START}
from sglang.srt.engine import Engine
import sglang.srt.http_server as s
main(s.run_with, Engine.run, print)
"""
    handed = served.add(
        "sglang/srt/http_server.py",
        "\ndef run_with(function, *args):\n"
        "    from kunlun_adapt.runtime import roles\n    print(roles.current())\n"
        "    function(*args)\n",
    )
    assert fine(handed.run(code)).splitlines()[:2] == ["detokenizer", "('ours', 3)"]


@pytest.mark.parametrize(
    ("title", "ranks"),
    [
        ("sglang::scheduler", {}),
        ("sglang::scheduler_TP1", {"TP": 1}),
        ("sglang::scheduler_DP0_PP1_ATTN_CP0_MOE_DP12_TP3_EP0",
         {"DP": 0, "PP": 1, "ATTN_CP": 0, "MOE_DP": 12, "TP": 3, "EP": 0}),
        ("sglang::tokenizer_worker:4711", {}),
        ("python -m other_TP1", {}),
    ],
)  # fmt: skip
def test_ranks_are_in_the_ledger(
    served: Stage, title: str, ranks: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = tmp_path_factory.mktemp("run")
    code = f"""
    import sys, types
    sys.modules["setproctitle"] = types.SimpleNamespace(getproctitle=lambda: {title!r})
    import sglang.srt.utils.common
    from kunlun_adapt.runtime import ledger
    ledger.write()
    """
    fine(served.run(code, KUNLUN_ADAPT_RUN_DIR=str(run)))
    (file,) = run.glob("*.json")
    assert json.loads(file.read_text())["ranks"] == ranks

"""The early door: what is bound in which module, and how a start that cannot work ends."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.runtime.stage import LATE, MAP, RECIPE, SHOW, STARTED, Stage, fine, refused

CALLS = """
from ours import Thing
import sglang.kernels.ops as ops
print(layers.silu(Thing()), ops.silu(Thing()), ops.silu.__wrapped__(1))
"""


def test_later_importers_bind_the_generated_function(stage: Stage) -> None:
    out = fine(stage.run(STARTED + CALLS))
    assert out.split() == ["ours", "ours", "upstream"]


def test_a_forward_is_registered_under_the_dispatch_key_of_the_profile(stage: Stage) -> None:
    out = fine(stage.run(STARTED + "print(layers.Op._oot_forward_registry)"))
    assert "'tinykey': {<class 'sglang.srt.layers.Silu'>: <function bind_Silu" in out


def test_all_bindings_are_read_back(stage: Stage) -> None:
    states = fine(stage.run(STARTED + SHOW))
    assert set(eval(states).values()) == {"applied"} and len(eval(states)) == 5


def test_the_module_that_resolves_the_platform_is_patched_when_it_is_done(stage: Stage) -> None:
    late = stage.edit(RECIPE, "kernels:\n", LATE + "kernels:\n")
    code = (
        STARTED + "from ours import Thing\nprint(common.late(Thing()), common.late.__wrapped__(1))"
    )
    assert fine(late.run(code)).split() == ["ours", "upstream"]


def test_a_failed_import_is_patched_when_it_succeeds_later(stage: Stage) -> None:
    late = stage.edit(RECIPE, "kernels:\n", LATE + "kernels:\n").add(
        "sglang/srt/utils/common.py",
        """
        import os
        if os.environ.pop("FAIL_ONCE", ""):
            raise ImportError("not yet")
        """,
    )
    code = """
    try:
        import sglang.srt.utils.common
    except ImportError as error:
        print(error)
    import sglang.srt.utils.common as common
    from ours import Thing
    print(common.late(Thing()))
    """
    assert fine(late.run(code, FAIL_ONCE="1")).split() == ["not", "yet", "ours"]


def test_a_module_imported_before_us_is_patched_too(stage: Stage) -> None:
    out = fine(stage.run("import sglang.kernels.ops\n" + STARTED + CALLS))
    assert out.split() == ["ours", "ours", "upstream"]


def test_an_original_taken_before_us_is_refused(stage: Stage) -> None:
    early = stage.add("sglang/early.py", "from sglang.kernels.ops import silu\n")
    done = early.run("import sglang.early\n" + STARTED)
    at = early.workspace[RECIPE].splitlines()
    line = next(i for i, text in enumerate(at, 1) if "sglang.kernels.ops.silu" in text)
    refused(done, "silu/silu", f"{RECIPE}:{line}:", "sglang.early.silu", "before kunlun-adapt")


def test_an_original_taken_halfway_through_the_import_is_refused(stage: Stage) -> None:
    circular = stage.add("sglang/kernels/ops.py", "\nimport sglang.kernels.user\n").add(
        "sglang/kernels/user.py", "from sglang.kernels.ops import silu\n"
    )
    done = circular.run(STARTED + "print('served')")
    refused(done, "silu/silu", "sglang.kernels.user.silu", "while it was imported")
    assert "served" not in done.stdout


def test_a_kernel_that_does_not_import_ends_the_process_late(stage: Stage) -> None:
    broken = stage.edit(RECIPE, "ours:golden", "ours:gone")
    done = broken.run(
        "import sglang.srt.utils.common\nprint('started')\n"
        "try:\n    import sglang.kernels.ops\nexcept Exception: pass\nprint('served')"
    )
    refused(done, "silu/silu", "cannot import name 'gone'")
    assert done.stdout.split() == ["started"]


def test_a_late_failure_in_another_thread_ends_the_process_as_well(stage: Stage) -> None:
    broken = stage.edit(RECIPE, "ours:golden", "ours:gone")
    code = """
    import threading, time
    import sglang.srt.utils.common
    thread = threading.Thread(target=lambda: __import__("sglang.kernels.ops"))
    thread.start()
    thread.join()
    time.sleep(1)
    print("served")
    """
    done = broken.run(code)
    refused(done, "silu/silu")
    assert "served" not in done.stdout


def test_a_platform_that_is_exchanged_later_ends_the_process_as_well(stage: Stage) -> None:
    code = (
        STARTED
        + SHOW
        + (
            "import sglang.srt.platforms as platforms, time\n"
            "platforms._current_platform = object()\n"
            "time.sleep(20)\nprint('served')\n"
        )
    )
    run = stage.root / "run"
    done = stage.run(code, KUNLUN_ADAPT_RUN_DIR=str(run))
    refused(done, "factory/device.name", "upstream's platform is object, without our device_name")
    assert "served" not in done.stdout
    (file,) = run.glob("*.json")
    assert "the start is refused" in json.loads(file.read_text())["refused"]


@pytest.mark.parametrize(
    ("theirs", "fault"),
    [
        ("layers.Op.register_oot_forward(layers.Silu, their, 'tinykey')", "holds __main__.their"),
        ("layers.Silu = type('Silu', (layers.Op,), {})", "holds __main__.Silu"),
        ("layers.Op._oot_forward_registry.clear()", "holds sglang.srt.layers.Silu"),
    ],
)
def test_a_forward_that_upstream_does_not_find_any_more_is_refused(
    stage: Stage, theirs: str, fault: str
) -> None:
    done = stage.run(STARTED + f"def their(self, x): ...\n{theirs}\n" + SHOW)
    refused(done, "silu/Silu", f"sglang.srt.layers.Silu {fault}, from which nothing leads to ours")


def test_what_is_found_missing_as_the_process_ends_is_said(stage: Stage) -> None:
    code = (
        STARTED
        + SHOW
        + (
            "import sglang.srt.platforms as platforms, time\n"
            "ledger.INTERVAL = 60\ntime.sleep(1)\n"
            "platforms._current_platform = object()\nprint('ends')\n"
        )
    )
    run = stage.root / "run"
    done = stage.run(code, KUNLUN_ADAPT_RUN_DIR=str(run))
    assert "ends" in fine(done) and "upstream's platform is object" in done.stderr
    assert "Traceback" not in done.stderr
    (file,) = run.glob("*.json")
    assert json.loads(file.read_text())["ended"] and "is refused" in file.read_text()


def test_a_binding_that_is_not_required_lets_the_start_go_on(stage: Stage) -> None:
    broken = stage.edit(RECIPE, "ours:golden", "ours:gone")
    for target in (
        "sglang.kernels.ops.silu, style: function,",
        "sglang.srt.layers.Silu, style: oot_forward,",
    ):
        broken = broken.edit(RECIPE, target, f"{target} required: false,")
    done = broken.run(STARTED + SHOW + "print(layers.silu(1))")
    assert "'silu/silu': 'failed'" in fine(done) and done.stdout.split()[-1] == "upstream"
    assert "binding silu/silu is not in effect" in done.stderr


def test_activating_twice_is_activating_once(stage: Stage) -> None:
    code = STARTED + "from kunlun_adapt.plugin import activate\n" + "print(activate())\n" + CALLS
    out = fine(stage.run(code)).split()
    assert out == ["kunlun_adapt_generated.platform:TinyPlatform", "ours", "ours", "upstream"]


def test_what_is_bound_is_not_loaded_a_second_time(stage: Stage) -> None:
    """Upstream's own would be back, and nothing would say so."""
    hook = "  - id: near\n    why: a test\n    type: replace\n    impl: 'ours:affinity'\n" + (
        "    at: [{target: sglang.srt.utils.common.affinity, args: {gpu_id: gpu_id}, "
        "ignores: [nodes]}]\n"
    )
    code = """
    import importlib
    import sglang.srt.plugins, sglang.kernels.ops as ops, sglang.version, kunlun_adapt.plugin
    from ours import Thing
    sglang.srt.plugins.load_plugins()
    for module in (ops, common):
        try:
            importlib.reload(module)
        except ImportError as error:
            print("kunlun-adapt has bound names in", error.name, "undo" in str(error))
    for module in (sglang.version, kunlun_adapt.plugin):
        importlib.reload(module)
    print(kunlun_adapt.plugin.activate(), kunlun_adapt.plugin.register())
    sglang.srt.plugins.hook_registry.HookRegistry.apply_hooks()
    print(ops.silu(Thing()), common.affinity(1), common.CHOICES)
    """
    out = fine(stage.edit(MAP, "hooks:\n", f"hooks:\n{hook}").run(STARTED + textwrap.dedent(code)))
    assert out.splitlines() == [
        "kunlun-adapt has bound names in sglang.kernels.ops True",
        "kunlun-adapt has bound names in sglang.srt.utils.common True",
        "kunlun_adapt_generated.platform:TinyPlatform None",
        "ours ('ours', 1) ['triton', 'tiny']",
    ]


def test_a_setting_of_the_user_stays(stage: Stage) -> None:
    code = STARTED + "import os; print(os.environ['TINY_SETTING'])"
    assert fine(stage.run(code)).split() == ["1"]
    assert fine(stage.run(code, TINY_SETTING="0")).split() == ["0"]


SHIM = """\
shims:
  - {module: cuda_only, provide: ours, why: upstream imports it}
"""
IMPORTED = STARTED + "import cuda_only; print(cuda_only.__name__)" + SHOW


def test_a_shim_stands_in_for_what_is_absent(stage: Stage) -> None:
    out = fine(stage.add(MAP, SHIM).run(IMPORTED))
    assert out.splitlines()[0] == "ours" and "'shim/cuda_only': 'applied'" in out


def test_a_shim_never_shadows_what_is_installed(stage: Stage) -> None:
    out = fine(stage.add(MAP, SHIM).add("cuda_only.py", "").run(IMPORTED))
    assert out.splitlines()[0] == "cuda_only" and "'shim/cuda_only': 'elsewhere'" in out


def test_an_empty_folder_in_the_place_of_a_package_is_reported(stage: Stage) -> None:
    remains = stage.add(MAP, SHIM).add("cuda_only/left.so", "")
    refused(remains.run(IMPORTED), "shim/cuda_only", "without a package in it", f"{MAP}:")


def test_a_broken_parent_package_is_reported(stage: Stage) -> None:
    shim = SHIM.replace("cuda_only", "cuda_only.ops")
    broken = stage.add(MAP, shim).add("cuda_only/__init__.py", "raise OSError('no libcuda')")
    refused(broken.run(STARTED), "shim/cuda_only.ops", "OSError: no libcuda")


def test_a_stand_in_within_a_package_is_an_attribute_of_it(stage: Stage) -> None:
    shim = SHIM.replace("cuda_only", "cuda_only.ops")
    within = stage.add(MAP, shim).add("cuda_only/__init__.py", "")
    code = STARTED + "import cuda_only.ops; print(cuda_only.ops.__name__)"
    assert fine(within.run(code)).split() == ["ours"]


def test_a_stand_in_that_raises_is_reported(stage: Stage) -> None:
    broken = stage.add(MAP, SHIM.replace("ours", "bad")).add("bad.py", "1 / 0")
    refused(broken.run(STARTED), "shim/cuda_only", "ZeroDivisionError", f"{MAP}:")


def test_all_early_failures_stand_in_one_table(stage: Stage) -> None:
    broken = (
        stage.add(MAP, SHIM.replace("ours", "bad"))
        .add("bad.py", "1 / 0")
        .add("sglang/early.py", "from sglang.kernels.ops import silu\n")
    )
    refused(broken.run("import sglang.early\n" + STARTED), "shim/cuda_only", "silu/silu", "2 req")


@pytest.mark.parametrize("style", ["staticmethod", "classmethod", "property"])
def test_a_function_binding_leaves_descriptors_alone(stage: Stage, style: str) -> None:
    inside = stage.edit(
        RECIPE, "{target: sglang.kernels.ops.silu,", "{target: sglang.kernels.ops.Ops.silu,"
    ).add(
        "sglang/kernels/ops.py",
        f"""
        class Ops:
            @{style}
            def silu(input, out=None):
                return "upstream"
        """,
    )
    done = inside.run("import sglang.kernels.ops\n" + STARTED)
    refused(done, "silu/silu", f"sglang.kernels.ops.Ops.silu is a {style}", "type `replace`")

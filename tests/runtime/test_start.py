# ruff: noqa: E501 -- the YAML lines stay whole
"""What `activate()` and `register()` do before anything is bound, and what they refuse."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from tests.runtime.stage import MAP, RECIPE, ROOT, SHOW, STARTED, Stage, fine, refused

HEAVY = ("torch", "sglang", "yaml", "pydantic", "jinja2", "packaging", "wrapt")
LOADED = f"import sys; print([m for m in {HEAVY} if m in sys.modules])"
ACTIVATE = "from kunlun_adapt.plugin import activate, register\nprint(activate())\n"


def test_without_a_device_nothing_happens_and_nothing_is_imported(stage: Stage) -> None:
    done = stage.drop("tiny_runtime.py").run(ACTIVATE + "register()\n" + LOADED)
    assert fine(done).splitlines() == ["None", "[]"]
    assert not done.stderr


def test_a_warm_start_imports_neither_parser_nor_compiler(stage: Stage) -> None:
    code = ACTIVATE + (
        "import sys; print([m for m in ('yaml', 'pydantic', 'jinja2', 'packaging', 'sglang', "
        "'torch', 'kunlun_adapt.documents', 'kunlun_adapt.plan') if m in sys.modules])"
    )
    own = str(stage.root / "cache")
    cold = fine(stage.run(code, KUNLUN_ADAPT_CACHE=own)).splitlines()
    assert cold[0] == "kunlun_adapt_generated.platform:TinyPlatform"
    assert "jinja2" in cold[1] and "sglang" not in cold[1]
    warm = fine(stage.run(code, write=False, KUNLUN_ADAPT_CACHE=own)).splitlines()
    assert warm == [cold[0], "[]"]


@pytest.mark.parametrize(
    "probe",
    [
        "  probe:\n    module: tiny_runtime",
        '  "probe": {module: tiny_runtime}',
        '  probe: {"module": "tiny_runtime"}',
        "  # probe: {module: other}\n  probe: {  module: 'tiny_runtime'  }",
        "  probe: &p {module: tiny_runtime}",
    ],
)
def test_the_probe_is_found_however_the_map_is_written(stage: Stage, probe: str) -> None:
    other = stage.edit(MAP, "  probe: {module: tiny_runtime}", probe)
    code = "from kunlun_adapt.runtime.probe import profile; print(profile())"
    assert fine(other.run(code)).split() == ["card"]
    assert fine(other.drop("tiny_runtime.py").run(code, PYTHONPATH=_only_repository())) == "None\n"


def test_a_text_that_looks_like_the_probe_is_not_it(stage: Stage) -> None:
    misleading = "name: tiny\nstack:\n  - note: |\n      \n        probe: {module: json}\n"
    other = stage.edit(MAP, "name: tiny\nsglang", f"{misleading}sglang")
    code = "from kunlun_adapt.runtime.probe import probe_module; print(probe_module())"
    assert fine(other.run(code)).split() == ["tiny_runtime"]


def test_an_unreadable_map_is_refused_and_not_taken_for_no_device(stage: Stage) -> None:
    broken = stage.edit(MAP, "  probe: {module: tiny_runtime}", "  probe: {module: tiny_runtime")
    refused(
        broken.run(ACTIVATE), "whether there is a device cannot be told", "kunlun-adapt validate"
    )


def test_a_workspace_that_is_not_there_is_refused(stage: Stage) -> None:
    done = stage.run(ACTIVATE, KUNLUN_ADAPT_WORKSPACE=str(stage.root / "nowhere"))
    refused(done, "platform_map.yaml is missing", "KUNLUN_ADAPT_WORKSPACE")


def test_simulator_beside_the_real_runtime_is_refused(stage: Stage) -> None:
    done = stage.run(ACTIVATE, KUNLUN_ADAPT_SIMULATOR="1")
    refused(done, "both a card and the simulator", "tiny_runtime is installed", "unset")


def test_faults_for_the_simulator_beside_the_real_runtime_are_refused(stage: Stage) -> None:
    done = stage.run(ACTIVATE, KUNLUN_ADAPT_SIMULATOR_FAULTS="nan kunlun_ops.swiglu")
    refused(done, "there is a card", "tiny_runtime is installed", "only the simulated device fails")


def test_faults_for_a_simulator_that_was_not_asked_for_are_refused(stage: Stage) -> None:
    bare = stage.drop("tiny_runtime.py")
    done = bare.run(ACTIVATE, KUNLUN_ADAPT_SIMULATOR_FAULTS="nan kunlun_ops.swiglu")
    refused(done, "there is no simulator", "KUNLUN_ADAPT_SIMULATOR=1 is not", "unset")
    assert fine(bare.run(ACTIVATE, write=False)) == "None\n"


def test_an_empty_folder_in_the_place_of_the_runtime_is_no_card(stage: Stage) -> None:
    bare = stage.drop("tiny_runtime.py")
    (bare.tree / "tiny_runtime").mkdir(parents=True)
    assert fine(bare.run(ACTIVATE)) == "None\n"
    imported = "import tiny_runtime\n" + ACTIVATE
    assert fine(bare.run(imported, write=False)) == "None\n"
    (bare.tree / "tiny_runtime" / "__init__.py").touch()
    assert fine(bare.run(ACTIVATE, write=False)) != "None\n"


def test_a_plugin_list_without_our_hooks_is_refused(stage: Stage) -> None:
    done = stage.run(STARTED, SGLANG_PLUGINS="other, kunlun")
    refused(done, "leaves out kunlun_hooks", "SGLANG_PLUGINS=other,kunlun,kunlun_hooks")
    listed = stage.run(STARTED, write=False, SGLANG_PLUGINS="kunlun,kunlun_hooks")
    fine(listed)


def test_a_platform_chosen_without_us_is_refused_where_there_is_a_device(stage: Stage) -> None:
    code = """
    import sglang.srt.platforms as platforms
    platforms._current_platform = object()  # SGLANG_PLUGINS kept our platform out
    from sglang.srt.plugins import load_plugins
    load_plugins()
    """
    done = stage.run(code, SGLANG_PLUGINS="kunlun_hooks")
    refused(done, "the platform was not activated", "set SGLANG_PLATFORM=kunlun, or")


def test_hooks_resolve_the_platform_where_nothing_has_yet(stage: Stage) -> None:
    assert "'choices': 'applied'" in fine(stage.run(SHOW))


def test_another_package_with_our_entry_point_name_is_refused(stage: Stage) -> None:
    other = stage.add("other-1.0.dist-info/METADATA", "Name: other\nVersion: 1.0\n").add(
        "other-1.0.dist-info/entry_points.txt",
        "[sglang.srt.platforms]\nkunlun = other:activate\n",
    )
    refused(other.run(STARTED), "kunlun = other:activate (from other)", "uninstall")


def test_a_release_outside_the_claim_is_refused_and_can_be_tried(stage: Stage) -> None:
    newer = stage.edit("sglang/version.py", "1.2.0", "2.1.0")
    refused(
        newer.run(STARTED), "sglang 2.1.0 lies outside", ">=1.0,<2", "KUNLUN_ADAPT_UNVERIFIED=1"
    )
    tried = newer.run(STARTED + SHOW, KUNLUN_ADAPT_UNVERIFIED="1")
    assert "'silu/silu': 'applied'" in fine(tried)
    assert "trying it, since KUNLUN_ADAPT_UNVERIFIED=1" in tried.stderr


def test_that_a_release_is_not_claimed_is_said_at_every_start(stage: Stage) -> None:
    newer = stage.edit("sglang/version.py", "1.2.0", "2.1.0")
    for _ in range(2):
        done = newer.run(
            STARTED
            + "from kunlun_adapt.runtime import ledger; print(ledger.snapshot()['unverified'])",
            KUNLUN_ADAPT_UNVERIFIED="1",
        )
        assert fine(done).split()[-1] == "True"
        assert "trying it, since KUNLUN_ADAPT_UNVERIFIED=1" in done.stderr
    refused(newer.run(STARTED, KUNLUN_ADAPT_UNVERIFIED="yes"), "says neither yes nor no")


def test_the_advice_names_the_workspace_that_was_used(stage: Stage) -> None:
    broken = stage.edit(RECIPE, "style: function", "style: funktion")
    root = stage.root / "workspace"
    refused(broken.run(STARTED), f"run kunlun-adapt validate --workspace {root}")


def test_a_member_that_hands_out_what_is_not_there_fails_by_name(stage: Stage) -> None:
    code = """
    from kunlun_adapt.runtime import doors, ledger
    binder = doors._binder
    binder.member("factory/gone", "device_name", "json:NoSuchPool")
    binder.member("factory/leaves", "device_name", "leaving:Pool")
    binder.load_members()
    binder.read_members()
    print([e.detail for e in ledger.LEDGER.entries.values() if e.state == "failed"])
    """
    stage.write()
    (stage.tree / "leaving.py").write_text("raise SystemExit(0)\n")
    text = fine(stage.run(STARTED + textwrap.dedent(code), write=False))
    assert "json:NoSuchPool cannot be loaded: AttributeError" in text
    assert "leaving:Pool cannot be loaded: SystemExit: 0" in text


def test_a_release_that_is_not_locked_is_read_and_that_is_said(stage: Stage) -> None:
    stage.write()
    (stage.root / "workspace" / "adapt.lock").unlink()
    done = stage.run(STARTED + SHOW, write=False)
    assert "'silu/silu': 'applied'" in fine(done)
    assert "it is not in the lock; reading the installed tree" in done.stderr


def test_a_patched_tree_is_read_again_and_that_is_said(stage: Stage) -> None:
    fine(stage.run(STARTED))
    path = stage.tree / "sglang" / "kernels" / "ops.py"
    path.write_text(path.read_text().replace("input, out", "input, extra=1, out"))
    done = stage.run(STARTED, write=False)
    assert "1 file(s) (sglang/kernels/ops.py) differ from the lock" in done.stderr
    refused(done, f"silu/silu  ({stage.root}/workspace/{RECIPE}:", "takes extra, neither mapped")


def test_a_document_that_says_too_little_is_refused_on_a_locked_tree_too(stage: Stage) -> None:
    less = stage.edit(RECIPE, "args: {x: input, out: out}", "args: {x: input}")
    refused(less.run(STARTED), "silu/silu", "takes out, neither mapped")


def test_a_patched_body_is_read_again_and_serves(stage: Stage) -> None:
    fine(stage.run(STARTED))
    path = stage.tree / "sglang" / "kernels" / "ops.py"
    path.write_text(path.read_text() + "# patched\n")
    done = stage.run(STARTED + SHOW, write=False)
    assert "'silu/silu': 'applied'" in fine(done)
    assert "differ from the lock; reading the installed tree" in done.stderr


STRICT = {"KUNLUN_ADAPT_STRICT": "1"}


def test_a_replaced_function_that_is_not_as_locked_is_said_and_can_be_refused(stage: Stage) -> None:
    stage.write()
    path = stage.tree / "sglang" / "kernels" / "ops.py"
    path.write_text(path.read_text().replace('"upstream"', '"upstream, patched"'))
    done = stage.run(STARTED, write=False)
    fine(done)
    what = (
        "sglang.kernels.ops.silu is replaced, and its body is not what was locked of sglang 1.2.0"
    )
    assert f"silu/silu: {what} (sglang/kernels/ops.py:1" in done.stderr
    refused(
        stage.run(STARTED, write=False, **STRICT),
        "1 replaced symbol(s)",
        f"silu/silu  ({stage.root}/workspace/{RECIPE}:",
        what,
        "kunlun-adapt lock",
    )


def test_what_is_not_replaced_or_says_the_same_may_be_patched(stage: Stage) -> None:
    stage.write()
    path = stage.tree / "sglang" / "kernels" / "ops.py"
    path.write_text(f"# patched\n{path.read_text()}\ndef other():\n    return 1\n")
    done = stage.run(STARTED + SHOW, write=False, **STRICT)
    assert "'silu/silu': 'applied'" in fine(done) and "is replaced" not in done.stderr


@pytest.mark.parametrize(("body", "same"), [("upstream", True), ("upstream, newer", False)])
def test_a_release_that_is_not_locked_is_compared_with_the_one_before(
    stage: Stage, body: str, same: bool
) -> None:
    stage.write()
    (stage.tree / "sglang" / "version.py").write_text('__version__ = "1.3.0"\n')
    path = stage.tree / "sglang" / "kernels" / "ops.py"
    path.write_text(path.read_text().replace("upstream", body))
    done = stage.run(STARTED, write=False, **STRICT)
    assert "sglang 1.3.0 in" in done.stderr and "it is not in the lock" in done.stderr
    if same:
        fine(done)
    else:
        refused(done, "silu/silu", "its body is not what was locked of sglang 1.2.0")


def test_strict_takes_nothing_that_no_lock_holds(stage: Stage) -> None:
    stage.write()
    (stage.root / "workspace" / "adapt.lock").unlink()
    done = stage.run(STARTED, write=False, **STRICT)
    refused(done, "2 replaced symbol(s)", "silu/Silu", "the lock does not hold it")
    assert "neither yes nor no" in stage.run(STARTED, KUNLUN_ADAPT_STRICT="x").stderr


NEAR = """\
  - id: near
    why: a user adds it
    type: replace
    impl: "ours:affinity"
    at: [{target: sglang.srt.utils.common.affinity, args: {gpu_id: gpu_id}, ignores: [nodes]}]
"""


def test_a_hook_that_came_after_the_lock_takes_effect_and_that_is_said(stage: Stage) -> None:
    stage.write()
    path = stage.root / "workspace" / MAP
    # A target that the lock holds for no other reason.
    near = NEAR.replace("common.affinity", "common.late").replace("gpu_id", "x")
    text = near.replace("ignores: [nodes]", "ignores: []").replace("ours:affinity", "ours:late")
    path.write_text(path.read_text() + text)
    ours = stage.tree / "ours.py"
    ours.write_text(ours.read_text() + "\n\ndef late(call):\n    return 'ours', call.args['x']\n")
    said = (
        f"sglang 1.2.0 in {stage.tree}: 1 target(s) (sglang.srt.utils.common.late) is not in the "
        "lock; reading the installed tree for that at every start, until `kunlun-adapt lock "
    )
    for _ in range(2):
        done = stage.run(STARTED + SHOW + "print(common.late(3))\n", write=False)
        assert "'near': 'applied'" in fine(done) and "('ours', 3)" in done.stdout
        assert done.stderr.count(said) == 1
    refused(
        stage.run(STARTED, write=False, **STRICT),
        "1 replaced symbol(s)",
        "near  (",
        "late is replaced, and the lock does not hold it",
    )
    path.write_text(path.read_text().replace("common.late", "common.later"))
    gone = refused(stage.run(STARTED, write=False), "near  (", "sglang.srt.utils.common.later: ")
    assert "the lock has no such target" not in gone and "is not in the lock" not in gone


def test_what_the_lock_holds_is_not_read_from_the_tree(stage: Stage) -> None:
    code = """
    from kunlun_adapt.runtime import compiling

    def read(*_):
        raise AssertionError("the tree was read")

    compiling.open_release = read
    """
    done = stage.run(
        textwrap.dedent(code) + STARTED + SHOW, KUNLUN_ADAPT_CACHE=str(stage.root / "cold")
    )
    assert "'silu/silu': 'applied'" in fine(done)


def test_a_target_that_the_tree_lacks_is_refused_with_its_place(stage: Stage) -> None:
    stage.write()
    path = stage.tree / "sglang" / "kernels" / "ops.py"
    path.write_text(path.read_text().replace("def silu", "def swish"))
    refused(stage.run(STARTED, write=False), "silu/silu", f"{RECIPE}:11:", "kunlun-adapt validate")


def test_a_missing_target_that_is_not_required_is_left_out_at_every_start(stage: Stage) -> None:
    optional = stage.edit(RECIPE, "style: oot_forward,", "style: oot_forward, required: false,")
    lacking = optional.edit("sglang/srt/layers.py", "class Silu(Op)", "class Swish(Op)")
    for write in (True, False):
        done = lacking.run(STARTED + SHOW, write=write)
        assert "'silu/Silu': 'failed'" in fine(done)
        assert "silu/Silu: sglang.srt.layers.Silu does not exist" in done.stderr


@pytest.mark.parametrize("lock", ["{", '{"lock": 1}\n[]\n', "\udcff"])
def test_a_broken_lock_is_refused_in_words(stage: Stage, lock: str) -> None:
    stage.write()
    (stage.root / "workspace" / "adapt.lock").write_bytes(lock.encode("utf-8", "surrogateescape"))
    text = refused(stage.run(STARTED, write=False), "the lock cannot be read", "adapt.lock:")
    assert "Traceback" not in text


def test_findings_in_the_documents_are_refused_with_their_places(stage: Stage) -> None:
    broken = stage.edit(MAP, "  - id: choices\n", "  - id: choices\n    unknown: 1\n")
    refused(broken.run(STARTED), "KA003", f"{MAP}:", "kunlun-adapt validate")


def test_a_copy_first_on_the_path_speaks_for_its_own_version(stage: Stage, tmp_path: Path) -> None:
    behind = tmp_path / "behind" / "sglang-9.9.9.dist-info"
    behind.mkdir(parents=True)
    (behind / "METADATA").write_text("Name: sglang\nVersion: 9.9.9\n")
    code = """
    from kunlun_adapt.runtime.prepare import installed_sglang
    print(installed_sglang().version)
    """
    path = os.pathsep.join([str(stage.tree), str(behind.parent), _only_repository()])
    assert fine(stage.run(code, PYTHONPATH=path)).split() == ["1.2.0"]
    (stage.tree / "sglang" / "version.py").unlink()
    assert fine(stage.run(code, write=False, PYTHONPATH=path)).split() == ["9.9.9"]
    # Whether or not the tests run beside a real SGLang, here none is known.
    alone = "import kunlun_adapt.runtime.prepare as p\np._known_to_python = lambda: ''\n"
    path = os.pathsep.join([str(stage.tree), _only_repository()])
    done = stage.run(alone + textwrap.dedent(STARTED), write=False, PYTHONPATH=path)
    refused(done, "does not state its version")


def test_an_exception_nobody_foresaw_is_refused_with_its_traceback(stage: Stage) -> None:
    code = """
    from kunlun_adapt.runtime import doors
    def fail(root): raise RuntimeError("nobody foresaw this")
    doors.map_revision = fail
    from sglang.srt.platforms import current_platform
    """
    refused(stage.run(code), "RuntimeError: nobody foresaw this", "Traceback")


def test_a_hook_that_cannot_be_loaded_is_refused_by_the_hook_door(stage: Stage) -> None:
    line = "    at: [{target: sglang.srt.utils.common.affinity, args: {gpu_id: gpu_id}, ignores: [nodes]}]"
    hook = f'  - id: near\n    why: broken\n    type: replace\n    impl: "gone:affinity"\n{line}\n'
    broken = stage.edit(MAP, "hooks:\n", f"hooks:\n{hook}")
    where = broken.workspace[MAP].splitlines().index(line) + 1
    done = broken.run(STARTED + SHOW)
    refused(done, "near", "gone:affinity cannot be loaded: ModuleNotFoundError", f"{MAP}:{where}:")


def test_the_table_is_in_the_ledger_where_stderr_is_swallowed(stage: Stage) -> None:
    run = stage.root / "run"
    broken = stage.edit(MAP, "sglang.srt.utils.common.CHOICES", "sglang.srt.utils.common.LIMIT")
    code = "import sys; sys.stderr = None\n" + STARTED + SHOW
    done = broken.run(code, KUNLUN_ADAPT_RUN_DIR=str(run))
    assert done.returncode == 1
    (file,) = run.glob("*.json")
    assert "the start is refused" in file.read_text() and "choices" in file.read_text()


def _only_repository() -> str:
    return str(ROOT)

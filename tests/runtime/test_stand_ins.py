"""When a stand-in takes a package's place: absent, present, broken, and where the map insists."""

from __future__ import annotations

from tests.runtime.stage import MAP, SHOW, STARTED, Stage, fine, refused

SHIM = """\
shims:
  - {module: cuda_only, provide: ours, why: upstream imports it}
"""
SHADOW = SHIM.replace("provide: ours", "provide: ours, shadows: true")
IMPORTED = STARTED + "import cuda_only; print(cuda_only.__name__)" + SHOW


def test_a_package_that_is_there_and_broken_is_reported_with_both_ways_out(stage: Stage) -> None:
    broken = stage.add(MAP, SHIM).add("cuda_only.py", "raise OSError('no libcuda')")
    said = refused(
        broken.run(IMPORTED), "shim/cuda_only", "cuda_only is present, and importing it fails"
    )
    assert "OSError: no libcuda" in said and "`shadows: true`" in said


def test_the_map_may_say_that_it_shadows_what_is_installed(stage: Stage) -> None:
    for text in ("", "raise OSError('no libcuda')"):
        out = fine(stage.add(MAP, SHADOW).add("cuda_only.py", text).run(IMPORTED))
        assert out.splitlines()[0] == "ours" and "'shim/cuda_only': 'applied'" in out


def test_what_was_imported_before_cannot_be_shadowed(stage: Stage) -> None:
    early = stage.add(MAP, SHADOW).add("cuda_only.py", "")
    refused(early.run("import cuda_only\n" + IMPORTED), "cuda_only was imported before ours")


def test_what_was_imported_before_stays_where_nothing_shadows_it(stage: Stage) -> None:
    early = stage.add(MAP, SHIM).add("cuda_only.py", "")
    out = fine(early.run("import cuda_only\n" + IMPORTED))
    assert out.splitlines()[0] == "cuda_only" and "'shim/cuda_only': 'elsewhere'" in out

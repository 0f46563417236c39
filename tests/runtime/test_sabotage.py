"""Twelve sabotages: `serve` says each before SGLang is started, or SGLang's own process says it.

In words: a code or the binding, the place in the YAML, and how to mend it.
"""

from __future__ import annotations

import subprocess

import pytest

from kunlun_adapt.upstream import open_release
from tests.runtime.sabotages import REGISTRY, SABOTAGES, Sabotage, Said, hooked, whole
from tests.runtime.stage import MAP, Stage, fine

pytestmark = pytest.mark.upstream

SERVE = """
import sys
from kunlun_adapt.cli import main
sys.argv = ["kunlun-adapt", "serve", "--run-dir", "run", "--", "--port", "1"]
main()
"""
LAUNCH = """
import runpy, sys
sys.argv = ["launch_server", "--port", "1"]
runpy.run_module("sglang.launch_server", run_name="__main__")
"""
CHECKED = [pytest.param(s, id=name) for name, s in SABOTAGES.items() if s.checked]
STARTED = [pytest.param(s, id=name) for name, s in SABOTAGES.items() if s.started]


@pytest.fixture
def plugin(stage: Stage) -> Stage:
    """A plugin that works, on a made-up SGLang with the real HookRegistry."""
    text = open_release("0.5.19").read(REGISTRY)
    assert text is not None
    return whole(stage, text.decode())


def test_without_a_sabotage_both_ways_start(plugin: Stage) -> None:
    served = hooked(plugin).run(SERVE)
    assert fine(served).split() == ["started", "--port", "1"]
    assert "ledger in run" in served.stderr and "error" not in served.stderr
    launched = hooked(plugin).run(LAUNCH, write=False)
    assert fine(launched).split() == ["started", "--port", "1"] and not launched.stderr


@pytest.mark.parametrize("sabotage", CHECKED)
def test_serve_says_it_before_the_start(plugin: Stage, sabotage: Sabotage) -> None:
    assert sabotage.checked is not None
    _says(_sabotaged(plugin, sabotage, SERVE), sabotage.checked, plugin, sabotage)


@pytest.mark.parametrize("sabotage", STARTED)
def test_a_process_that_is_started_without_serve_is_refused(
    plugin: Stage, sabotage: Sabotage
) -> None:
    assert sabotage.started is not None
    done = _sabotaged(plugin, sabotage, LAUNCH)
    _says(done, sabotage.started, plugin, sabotage)
    assert done.stderr.count("the start is refused") == 1 and "What to do:" in done.stderr


def _sabotaged(plugin: Stage, sabotage: Sabotage, how: str) -> subprocess.CompletedProcess[str]:
    broken = sabotage.change(plugin)
    broken.write()
    sabotage.on_disk(broken.tree)
    return broken.run(how, write=False, **sabotage.environment)


def _says(
    done: subprocess.CompletedProcess[str], said: Said, plugin: Stage, sabotage: Sabotage
) -> None:
    assert done.returncode == said.code, done.stdout + done.stderr
    assert ("started" in done.stdout) == (said.code == 0), done.stdout
    lines = sabotage.change(plugin).workspace[MAP].splitlines()
    at = [n for n, line in enumerate(lines, 1) if line.startswith("      - {target:")]
    for word in said.words:
        needle = word.replace(":AT:", f":{at[-1]}:") if at else word
        assert needle in done.stderr, f"{needle!r} is not in\n{done.stderr}"

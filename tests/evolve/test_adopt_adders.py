"""Functions of upstream's that add to one of its lists, however it spells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evolve.plugin_bench import PluginBench, hooks, left

CHOICES = "sglang.srt.choices"
ADDERS = {
    "sglang/srt/choices.py": """\
        import functools
        import os

        FORMATS = ["auto"]
        def add_format_choices(choices):
            FORMATS.extend(choices)

        BACKENDS = ["triton"]
        add_backend_choices = BACKENDS.extend
        add_backend = (
            BACKENDS.append
        )
        add_kernel_choices = add_backend_choices

        add_hidden_choices = functools.partial(list.extend, BACKENDS)
        add_made_choices = make_list().extend
        if os.environ.get("X"):
            add_some_choices = BACKENDS.extend
        else:
            add_some_choices = FORMATS.extend

        def add_joined_choices(choices):
            global FORMATS
            FORMATS += choices

        def add_prefix(name):
            return name + "."
        """,
    "sglang/srt/args.py": """\
        from sglang.srt.choices import BACKENDS, add_backend_choices, add_format_choices
        add_again_choices = BACKENDS.extend
        """,
}


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    made = PluginBench(tmp_path)
    made.upstream |= ADDERS
    return made


@pytest.mark.parametrize(
    ("call", "table"),
    [
        ("choices.add_format_choices(['x'])", f"{CHOICES}.FORMATS"),
        ("choices.add_backend_choices(['x'])", f"{CHOICES}.BACKENDS"),
        ("choices.add_backend('x')", f"{CHOICES}.BACKENDS"),
        ("choices.add_kernel_choices(('x',))", f"{CHOICES}.BACKENDS"),
        ("args.add_format_choices(['x'])", f"{CHOICES}.FORMATS"),
        ("args.add_backend_choices(['x'])", f"{CHOICES}.BACKENDS"),
        ("args.add_again_choices(['x'])", "sglang.srt.args.BACKENDS"),
    ],
)
def test_an_adder_extends_its_list(bench: PluginBench, call: str, table: str) -> None:
    found = bench.adopt(f"from sglang.srt import args, choices\ndef register():\n    {call}\n")
    said = {t: (h["type"], h["value"], h.get("status")) for t, h in hooks(found).items()}
    assert said == {table: ("extend", ["x"], None)}
    assert left(found) == []


@pytest.mark.parametrize("name", ["add_format_choices", "add_backend_choices"])
def test_an_adder_that_nothing_starts_is_planned(bench: PluginBench, name: str) -> None:
    text = f"from sglang.srt.choices import {name}\ndef helper():\n    {name}(['x'])\n"
    found = bench.adopt(f"{text}def register():\n    pass\n")
    assert [h["status"] for h in hooks(found).values()] == ["planned"]
    assert left(found) == [("unreached", "ours/install.py", 6)]


@pytest.mark.parametrize(
    "call",
    [
        "choices.add_hidden_choices(['x'])",
        "choices.add_made_choices(['x'])",
        "choices.add_some_choices(['x'])",
        "choices.add_joined_choices(['x'])",
        "choices.add_backend_choices(choices=['x'])",
    ],
)
def test_an_adder_whose_list_is_not_shown_is_listed(bench: PluginBench, call: str) -> None:
    found = bench.adopt(f"from sglang.srt import choices\ndef register():\n    {call}\n")
    assert hooks(found) == {}
    assert left(found) == [("unsupported", "ours/install.py", 6)]


def test_what_returns_a_value_is_no_adder(bench: PluginBench) -> None:
    text = "from sglang.srt.choices import add_prefix\ndef register():\n    add_prefix('x')\n"
    assert left(bench.adopt(text)) == []

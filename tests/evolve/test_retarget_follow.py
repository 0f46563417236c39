"""Following a symbol: where it went is found, and what only looks like it is not taken."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.evolve.retarget.company import Users
from kunlun_adapt.evolve.retarget.follow import Followed, follow
from kunlun_adapt.upstream import open_release
from kunlun_adapt.upstream.following import FollowingResolver

Files = Mapping[str, str]
Follow = Callable[..., Followed]

LONG = """\
    rows = x.shape[0]
    total = 0
    for index in range(rows):
        if index % block == 0:
            total += x[index] * scale
        else:
            total -= x[index] // block
    out[:rows] = total
    return out, total, rows
"""
OTHER = """\
    names = sorted(name for name in registry if name.startswith(prefix))
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            names.append(line.strip().partition("=")[0])
    return {name: len(name) for name in names}
"""
HEAD = "def reduce_rows(x, out, block, scale):\n"
KERNEL = HEAD + LONG
NEIGHBOUR = """\
def pad_rows(x, width):
    while x.shape[0] % width:
        x = x.grown()
    rows = x.shape[0] // width
    return x, rows
"""
USER = "from sglang.srt.{} import reduce_rows\n\ndef step(x):\n    return reduce_rows(x, x, 1, 2)\n"


@pytest.fixture
def following(tmp_path: Path) -> Follow:
    """Follow a path through releases that are made of a few files each."""

    def run(path: str, *releases: Files, taken: tuple[str, ...] = ()) -> Followed:
        opened = []
        for number, files in enumerate(releases):
            root = tmp_path / str(number)
            whole = {"__init__.py": "", "version.py": f'__version__ = "0.5.{number}"\n', **files}
            for name, text in whole.items():
                place = root / "sglang" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
            opened.append(FollowingResolver(open_release(str(root))))
        parts = path.split(".")
        names = {parts[-1], parts[-2]}
        return follow(path, opened, Users(names), taken)

    return run


PATH = "sglang.srt.ops.reduce_rows"


def test_what_is_there_stays(following: Follow) -> None:
    found = following(PATH, {"srt/ops.py": KERNEL}, {"srt/ops.py": KERNEL})
    assert (found.path, found.steps) == (PATH, ())


def test_a_move_with_a_user(following: Follow) -> None:
    found = following(
        PATH,
        {"srt/ops.py": KERNEL, "srt/user.py": USER.format("ops")},
        {"srt/kernels.py": KERNEL, "srt/user.py": USER.format("kernels")},
    )
    assert found.path == "sglang.srt.kernels.reduce_rows"
    (step,) = found.steps
    assert step.rate.is_certain, step.evidence.key
    assert step.evidence.company == "users or neighbours follow"


def test_a_move_with_its_neighbours(following: Follow) -> None:
    found = following(PATH, {"srt/ops.py": KERNEL + NEIGHBOUR}, {"srt/k.py": KERNEL + NEIGHBOUR})
    assert found.path == "sglang.srt.k.reduce_rows"
    assert found.steps[0].rate.is_certain


def test_through_a_release_that_imports_it_from_its_new_place(following: Follow) -> None:
    short = "def reduce_rows(x):\n    return x\n"
    found = following(
        PATH,
        {"srt/ops.py": short},
        {"srt/ops.py": "from sglang.srt.k import reduce_rows\n", "srt/k.py": short},
        {"srt/k.py": short},
    )
    assert found.path == "sglang.srt.k.reduce_rows"
    assert found.steps[0].evidence.imported


def test_two_moves_one_after_the_other(following: Follow) -> None:
    both = KERNEL + NEIGHBOUR
    found = following(PATH, {"srt/ops.py": both}, {"srt/a.py": both}, {"srt/b.py": both})
    assert found.path == "sglang.srt.b.reduce_rows"
    assert [s.path for s in found.steps] == ["sglang.srt.a.reduce_rows", found.path]


def test_a_symbol_that_merely_has_the_name(following: Follow) -> None:
    found = following(
        PATH,
        {"srt/ops.py": KERNEL},
        {"srt/text.py": "def reduce_rows(registry, prefix, path):\n" + OTHER},
    )
    assert found.path is None or not found.rate or not found.rate.is_certain
    assert found.path is None


def test_the_name_and_the_parameters_are_no_evidence_either(following: Follow) -> None:
    found = following(PATH, {"srt/ops.py": KERNEL}, {"srt/text.py": HEAD + OTHER})
    assert (found.path, found.gone) == (None, "0.5.1")


def test_a_tiny_body_that_is_the_same_by_chance(following: Follow) -> None:
    tiny = "def {}(x):\n    return x + 1\n"
    found = following(
        PATH, {"srt/ops.py": tiny.format("reduce_rows")}, {"srt/k.py": tiny.format("succ")}
    )
    assert found.path is None


def test_a_body_under_another_name_alone_is_not_enough(following: Follow) -> None:
    other = KERNEL.replace("reduce_rows", "zz_all")
    found = following(PATH, {"srt/ops.py": KERNEL}, {"srt/k.py": other})
    assert found.path is None
    assert found.gone == "0.5.1"


def test_a_copy_that_was_there_before_is_not_where_it_went(following: Follow) -> None:
    found = following(PATH, {"srt/ops.py": KERNEL, "srt/copy.py": KERNEL}, {"srt/copy.py": KERNEL})
    assert found.rate is None or not found.rate.is_certain


def test_two_places_that_are_alike_are_no_answer(following: Follow) -> None:
    found = following(PATH, {"srt/ops.py": KERNEL}, {"srt/a.py": KERNEL, "srt/b.py": KERNEL})
    assert found.rate is None or not found.rate.is_certain


def test_users_that_go_elsewhere_speak_against_it(following: Follow) -> None:
    found = following(
        PATH,
        {"srt/ops.py": KERNEL, "srt/user.py": USER.format("ops")},
        {
            "srt/copy.py": KERNEL,
            "srt/fast.py": "def reduce_rows(registry, prefix, path):\n" + OTHER,
            "srt/user.py": USER.format("fast"),
        },
    )
    assert (
        found.path != "sglang.srt.copy.reduce_rows" or not found.rate or not found.rate.is_certain
    )


def test_what_another_binding_is_about(following: Follow) -> None:
    changed = KERNEL.replace("index % block", "index % (block + 1)")
    there = "sglang.srt.k.reduce_rows"
    old, new = {"srt/ops.py": KERNEL + NEIGHBOUR}, {"srt/k.py": changed + NEIGHBOUR}
    assert following(PATH, old, new).path == there
    assert following(PATH, old, new, taken=(there,)).path is None


def test_a_method_moves_with_its_class(following: Follow) -> None:
    klass = "class Pool:\n    def reduce_rows(self, x, out, block, scale):\n" + textwrap.indent(
        LONG, "    "
    )
    found = following(
        "sglang.srt.ops.Pool.reduce_rows",
        {"srt/ops.py": klass, "srt/user.py": "from sglang.srt.ops import Pool\n"},
        {"srt/pool.py": klass, "srt/user.py": "from sglang.srt.pool import Pool\n"},
    )
    assert found.path == "sglang.srt.pool.Pool.reduce_rows"
    assert found.steps[0].rate.is_certain


def test_a_method_of_another_class_is_not_taken_for_sure(following: Follow) -> None:
    def klass(name: str) -> str:
        head = f"class {name}:\n    def reduce_rows(self, x, out, block, scale):\n"
        return head + textwrap.indent(LONG, "    ")

    found = following(
        "sglang.srt.ops.Pool.reduce_rows",
        {"srt/ops.py": klass("Pool")},
        {"srt/ops.py": klass("Lake")},
    )
    assert found.rate is None or not found.rate.is_certain

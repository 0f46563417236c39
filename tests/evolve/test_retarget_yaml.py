"""The change of a YAML text: exactly the data that is meant, and no byte that it is not about."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kunlun_adapt.documents.loader import load_bytes
from kunlun_adapt.evolve.retarget.yaml_nodes import EditError
from kunlun_adapt.evolve.retarget.yaml_text import Draft
from kunlun_adapt.locate import workspace_files

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {name: path.read_bytes().decode() for name, path in workspace_files(ROOT)}

FLOW = """\
# head
hooks:
  - id: a   # first
    at:
      # the only one
      - {sglang: "<2", target: a.b, args: {x: y}, ignores: [p, q]}  # said
    why: >-
      folded
      text
  - id: b
    at: [{target: c.d}]
"""
BLOCK = """\
hooks:
  - id: a
    at:
      - sglang: "<2"
        # where
        target: a.b
        args:
          x: y   # the first
          z: w
        ignores:
          - p
          - q
    excluded:
    - {sglang: ">=3", why: gone}
    # last
"""
ENTRY = ("hooks", 0, "at", 0)


def changed_lines(old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), n=0)
    return [
        line.rstrip("\r\n") for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]


def data(text: str) -> Any:
    documents, findings = load_bytes(text.encode(), "text")
    assert not findings, findings
    return [d.data for d in documents]


def test_a_value_in_a_flow_entry() -> None:
    draft = Draft(FLOW)
    draft.set_values(0, ENTRY, {"target": "e.f", "ignores": {"p": None, "q": "$any"}, "args": None})
    draft.prove()
    assert changed_lines(FLOW, draft.text) == [
        '-      - {sglang: "<2", target: a.b, args: {x: y}, ignores: [p, q]}  # said',
        '+      - {sglang: "<2", target: e.f, ignores: {p: null, q: $any}}  # said',
    ]


def test_an_entry_is_split_and_not_overwritten() -> None:
    draft = Draft(FLOW)
    draft.copy_item(0, ENTRY, {"sglang": ">=2", "target": "e.f"})
    draft.prove()
    assert changed_lines(FLOW, draft.text) == [
        '+      - {sglang: ">=2", target: e.f, args: {x: y}, ignores: [p, q]}  # said',
    ]


def test_an_entry_of_a_list_in_one_line() -> None:
    draft = Draft(FLOW)
    draft.copy_item(0, ("hooks", 1, "at", 0), {"sglang": ">=2", "target": "e.f"})
    draft.set_values(0, ("hooks", 1, "at", 0), {"sglang": "<2"})
    draft.prove()
    assert changed_lines(FLOW, draft.text) == [
        "-    at: [{target: c.d}]",
        '+    at: [{sglang: "<2", target: c.d}, {sglang: ">=2", target: e.f}]',
    ]


def test_a_list_that_is_not_there_yet() -> None:
    draft = Draft(FLOW)
    draft.add_item(0, ("hooks", 0, "excluded"), {"sglang": ">=3", "why": "it is gone: a"})
    draft.prove()
    assert changed_lines(FLOW, draft.text) == [
        '+    excluded: [{sglang: ">=3", why: "it is gone: a"}]'
    ]


def test_entries_over_several_lines() -> None:
    draft = Draft(BLOCK)
    values = {"target": "e.f", "args": {"x": "v", "z": "w"}, "ignores": ["p", "r"]}
    draft.copy_item(0, ENTRY, {"sglang": ">=2", **values})
    draft.add_item(0, ("hooks", 0, "excluded"), {"sglang": ">=4", "why": "too"})
    draft.prove()
    assert changed_lines(BLOCK, draft.text) == [
        '+      - sglang: ">=2"',
        "+        # where",
        "+        target: e.f",
        "+        args:",
        "+          x: v   # the first",
        "+          z: w",
        "+        ignores:",
        "+          - p",
        "+          - r",
        '+    - {sglang: ">=4", why: too}',
    ]


def test_a_key_of_a_block_entry_comes_and_goes() -> None:
    draft = Draft(BLOCK)
    draft.set_values(0, ENTRY, {"readback": {"target": "a.c"}, "args": {"x": "y"}})
    draft.prove()
    assert changed_lines(BLOCK, draft.text) == [
        "-          z: w",
        "+        readback: {target: a.c}",
    ]


def test_a_renamed_key_keeps_its_place() -> None:
    text = "at: {ignores: {a: 1, b: $any, c: null}}\n"
    draft = Draft(text)
    draft.set_values(0, ("at",), {"ignores": {"a": 1, "bb": "$any", "c": None}})
    draft.prove()
    assert draft.text == "at: {ignores: {a: 1, bb: $any, c: null}}\n"


def test_a_comment_is_not_lost() -> None:
    draft = Draft(BLOCK)
    with pytest.raises(EditError, match="comment"):
        draft.set_values(0, ENTRY, {"args": None})
    assert draft.text == BLOCK
    draft.prove()


def test_an_anchor_is_not_changed_for_who_did_not_ask() -> None:
    text = "a: &x {b: 1}\nc: *x\n"
    draft = Draft(text)
    with pytest.raises(EditError):
        draft.set_values(0, ("c",), {"b": 2})
    draft.set_values(0, ("a",), {"b": 2})
    with pytest.raises(EditError):
        draft.prove()


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("ends", [True, False])
def test_line_breaks_stay_as_they_are(newline: str, ends: bool) -> None:
    text = newline.join(["at:", "  - sglang: '<2'", "    target: a.b"]) + newline * ends
    draft = Draft(text)
    draft.copy_item(0, ("at", 0), {"sglang": ">=2", "target": "c.d"})
    draft.prove()
    assert draft.text.startswith(text)
    assert draft.text.count("\n") == draft.text.count(newline)


# The entries of the shipped documents, in all the ways in which people wrote them.


def entries(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = []
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        here = (*path, key)
        if isinstance(child, dict):
            if isinstance(key, int) and {"target", "method", "call", "field"} & child.keys():
                found.append(here)
            found += entries(child, here)
        elif isinstance(child, list):
            found += entries(child, here)
    return found


PLACES = [
    (name, index, path)
    for name, text in SHIPPED.items()
    for index, document in enumerate(data(text))
    for path in entries(document)
]
NAMES = st.sampled_from(["x", "page_size", "$any", "null", "a.b", "yes", "1", ">=0.5.17,<0.6"])
VALUES = st.one_of(NAMES, st.none(), st.booleans(), st.integers(-9, 9))
KEYS = st.sampled_from(["a", "page_size", "out", "bias_alt"])
CHANGES = st.fixed_dictionaries(
    {"sglang": st.sampled_from([">=0.5.23", ">=0.5.19,<0.5.24"])},
    optional={
        "target": st.sampled_from(["a.b", "sglang.srt.utils.common.x"]),
        "ignores": st.one_of(
            st.lists(KEYS, max_size=3, unique=True), st.dictionaries(KEYS, VALUES)
        ),
        "args": st.dictionaries(KEYS, NAMES, min_size=1),
    },
)


NORM = ("operator_recipes/norm.yaml", 0, ("binds", 0))
"""An entry with an anchor that the next one uses."""


@settings(max_examples=60)
@given(place=st.sampled_from(PLACES), values=CHANGES, split=st.booleans())
@example(place=NORM, values={"sglang": ">=0.5.23", "args": {"a": "x"}}, split=False)
@example(place=NORM, values={"sglang": ">=0.5.23", "ignores": []}, split=True)
def test_shipped_entries(
    place: tuple[str, int, tuple[str | int, ...]], values: dict[str, Any], split: bool
) -> None:
    name, document, path = place
    text = SHIPPED[name]
    draft = Draft(text)
    *owner, index = path
    assert isinstance(index, int)
    try:
        if split:
            draft.copy_item(document, path, values)
        else:
            draft.set_values(document, path, values)
    except EditError:
        assert draft.text == text
        return
    before = text.splitlines(True)
    raw = load_bytes(text.encode(), name)[0][document]
    first = raw.at(*path).line
    # What an alias stands for has its place where its anchor is: only what is beside counts.
    beside = [q for q in raw.keys if len(q) <= len(path) + 1 and q[: len(path)] != path]
    following = [raw.keys[q].line for q in beside if raw.keys[q].line > first]
    try:
        draft.prove()
    except EditError:  # what another entry shares cannot be changed in one of them
        assert any("&" in line for line in before[first - 1 : min(following)])
        return
    new, old = draft.text, text
    wanted = data(old)
    items = wanted[document]
    for step in owner:
        items = items[step]
    if split:
        items.insert(index + 1, dict(items[index]))
    items[index + split].update(values)
    assert data(new) == wanted
    # What the node does not hold stays byte for byte. Both ends are counted by themselves, since
    # entries that are much alike stand beside each other.
    after = new.splitlines(True)
    top = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before)
    )
    end = 0
    while end < min(len(before), len(after)) and before[-1 - end] == after[-1 - end]:
        end += 1
    assert top + 1 >= first
    assert not split or len(before) - end < min(following, default=len(before) + 1)
    if split:  # nothing that was there is written anew, but the end of a line that lacked one
        assert len(before) - top - end <= 1


def test_what_the_shipped_places_are() -> None:
    assert len(PLACES) > 200
    with pytest.raises(EditError):
        Draft(FLOW).set_values(0, ("hooks", 0, "gone"), {"a": 1})

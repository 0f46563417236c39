# ruff: noqa: E501 -- texts stay whole
"""The Feature Diff as text, Markdown and HTML: all that is said is shown, and nothing of it runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from kunlun_adapt.evolve.diff import Change, Fact, FeatureDiff, Item, Place, Risk
from kunlun_adapt.evolve.diff.page import render_html
from kunlun_adapt.evolve.diff.text import render_markdown, render_text
from tests.evolve.pages import (
    HOSTILE,
    Page,
    in_a_browser,
    makes_no_element_of,
    needs_nothing_from_elsewhere,
    opened,
)

CODE = f"--- a.py:1\n+++ b.py:1\n@@ -1,2 +1,2 @@\n-x = '`'\n+x = '{HOSTILE}'\n \tsame\n+\x1b[31m```"


def made(**changed: object) -> Change:
    plain = Change(
        id="hook/sglang.a.f",
        landing="hook",
        subject="sglang.a.f",
        risk=Risk.HIGH,
        facts=(Fact("signature", "new b: (a, b), was (a)"), Fact("body", "the body changed")),
        old=Place("sglang.a.f", "sglang/a.py", 3),
        new=Place("sglang.a.f", "sglang/a.py", 5),
        family="host",
        status="bound",
        bindings=("affinity",),
        features=("numa",),
        code=CODE,
    )
    return replace(plain, **changed)  # type: ignore[arg-type]


def diff_of(*changes: Change, steps: tuple[Item, ...] = ()) -> FeatureDiff:
    return FeatureDiff("0.5.18", "0.5.19", changes, steps, {"models": 1})


LOW = made(id="environment/X", landing="environment", subject="X", risk=Risk.LOW, code="",
           facts=(Fact("added", "new in 0.5.19: EnvBool"),), bindings=(), family="", status="unbound",
           old=None, features=())  # fmt: skip
STEPS = (
    Item("hook/sglang.a.f", "sglang.a.f: signature", Risk.HIGH, False, "map it in `args`",
         changes=("hook/sglang.a.f",), family="host", status="bound"),
    Item("KA101/g", "g: target-missing", Risk.MEDIUM, True, "nothing"),
)  # fmt: skip
DIFF = diff_of(made(), LOW, steps=STEPS)
HOSTILE_DIFF = FeatureDiff(
    "0.5.18",
    f"0.5.19{HOSTILE}",
    (
        made(subject=HOSTILE, id=f"hook/{HOSTILE}", family=HOSTILE, status=HOSTILE,
             bindings=(HOSTILE,), features=(HOSTILE,), facts=(Fact("body", HOSTILE),),
             new=Place(HOSTILE, HOSTILE, 1)),
    ),
    (Item(HOSTILE, HOSTILE, Risk.HIGH, False, HOSTILE, changes=(f"hook/{HOSTILE}",)),),
)  # fmt: skip


def test_text_counts_low_risks_and_shows_them_when_asked() -> None:
    text = render_text(DIFF)
    assert text.startswith("sglang 0.5.18 to 0.5.19: 1 high, 1 low; checklist: 1 of 2 done\n")
    assert "  high   sglang.a.f\n         affinity (host, bound)\n" in text
    assert "body: the body changed (+2 −1)" in text and "at sglang/a.py:5" in text
    assert "  [ ] high   sglang.a.f: signature\n             map it in `args`" in text
    assert "  [x] medium g: target-missing" in text
    assert "EnvBool" not in text and "1 of low risk not shown" in text
    assert "added: new in 0.5.19: EnvBool" in render_text(DIFF, low=True)


def test_text_has_code_when_asked_without_what_moves_a_cursor() -> None:
    assert "@@ -1,2" not in render_text(DIFF)
    text = render_text(DIFF, code=True)
    assert "      | @@ -1,2 +1,2 @@" in text
    assert "\x1b" not in text and "\\x1b[31m" in text


def test_text_of_nothing() -> None:
    assert "nothing changed for this workspace" in render_text(diff_of())


def test_markdown_has_a_checklist_and_folded_code() -> None:
    text = render_markdown(DIFF)
    assert "- [ ] **high** sglang.a.f: signature — map it in \\`args\\`" in text
    assert "- [x] **medium** g: target-missing" in text
    assert "- **high** `sglang.a.f` affinity (host, bound)" in text
    fence = next(line.strip() for line in text.splitlines() if line.strip().startswith("````"))
    assert fence == "````diff" and text.count("\n    ````\n") == 1  # the code has three ticks


def test_markdown_takes_no_markup_from_elsewhere() -> None:
    text = re.sub(r"(`{4,})diff.*?\n    \1\n", "", render_markdown(HOSTILE_DIFF), flags=re.S)
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert "<script" not in outside and "<img" not in outside and "&lt;script" in outside


def test_the_page_needs_nothing_from_elsewhere() -> None:
    needs_nothing_from_elsewhere(render_html(DIFF))


def test_the_page_shows_all_of_it() -> None:
    page = Page(render_html(DIFF))
    text = "".join(page.text)
    for part in ("new b: (a, b), was (a)", "sglang/a.py:5", "numa", "map it in args", "EnvBool"):
        assert part in text
    assert "<p>map it in <code>args</code></p>" in render_html(DIFF)
    changes = [a for tag, a in page.elements if tag == "article"]
    assert [a["id"] for a in changes] == ["hook/sglang.a.f", "environment/X"]
    assert [a["data-risk"] for a in changes] == ["high", "low"]
    assert ("span", {"class": "add"}) in page.elements
    boxes = [a for tag, a in page.elements if tag == "input" and "disabled" in a]
    assert ["checked" in box for box in boxes] == [False, True]


def test_hostile_text_makes_no_element_and_no_attribute() -> None:
    plain = render_html(diff_of(made(), steps=STEPS[:1]))
    makes_no_element_of(plain, render_html(HOSTILE_DIFF))


@in_a_browser
def test_the_filters_work_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_html(DIFF), encoding="utf-8")
    profile = tmp_path / "profile"
    everything = opened(page, profile)
    assert everything.shown("article") == ["hook/sglang.a.f", "environment/X"]
    assert "2 of 2 changes" in "".join(everything.text)
    assert opened(page, profile, text="envbool").shown("article") == ["environment/X"]
    assert opened(page, profile, risk="high,medium").shown("article") == ["hook/sglang.a.f"]
    assert opened(page, profile, landing="environment").shown("article") == ["environment/X"]
    chosen = opened(page, profile, open="1", family="host")
    assert chosen.shown("article") == ["hook/sglang.a.f"] and len(chosen.shown("li")) == 1


@in_a_browser
def test_a_change_is_led_to_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_html(DIFF), encoding="utf-8")
    seen = opened(page, tmp_path / "profile", at="hook/sglang.a.f")
    assert [a for tag, a in seen.elements if tag == "details"] == [{"open": ""}]
    closed = opened(page, tmp_path / "profile", at="environment/X")
    assert [a for tag, a in closed.elements if tag == "details"] == [{}]


@in_a_browser
def test_hostile_text_does_not_run_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = render_html(HOSTILE_DIFF)
    page.write_text(text, encoding="utf-8")
    seen = opened(page, tmp_path / "profile")
    assert "taken" not in _title(seen) and seen.shown("article")
    # Even what got past the escaping would find the door shut.
    page.write_text(
        text.replace("<main>", "<main><script>document.title='taken'</script>"), encoding="utf-8"
    )
    assert "taken" not in _title(opened(page, tmp_path / "profile"))


def _title(page: Page) -> str:
    """The title, which the hostile text would set to `taken`; its own text is in it, escaped."""
    start = page.elements.index(("title", {}))
    assert start
    head = "".join(page.text).split("\n")
    title = next(line for line in head if line.startswith("SGLang "))
    return title if title == "taken" else title.replace("document.title='taken'", "")

"""The matrix as text, Markdown, JSON and HTML: all is shown, and nothing of it runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.evolve.matrix import Cell, Column, Matrix, Row, State
from kunlun_adapt.evolve.matrix.page import render_html
from kunlun_adapt.evolve.matrix.text import (
    counts_markdown,
    counts_text,
    render_markdown,
    render_text,
)
from tests.evolve.pages import (
    HOSTILE,
    Page,
    in_a_browser,
    makes_no_element_of,
    needs_nothing_from_elsewhere,
    opened,
)


def cell(state: State, *changes: str, why: str = "", codes: tuple[str, ...] = ()) -> Cell:
    status = state.value if state in (State.PLANNED, State.EXCLUDED) else "bound"
    since = "0.5.18" if changes else ""
    return Cell(state, status, True, "sglang.a.f", since, changes, why, codes)  # type: ignore[arg-type]


def row(id: str, family: str, *cells: Cell, line: int = 1) -> Row:
    return Row(id, "hook", family, ">=0.5.18", "platform_map.yaml", line, cells)


ERROR = Finding.of("KA101", "sglang has no f", Position("platform_map.yaml", 7, 3), binding="topk")
OTHER = Finding.of("KA004", "a name twice", Position("platform_map.yaml", 8, 3))
MATRIX = Matrix(
    ">=0.5.18",
    False,
    (
        Column("0.5.18", "0.5.18", True, claiming=frozenset({"topk"})),
        Column("0.5.19", "./sglang.whl", True, (ERROR, OTHER), frozenset({"topk"})),
    ),
    (
        row("affinity", "host", cell(State.HOLDS), cell(State.MOVED, "target g, was f")),
        row("choices", "host", cell(State.HOLDS), cell(State.HOLDS)),
        row("gate", "moe", cell(State.EXCLUDED, why="no gate"), cell(State.PLANNED, why="later")),
        row("topk", "moe", cell(State.HOLDS), cell(State.BROKEN, codes=("KA101",))),
    ),
)
HOSTILE_ERROR = Finding.of(
    "KA101", HOSTILE, Position("platform_map.yaml", 7, 3), binding=HOSTILE, target=HOSTILE
)
HOSTILE_MATRIX = Matrix(
    HOSTILE,
    True,
    (
        Column("0.5.18", HOSTILE, False, shut=HOSTILE),
        Column("0.5.19", "0.5.19", True, (HOSTILE_ERROR,)),
    ),
    (
        Row(
            *(HOSTILE, "hook", HOSTILE, HOSTILE, HOSTILE, 1),
            (
                Cell(State.EXCLUDED, "excluded", False, HOSTILE, why=HOSTILE),
                Cell(State.CHANGED, "bound", True, HOSTILE, HOSTILE, (HOSTILE,), codes=(HOSTILE,)),
            ),
        ),
    ),
)


def test_text_has_the_table_the_families_the_total_and_what_is_broken() -> None:
    assert (
        render_text(MATRIX)
        == """\
            0.5.18    0.5.19
host
  affinity  holds     moved
  choices   holds     holds
moe
  gate      excluded  planned
  topk      holds     broken

family  0.5.18  0.5.19
host    2 of 2  2 of 2
moe     1 of 2  0 of 2, 1 broken

          0.5.18  0.5.19
holds          3       1
changed        0       0
moved          0       1
planned        0       1
excluded       1       0
broken         0       1
total          4       4

sglang 0.5.19: topk: KA101: sglang has no f
sglang 0.5.19: no binding: KA004: a name twice

4 bindings, 2 releases (0.5.18 to 0.5.19): 2 errors
"""
    )


def test_text_is_short_where_it_would_be_too_wide() -> None:
    assert render_text(MATRIX, width=29) == render_text(MATRIX)
    assert (
        render_text(MATRIX, width=28)
        == """\
ok holds, ch changed, mv moved, pl planned, - excluded, XX broken

            0.5.18  .19
host
  affinity  ok      mv
  choices   ok      ok
moe
  gate      -       pl
  topk      ok      XX

family  0.5.18  .19
host    2/2     2/2
moe     1/2     0/2, 1XX

          0.5.18  .19
holds          3    1
changed        0    0
moved          0    1
planned        0    1
excluded       1    0
broken         0    1
total          4    4

sglang 0.5.19: topk: KA101: sglang has no f
sglang 0.5.19: no binding: KA004: a name twice

4 bindings, 2 releases (0.5.18 to 0.5.19): 2 errors
"""
    )


def test_short_text_leaves_out_the_middle_of_a_name_and_nothing_of_a_column() -> None:
    named = replace(MATRIX, rows=(row(f"a{'b' * 60}c", "host", *MATRIX.rows[0].cells),))
    lines = render_text(named, verbose=True, width=60).splitlines()
    (shown,) = [line for line in lines if line.startswith("  ab")]
    assert len(shown) <= 60 and "…" in shown and shown.split()[0].endswith("bc")
    assert lines[lines.index(shown) + 1] == "      0.5.19 since 0.5.18: target g, was f"
    columns = tuple(replace(c, release=r) for c, r in zip(MATRIX.columns, "12", strict=True))
    unlike = render_text(replace(MATRIX, columns=columns), width=1)
    assert unlike.splitlines()[2].split() == ["1", "2"]


def test_text_says_more_when_asked() -> None:
    text = render_text(MATRIX, verbose=True)
    assert "  affinity  holds     moved\n      0.5.19 since 0.5.18: target g, was f\n" in text
    assert "      0.5.18: no gate\n      0.5.19: later\n" in text
    assert "      0.5.19: KA101\n" in text
    assert "\x1b" not in render_text(MATRIX.only(("host",), ()))


def test_text_says_the_same_of_releases_in_a_row_once() -> None:
    releases = ("0.5.17", "0.5.18", "0.5.19", "0.5.20")
    columns = tuple(Column(release, release, True) for release in releases)
    later = cell(State.PLANNED, why="later")
    changed = replace(later, since="0.5.17", changes=("its body changed",))
    rows = (row("gate", "moe", later, changed, cell(State.HOLDS), later),)
    text = render_text(Matrix("", False, columns, rows), verbose=True)
    assert [line.strip() for line in text.splitlines() if line.startswith("      ")][:4] == [
        releases_in_head(text),
        "0.5.17 to 0.5.18: later",
        "0.5.18 since 0.5.17: its body changed",
        "0.5.20: later",
    ]


def releases_in_head(text: str) -> str:
    return text.splitlines()[0].strip()


def test_text_shows_what_would_move_a_cursor() -> None:
    moving = Matrix(
        "",
        False,
        (Column("0.5.18", "0.5.18", True),),
        (row("a\x1b[2J", "b\x1b[2J", cell(State.EXCLUDED, why="c\x1b[2J")),),
    )
    assert "\x1b" not in render_text(moving, verbose=True) + render_markdown(moving)


def test_text_of_nothing() -> None:
    text = render_text(Matrix("", False, (Column("0.5.18", "0.5.18", True),), ()))
    assert text.endswith("0 bindings, 1 release (0.5.18): nothing is broken\n")


def test_what_is_broken_beyond_the_claims_is_said_to_be() -> None:
    column = Column("0.5.30", "0.5.30", False, (ERROR,))
    found = Matrix("", True, (column,), (row("topk", "moe", cell(State.BROKEN)),))
    said = "(0.5.30), beyond the claims: 1 error, none of them in what is claimed\n"
    assert render_text(found).endswith(said) and not found.broken


def test_counts_are_what_the_readme_has() -> None:
    assert (
        counts_markdown(MATRIX)
        == """\
| release | bound | planned | excluded | broken |
|---|---:|---:|---:|---:|
| 0.5.18 | 3 | 0 | 1 | 0 |
| 0.5.19 | 3 | 1 | 0 | 1 |
"""
    )
    first, *rest = counts_text(MATRIX).splitlines()
    assert first.split() == ["release", "bound", "planned", "excluded", "broken"]
    assert len(rest) == 2 and rest[0].split() == ["0.5.18", "3", "0", "1", "0"]


def test_markdown_has_a_table_for_each_family() -> None:
    text = render_markdown(MATRIX)
    assert "\n## host\n\n| binding | 0.5.18 | 0.5.19 |\n|---|---|---|\n" in text
    assert "\n| `affinity` | holds | moved |\n" in text
    assert "\n| moe | 1 of 2 | 0 of 2, 1 broken |\n" in text
    assert "\n## Broken\n\n- sglang 0.5.19: topk: KA101: sglang has no f\n" in text


def test_markdown_takes_no_markup_from_elsewhere() -> None:
    outside = re.sub(r"`[^`\n]*`", "", render_markdown(HOSTILE_MATRIX))
    assert "<script" not in outside and "<img" not in outside and "&lt;script" in outside


def test_json_has_a_cell_for_each_release() -> None:
    body = MATRIX.to_json()
    assert body["broken"] is True and body["claim"] == ">=0.5.18"
    first, second = body["releases"]  # type: ignore[misc]
    assert second["bindings"] == {"bound": 3, "planned": 1, "excluded": 0}
    assert second["states"]["broken"] == 1 and sum(second["states"].values()) == 4
    assert second["families"]["moe"]["planned"] == 1 and first["errors"] == []
    assert [error["binding"] for error in second["errors"]] == ["topk", None]
    told = body["bindings"][0]  # type: ignore[index]
    assert told["id"] == "affinity" and [c["release"] for c in told["cells"]] == [
        "0.5.18",
        "0.5.19",
    ]
    assert told["cells"][1] == {
        "release": "0.5.19",
        "state": "moved",
        "status": "bound",
        "claimed": True,
        "target": "sglang.a.f",
        "since": "0.5.18",
        "changes": ["target g, was f"],
        "why": None,
        "codes": [],
    }
    assert MATRIX.to_json(counts=True).keys() == body.keys() - {"bindings"}


def test_the_page_needs_nothing_from_elsewhere() -> None:
    needs_nothing_from_elsewhere(render_html(MATRIX))


def test_the_page_shows_all_of_it() -> None:
    page = Page(render_html(MATRIX))
    text = "".join(page.text)
    for part in ("target g, was f", "no gate", "later", "1 of 2", "KA004: a name twice", "moved"):
        assert part in text
    rows = [a for tag, a in page.elements if tag == "tr" and a.get("class") == "entry binding"]
    assert [a["data-state"] for a in rows] == [
        "holds moved",
        "holds",
        "planned excluded",
        "holds broken",
    ]
    assert [a["data-same"] for a in rows] == ["no", "yes", "no", "no"]
    cells = [a for tag, a in page.elements if tag == "td" and "title" in a]
    assert [a["class"] for a in cells[:4]] == ["holds", "moved", "holds", "holds"]
    shades = [a["class"] for tag, a in page.elements if tag == "td" and {*a} == {"class"}]
    assert shades == ["heat5", "heat5", "heat3", "broken"]


def test_hostile_text_makes_no_element_and_no_attribute() -> None:
    unclaimed = (replace(MATRIX.columns[0], claimed=False), MATRIX.columns[1])
    plain = render_html(replace(MATRIX, columns=unclaimed))
    makes_no_element_of(plain, render_html(HOSTILE_MATRIX))


@in_a_browser
def test_the_filters_work_in_a_browser(tmp_path: Path) -> None:
    page, profile = tmp_path / "page.html", tmp_path / "profile"
    page.write_text(render_html(MATRIX), encoding="utf-8")
    everything = opened(page, profile)
    assert everything.shown("tr") == ["affinity", "choices", "gate", "topk"]
    assert "4 of 4 bindings" in "".join(everything.text)
    assert opened(page, profile, state="moved,broken").shown("tr") == ["affinity", "topk"]
    chosen = opened(page, profile, differing="1", family="host")
    assert chosen.shown("tr") == ["affinity"] and "1 of 4 bindings" in "".join(chosen.text)
    groups = [a for tag, a in chosen.elements if tag == "tbody" and a.get("class") == "group"]
    assert ["hidden" in group for group in groups] == [False, True]
    assert opened(page, profile, text="no gate").shown("tr") == ["gate"]
    in_the_first = opened(page, profile, state="excluded,moved", release="1")
    assert in_the_first.shown("tr") == ["gate"]
    assert opened(page, profile, state="moved", release="2").shown("tr") == ["affinity"]
    led_to = opened(page, profile, at="topk")
    assert len(led_to.shown("tr")) == 4
    assert [a for tag, a in led_to.elements if tag == "details"] == [{}, {}, {}, {"open": ""}]


@in_a_browser
def test_hostile_text_does_not_run_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = render_html(HOSTILE_MATRIX)
    for number, written in enumerate(
        (
            text,
            # Even what got past the escaping would find the door shut.
            text.replace("<main>", "<main><script>document.title='taken'</script>"),
        )
    ):
        page.write_text(written, encoding="utf-8")
        seen = opened(page, tmp_path / "profile")
        title = seen.text[[tag for tag, _ in seen.elements].index("title")]
        assert "Bindings by release" in "".join(seen.text) and title.strip() != "taken"
        assert len(seen.shown("tr")) == 1, number

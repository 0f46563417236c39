"""The Feature Diff as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kunlun_adapt.diagnostics.report import one_line
from kunlun_adapt.evolve.diff.code import CUT
from kunlun_adapt.evolve.diff.records import LANDINGS, Change, FeatureDiff, Item, Risk
from kunlun_adapt.evolve.markdown import code as _code
from kunlun_adapt.evolve.markdown import plain as _plain


def render_text(diff: FeatureDiff, *, low: bool = False, code: bool = False) -> str:
    """Return the changes by landing, then the checklist; low risks are counted unless `low`."""
    lines = [summary(diff), ""]
    for landing, changes in diff.grouped().items():
        lines.append(f"{LANDINGS[landing]}: {counted(changes)}")
        for change in changes:
            if low or change.risk is not Risk.LOW:
                lines += (one_line(line) for line in _text_lines(change))
                lines += (f"      | {_shown(row)}" for row in _rows(change) if code)
        lines.append("")
    lines += _text_checklist(diff)
    hidden = 0 if low else diff.count(Risk.LOW)
    if hidden:
        lines.append(f"{hidden} of low risk not shown: --verbose shows them")
    return "\n".join(lines) + "\n"


def summary(diff: FeatureDiff) -> str:
    """Say in one line how many changes there are, and how far the migration is."""
    steps = len(diff.checklist)
    done = steps - len(diff.open_items)
    what = counted(diff.changes) or "nothing changed for this workspace"
    return f"sglang {diff.old} to {diff.new}: {what}; checklist: {done} of {steps} done"


def counted(changes: Sequence[Change]) -> str:
    """Return the number of changes by risk, in words; "" where there is none."""
    numbers = {risk: sum(c.risk is risk for c in changes) for risk in Risk}
    return ", ".join(f"{n} {risk.value}" for risk, n in numbers.items() if n)


def about(change: Change) -> str:
    """Say which bindings, or which line, a change is about, of which family and how they stand."""
    parts = [change.family] if change.family else []
    parts += [change.status] if change.bindings or change.status == "bound" else []
    named = ", ".join(change.bindings) or change.stated
    told = [named] if named else []
    return " ".join([*told, *([f"({', '.join(parts)})"] if parts else [])])


def code_size(change: Change) -> str:
    """Return how many lines the code's diff adds and takes away."""
    more, less = change.lines
    if not change.code:
        return ""
    cut = change.code.rpartition("\n")[2].startswith(CUT)
    return f"+{more} −{less}{' and more' if cut else ''}"


def _text_lines(change: Change) -> Iterator[str]:
    yield f"  {change.risk.value:6} {change.subject}"
    if told := about(change):
        yield f"         {told}"
    for fact in change.facts:
        size = f" ({code_size(change)})" if fact.aspect == "body" and change.code else ""
        yield f"         {fact.aspect}: {fact.text}{size}"
    if change.new is not None:
        yield f"         at {change.new.file}:{change.new.line}"
    elif change.old is not None:
        yield f"         was at {change.old.file}:{change.old.line}"


def _rows(change: Change) -> list[str]:
    return change.code.split("\n") if change.code else []


def _shown(row: str) -> str:
    return one_line(row.expandtabs(4))


def _text_checklist(diff: FeatureDiff) -> Iterator[str]:
    if not diff.checklist:
        return
    yield "Migration checklist"
    for item in diff.checklist:
        yield one_line(f"  [{'x' if item.done else ' '}] {item.risk.value:6} {item.title}")
        if not item.done:
            codes = ", ".join(dict.fromkeys(f.code for f in item.findings))
            yield one_line(f"             {f'{codes}: ' if codes else ''}{item.todo}")
    yield ""


def render_markdown(diff: FeatureDiff) -> str:
    """Return everything as Markdown, the code's diffs folded."""
    lines = [
        f"# SGLang {_plain(diff.old)} to {_plain(diff.new)}",
        "",
        f"{_plain(summary(diff))}.",
        "",
    ]
    lines += ["## Migration checklist", ""]
    lines += [_markdown_item(item) for item in diff.checklist] or ["Nothing to do."]
    lines.append("")
    for landing, changes in diff.grouped().items():
        lines += [f"## {LANDINGS[landing]}", "", f"{counted(changes)}.", ""]
        for change in changes:
            lines += _markdown_change(change)
        lines.append("")
    return "\n".join(lines)


def _markdown_item(item: Item) -> str:
    mark = "x" if item.done else " "
    codes = ", ".join(dict.fromkeys(f.code for f in item.findings))
    todo = "" if item.done else f" — {f'{codes}: ' if codes else ''}{_plain(item.todo)}"
    return f"- [{mark}] **{item.risk.value}** {_plain(item.title)}{todo}"


def _markdown_change(change: Change) -> Iterator[str]:
    yield f"- **{change.risk.value}** {_code(change.subject)} {_plain(about(change))}".rstrip()
    for fact in change.facts:
        yield f"    - {fact.aspect}: {_plain(fact.text)}"
    if change.code:
        fence = _fence(change.code)
        yield ""
        yield f"    <details><summary>{code_size(change)} lines</summary>"
        yield ""
        yield f"    {fence}diff"
        yield from (f"    {row}" for row in _clean(change.code.split("\n")))
        yield f"    {fence}"
        yield "    </details>"
        yield ""


def _clean(rows: Iterable[str]) -> Iterator[str]:
    return (_shown(row) for row in rows)


def _fence(text: str) -> str:
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return ticks

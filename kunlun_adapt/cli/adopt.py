"""`kunlun-adapt adopt`: read a plugin written by hand, and write the YAML that says the same."""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from packaging.version import Version

from kunlun_adapt.check import check_release
from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    OneRelease,
    Quiet,
    TextOrJson,
    as_json,
    cannot,
    emit,
    fail,
    named_releases,
    obtain,
    open_lock,
    remark,
    working,
)
from kunlun_adapt.cli.writing import write_whole
from kunlun_adapt.diagnostics import ReleaseReport, Severity, render_text, worst
from kunlun_adapt.diagnostics.report import one_line
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.adopt import (
    OPERATOR_FILE,
    Adoption,
    Sources,
    adopt_plugin,
    read_sources,
    wanted_release,
)
from kunlun_adapt.locate import MAP_FILE, SHIPPED
from kunlun_adapt.plan import make_plan
from kunlun_adapt.upstream import Resolver


def adopt(
    path: Annotated[
        Path,
        typer.Argument(help="The plugin: its project's folder, its package, or one .py file."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="The workspace's folder, new or empty."),
    ] = Path("adopted"),
    sglang: OneRelease = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="RELEASE",
            help="With --check: validate against this release too, beyond all claims. May be "
            "given several times.",
            show_default=False,
            callback=named_releases,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say what `validate` makes of it.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that is not empty.")
    ] = False,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output format.")] = (
        TextOrJson.TEXT
    ),
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Read a plugin's Python without importing it, and write a workspace that says the same.

    --sglang is the release that the plugin was written for; without it the
    one that its project files pin, else the newest known that they allow.
    Whatever the text does not settle is listed with its file and line.

    Exit codes: 0 done, 1 a file could not be read or --check finds errors,
    2 could not do the job.

    Examples:

      kunlun-adapt adopt ../their-plugin --sglang 0.5.19 --out their-workspace

      kunlun-adapt adopt ../their-plugin --check --against 0.5.23
    """
    if against and not check:
        raise typer.BadParameter("--against says what --check validates against; add --check")
    with cannot():
        if not check:
            _refuse_full(out, force)
        sources = read_sources(path)
        home = next((root for root in SHIPPED if (root / MAP_FILE).is_file()), None)
        if home is None:
            fail("no workspace found beside the installed package", "reinstall kunlun-adapt")
        shipped, lock = load_catalog(home), open_lock(home)
        spec = sglang or wanted_release(sources, tuple(lock.releases))
        if spec is None:
            fail("no release is known here", "give --sglang VERSION")
        if sglang is None and not quiet:
            stated = sources.project.sglang
            why = f"the plugin asks for sglang{stated}" if stated else "the newest known here"
            remark(f"reading it for sglang {spec}: {why}")
        resolver = Resolver(obtain(spec, offline=offline, quiet=quiet))
        with working(f"reading {sources.top[0] if sources.top else path}", quiet=quiet):
            adoption = adopt_plugin(sources, resolver, shipped, out)
        reports: list[ReleaseReport] = []
        own: tuple[str, ...] = ()
        written: list[str] = []
        if check:
            reports, own = _check(adoption, resolver, against or [], offline=offline, quiet=quiet)
        else:
            written = _write(adoption, out)
        if format is TextOrJson.JSON:
            emit(as_json(_as_data(adoption, written, reports)))
        else:
            emit(_as_text(adoption, written, reports, own))
        if written and not quiet:
            command = ["kunlun-adapt", "validate", "--workspace", str(out)]
            newest = max((*lock.releases, resolver.version), key=Version)
            remark(f"next: {shlex.join([*command, '--sglang', spec])}")
            if newest != resolver.version:
                remark(f"then: {shlex.join([*command, '--sglang', newest, '--beyond-claims'])}")
    gravest = worst(reports)
    unread = any(left.reason == "file" for left in adoption.left)
    if unread or (gravest is not None and gravest >= Severity.ERROR):
        raise typer.Exit(EXIT_FINDINGS)


def _refuse_full(out: Path, force: bool) -> None:
    """End where writing would overwrite something that nobody has asked to overwrite."""
    if out.exists() and not out.is_dir():
        fail(f"{out} is not a folder", "give another --out DIR")
    if out.is_dir() and any(out.iterdir()) and not force:
        fail(f"{out} is not empty", "give another --out DIR, or --force to write into it")


def _write(adoption: Adoption, out: Path) -> list[str]:
    for name, text in adoption.files.items():
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
    if OPERATOR_FILE not in adoption.files:  # of an earlier run
        (out / OPERATOR_FILE).unlink(missing_ok=True)
    return [str(out / name) for name in adoption.files]


def _check(
    adoption: Adoption, resolver: Resolver, against: Sequence[str], *, offline: bool, quiet: bool
) -> tuple[list[ReleaseReport], tuple[str, ...]]:
    """Validate the documents as they would be written, in a folder that goes away again.

    With the reports comes what the map binds for its own sake, beside what was taken over.
    """
    with tempfile.TemporaryDirectory(prefix="kunlun-adapt-") as folder:
        root = Path(folder).resolve()
        again = adoption.moved(root)
        _write(again, root)
        catalog = load_catalog(root)
        reports = []
        readers = [(resolver, False)]
        for spec in against:
            readers.append((Resolver(obtain(spec, offline=offline, quiet=quiet)), True))
        for reader, beyond in readers:
            with working(f"checking sglang {reader.version}", quiet=quiet) as progress:
                reader.progress = progress
                # There is no lock yet: that nothing is in it goes without saying.
                report = check_release(
                    catalog, reader, beyond_claims=beyond, ignored=lambda code: code == "KA107"
                )
            kept = tuple(f for f in report.findings if f.code != "KA107")
            reports.append(
                ReleaseReport(report.release, report.bound, report.planned, report.excluded, kept)
            )
        plans = [make_plan(catalog, resolver, p) for p in adoption.content["device"]["profiles"]]
    taken = {t.id for t in adoption.taken}
    ids = dict.fromkeys(b.id for plan in plans for b in plan.bindings)
    return reports, tuple(id for id in ids if id not in taken)


def _as_data(
    adoption: Adoption, written: Sequence[str], reports: Sequence[ReleaseReport]
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "plugin": list(adoption.sources.top),
        "release": adoption.release,
        "files": len(adoption.sources.modules),
        "entry_points": [
            {"group": e.group, "name": e.name, "object": f"{e.module}:{e.attribute}"}
            for e in adoption.sources.project.entry_points
        ],
        "bindings": [
            {
                "id": t.id,
                "kind": t.kind,
                "target": t.target,
                "status": t.status,
                "file": t.file,
                "line": t.line,
            }
            for t in adoption.taken
        ],
        "left": [
            {
                "reason": x.reason,
                "message": x.what,
                "bindings": list(x.bindings),
                "file": x.file,
                "line": x.line,
            }
            for x in adoption.left
        ],
        "written": list(written),
    }
    if reports:
        body["releases"] = [r.to_json() for r in reports]
    return body


def _as_text(
    adoption: Adoption,
    written: Sequence[str],
    reports: Sequence[ReleaseReport],
    own: Sequence[str] = (),
) -> str:
    sources: Sources = adoption.sources
    planned = sum(t.status == "planned" for t in adoption.taken)
    kinds = Counter(t.kind for t in adoption.taken)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    lines = [
        f"{', '.join(sources.top)}: {len(sources.modules)} files read for sglang "
        f"{adoption.release}",
        f"taken over: {len(adoption.taken)} ({planned} planned){f': {counts}' if counts else ''}",
    ]
    if own:
        lines.append(f"bound beside it, as every map has them: {len(own)}: {', '.join(own)}")
    if adoption.left:
        lines.append(f"for you to look at: {len(adoption.left)}")
        lines += [f"  {one_line(str(left))}" for left in adoption.left]
    lines += [f"wrote {name}" for name in written]
    text = "\n".join(one_line(line) for line in lines) + "\n"
    return text + (f"\n{render_text(reports, infos=False)}" if reports else "")

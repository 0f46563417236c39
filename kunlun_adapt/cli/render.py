"""`kunlun-adapt render`: the generated source, to read, to write, and to compare."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from packaging.version import Version
from rich.console import Console
from rich.syntax import Syntax

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    OneRelease,
    Profile,
    Quiet,
    TextOrJson,
    Workspace,
    as_json,
    cannot,
    default_release,
    emit,
    fail,
    is_version,
    named_release,
    obtain,
    open_lock,
    open_workspace,
    refuse_faulty,
    remark,
)
from kunlun_adapt.cli.writing import write_whole
from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import Catalog
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import Source, compile_plan, template_folder
from kunlun_adapt.upstream import ReleaseError, Resolver

_MARK = "enerated by kunlun-adapt"
"""What the docstring of every generated module says; `--out` touches no other file."""


def render(
    module: Annotated[
        str | None,
        typer.Argument(
            help="Print this module only: bindings, platform, hooks, operators/NAME or NAME.",
            show_default=False,
        ),
    ] = None,
    sglang: OneRelease = None,
    workspace: Workspace = None,
    profile: Annotated[
        Profile | None,
        typer.Option(help="Who stands in for the device. Default: card.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the modules into this folder.", show_default=False),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            help="Compare with this folder; exit 1 and a diff when it is stale. Of a folder that "
            "holds RELEASE/PROFILE folders, each is compared with what its release renders to; "
            "--sglang and --profile choose among them.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RELEASE",
            help="Show what the code becomes in that release, as a unified diff.",
            show_default=False,
            callback=named_release,
        ),
    ] = None,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Print or write exactly the source that runs when SGLang starts.

    Examples:

      kunlun-adapt render silu_and_mul --sglang 0.5.19 --profile simulator

      kunlun-adapt render --sglang 0.5.19 --out rendered/0.5.19/card

      kunlun-adapt render --sglang 0.5.19 --check rendered/0.5.19/card

      kunlun-adapt render --check rendered

      kunlun-adapt render platform --sglang 0.5.19 --against 0.5.23
    """
    _one_job(out=out, check=check, against=against, json=format is TextOrJson.JSON)
    with cannot():
        root, catalog = open_workspace(workspace, quiet=quiet)
        if check is not None and not check.is_dir():
            fault = "is not a folder" if check.exists() else "does not exist"
            fail(f"--check {check}: {fault}", "make it with kunlun-adapt render --out DIR")
        places = [] if check is None else _places(check)
        if check is not None and places:
            chosen = _chosen(check, places, sglang, profile, offline=offline, quiet=quiet)
            _check_each(root, catalog, chosen, module, offline=offline, quiet=quiet)
            return
        spec = sglang or default_release(catalog, open_lock(root))
        stand_in = (profile or Profile.CARD).value
        source = _source(root, catalog, spec, stand_in, offline, quiet)
        if against is not None:
            other = _source(root, catalog, against, stand_in, offline, quiet)
            _compare(source, other, module, quiet=quiet)
            return
        modules = _selected(source.modules, module)
        if out is not None:
            _write(out, modules, whole=module is None)
            if not quiet:
                remark(f"{len(modules)} modules written to {out}")
            return
        if check is not None:
            place = _Place(check, spec, stand_in)
            if _is_stale(place, modules, source, module, quiet=quiet):
                raise typer.Exit(EXIT_FINDINGS)
        elif format is TextOrJson.JSON:
            body = {"release": source.release, "profile": source.profile, "modules": modules}
            emit(as_json(body))
        else:
            _print(modules)


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder of generated modules, and what they were generated for."""

    folder: Path
    spec: str
    profile: str
    name: str = ""
    """Its path in the folder that holds several, empty for the only one."""


def _places(folder: Path) -> list[_Place]:
    """Return the RELEASE/PROFILE folders in one that holds no generated modules itself."""
    if _read(folder, ()):
        return []
    profiles = {profile.value for profile in Profile}
    found = [p for p in folder.glob("*/*") if p.name in profiles and p.is_dir()]
    named = [p for p in found if is_version(p.parent.name)]
    named.sort(key=lambda p: (Version(p.parent.name), p.name))
    return [_Place(p, p.parent.name, p.name, f"{p.parent.name}/{p.name}") for p in named]


def _chosen(
    folder: Path,
    places: list[_Place],
    sglang: str | None,
    profile: Profile | None,
    *,
    offline: bool,
    quiet: bool,
) -> list[_Place]:
    """Return the places of the release and the profile that are asked for, all where none is."""
    release = profile_name = None
    if profile is not None:
        profile_name = profile.value
        places = [p for p in places if p.profile == profile_name]
    if sglang is not None:
        # The folder says which release it is for; the option may say where that is to be had.
        release = obtain(sglang, offline=offline, quiet=quiet).version
        same = [p for p in places if Version(p.spec) == Version(release)]
        places = [replace(p, spec=sglang) for p in same]
    if not places:
        what = " ".join(filter(None, [f"sglang {release}" if release else "", profile_name]))
        wanted = folder / (release or "RELEASE") / (profile_name or Profile.CARD.value)
        place = _Place(wanted, sglang or "RELEASE", profile_name or Profile.CARD.value)
        fail(f"--check {folder}: it holds no folder for {what}", _again(place, None))
    return places


def _check_each(
    root: Path,
    catalog: Catalog,
    places: Iterable[_Place],
    module: str | None,
    *,
    offline: bool,
    quiet: bool,
) -> None:
    """Compare several folders, each with its own release, and say of all of them how they are."""
    stale = False
    missing: list[tuple[_Place, ReleaseError]] = []
    for place in places:
        try:
            source = _source(root, catalog, place.spec, place.profile, offline, quiet)
        except ReleaseError as error:
            missing.append((place, error))
            continue
        modules = _selected(source.modules, module)
        stale |= _is_stale(place, modules, source, module, quiet=quiet)
    if missing:
        first = missing[0][1]
        names = ", ".join(str(p.folder) for p, _ in missing)
        fail(f"not compared: {names}: {first.message}", first.hint)
    if stale:
        raise typer.Exit(EXIT_FINDINGS)


def _is_stale(
    place: _Place, modules: Mapping[str, str], source: Source, module: str | None, *, quiet: bool
) -> bool:
    """Compare one folder; print what is stale in it, and the command that writes it anew."""
    stale = _check(place, modules, source, one=module is not None, quiet=quiet)
    if stale:
        remark(f"{stale} is stale; try: {_again(place, next(iter(modules)) if module else None)}")
    return stale is not None


def _again(place: _Place, module: str | None) -> str:
    """Return the command that writes a folder anew, or one module of it."""
    named = [module] if module else []
    to = ["--sglang", place.spec, "--profile", place.profile, "--out", str(place.folder)]
    return shlex.join(["kunlun-adapt", "render", *named, *to])


def _source(
    root: Path, catalog: Catalog, spec: str, profile: str, offline: bool, quiet: bool
) -> Source:
    refuse_faulty(catalog)
    release = obtain(spec, offline=offline, quiet=quiet)
    return compile_plan(make_plan(catalog, Resolver(release), profile), template_folder(root))


def _selected(modules: Mapping[str, str], name: str | None) -> dict[str, str]:
    if name is None:
        return dict(modules)
    for candidate in (name, f"operators/{name}"):
        if candidate in modules:
            return {candidate: modules[candidate]}
    fail(f"no generated module {name!r}", f"one of: {', '.join(modules)}")


def _compare(source: Source, other: Source, module: str | None, *, quiet: bool) -> None:
    """Print what one release's code becomes in another, under the names of both."""
    both = {**other.modules, **source.modules}
    names = list(_selected(both, module)) if module else sorted(both)
    labels = (f"sglang-{source.release}", f"sglang-{other.release}")
    changes = _differences(source.modules, other.modules, names, labels)
    emit(changes)
    if not changes and not quiet:
        remark(f"the code is the same in sglang {source.release} and {other.release}")


def _check(
    place: _Place, modules: Mapping[str, str], source: Source, *, one: bool, quiet: bool
) -> Path | None:
    """Print what is stale in a folder, of which only the module is looked at that `one` names.

    Returns what is stale: the folder, or the one file.
    """
    folder = place.folder
    found = _read(folder, modules)
    names = list(modules) if one else sorted({*found, *modules})
    what = folder / f"{names[0]}.py" if one else folder
    below = f"/{place.name}" if place.name else ""
    stale = _differences(found, modules, names, (f"a{below}", f"b{below}"))
    emit(stale)
    if not stale and not quiet:
        emit(f"{what} is what sglang {source.release} ({source.profile}) renders to\n")
    foreign = [name for name in _names(folder).values() if name not in {*found, *modules}]
    if foreign and not one and not quiet:
        files = ", ".join(f"{name}.py" for name in foreign)
        remark(f"not generated by kunlun-adapt, and not compared: {files}")
    return what if stale else None


def _one_job(*, out: Path | None, check: Path | None, against: str | None, json: bool) -> None:
    """Refuse two jobs at a time, since one would be left undone. Raises UsageError."""
    named = {"--out": out, "--check": check, "--against": against, "--format json": json or None}
    asked = [option for option, value in named.items() if value is not None]
    if len(asked) > 1:
        raise typer.BadParameter(f"{' and '.join(asked)} exclude each other; give one of them")


def _print(modules: Mapping[str, str]) -> None:
    console = Console()
    for name, text in modules.items():
        heading = f"# ---- {name}.py\n" if len(modules) > 1 else ""
        if console.is_terminal:
            # As text, not as a panel: a panel is cut or padded at the terminal's width.
            code = Syntax("", "python", background_color="default").highlight(heading + text)
            console.print(code, soft_wrap=True, end="")
        else:
            emit(heading + text)


def _write(folder: Path, modules: Mapping[str, str], *, whole: bool) -> None:
    """Write each module whole or not at all, and drop generated modules that are no more.

    Files that somebody else wrote stay. Raises AdaptError, before anything is written, where one
    stands in the way.
    """
    for name in modules:
        path = folder / f"{name}.py"
        if os.path.lexists(path) and not _is_generated(path):
            raise AdaptError(
                f"{path} was not generated by kunlun-adapt; nothing is written",
                "move it away, or give --out another folder",
            )
    for name, text in modules.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    for name in set(_read(folder, ())) - set(modules) if whole else ():
        (folder / f"{name}.py").unlink()


def _read(folder: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Return the generated modules in a folder, and those of `wanted` whoever wrote them."""
    expected = set(wanted)
    return {
        name: path.read_text(encoding="utf-8", errors="replace")
        for path, name in _names(folder).items()
        if _is_generated(path) or (name in expected and path.is_file())
    }


def _names(folder: Path) -> dict[Path, str]:
    """Return the Python files that are where modules are written, with the modules' names."""
    places = [*folder.glob("*.py"), *(folder / "operators").glob("*.py")]
    return {p: p.relative_to(folder).with_suffix("").as_posix() for p in sorted(places)}


def _is_generated(path: Path) -> bool:
    """Tell whether a file is a module that we wrote, by its docstring.

    The text is not parsed: a merge may have left conflict marks further below.
    """
    if not path.is_file():
        return False
    text = path.read_bytes().decode("utf-8", errors="replace")
    quote, docstring, _ = (*text.split('"""', 2), "", "")[:3]
    return not quote and _MARK in docstring


def _differences(
    before: Mapping[str, str],
    after: Mapping[str, str],
    names: Iterable[str],
    labels: tuple[str, str],
) -> str:
    lines: list[str] = []
    for name in names:
        old = before.get(name, "").splitlines(keepends=True)
        new = after.get(name, "").splitlines(keepends=True)
        # A module that only one side has is made or dropped, as diff itself says it.
        old_name = f"{labels[0]}/{name}.py" if name in before else "/dev/null"
        new_name = f"{labels[1]}/{name}.py" if name in after else "/dev/null"
        lines += difflib.unified_diff(old, new, old_name, new_name, n=2)
    return "".join(lines)

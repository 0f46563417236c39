"""What all commands share: options, releases, the console, and how failures end."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer
from packaging.version import InvalidVersion, Version

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.diagnostics.report import SCHEMA
from kunlun_adapt.documents import Catalog, in_range, load_catalog
from kunlun_adapt.locate import LOCK_FILE, find_workspace
from kunlun_adapt.upstream import (
    Facts,
    Lock,
    LockError,
    LockFacts,
    Release,
    ReleaseError,
    Resolver,
    open_release,
    read_lock,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_RELEASE = re.compile(r'"release": *"([^"]{1,40})"')

EXIT_FINDINGS = 1
EXIT_CANNOT = 2

Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        help="Folder that holds platform_map.yaml. Default: KUNLUN_ADAPT_WORKSPACE, else the "
        "current folder if it holds one, else the workspace that ships with kunlun-adapt.",
        show_default=False,
    ),
]


def named_release(given: str | None) -> str | None:
    """Return the release as given, without blanks around it. Raises BadParameter where empty."""
    if given is not None and not given.strip():
        raise typer.BadParameter("no release is named; is a variable of the shell unset?")
    return given and given.strip()


def named_releases(given: list[str] | None) -> list[str] | None:
    """Return each release once, in the order given. Raises BadParameter for an empty one."""
    return list(dict.fromkeys(r for spec in given or () if (r := named_release(spec)))) or None


Releases = Annotated[
    list[str] | None,
    typer.Option(
        "--sglang",
        metavar="RELEASE",
        help="A version, a wheel, a folder, git:PATH@REV, or 'installed'. May be given several "
        "times. "
        "Default: installed, else the newest that the map claims and the lock knows.",
        show_default=False,
        callback=named_releases,
    ),
]
OneRelease = Annotated[
    str | None,
    typer.Option(
        "--sglang",
        metavar="RELEASE",
        help="A version, a wheel, a folder, git:PATH@REV, or 'installed'. "
        "Default: installed, else the newest that the map claims and the lock knows.",
        show_default=False,
        callback=named_release,
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never touch the network.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Results and errors only: no progress, no remarks.")
]


class Profile(str, Enum):
    """Who stands in for the device."""

    CARD = "card"
    SIMULATOR = "simulator"
    SIMULATOR_CUDA = "simulator_cuda"


class TextOrJson(str, Enum):
    """Output for people or for programs."""

    TEXT = "text"
    JSON = "json"


def fail(message: str, hint: str | None = None) -> NoReturn:
    """Say on stderr what could not be done and what to do next; exit with 2."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print("[bold red]error:[/] ", end="")
    console.print(message, markup=False)
    if hint:
        console.print(f"  try: {hint}", markup=False)
    raise typer.Exit(EXIT_CANNOT)


@contextlib.contextmanager
def cannot() -> Iterator[None]:
    """Turn the errors that mean 'could not do the job' into exit code 2."""
    try:
        yield
    except AdaptError as error:
        fail(error.message, error.hint)
    except ReleaseError as error:
        fail(error.message, error.hint)
    except LockError as error:
        fail(str(error), _lock_hint(error))
    except OSError as error:
        fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))


def locate_workspace(given: Path | None, *, quiet: bool = False) -> Path:
    """Find the workspace and, where no option names it, say on stderr which it is.

    Raises AdaptError.
    """
    root = find_workspace(given, current=True)
    if given is None and not quiet:
        remark(f"workspace: {root}")
    return root


def open_workspace(given: Path | None, *, quiet: bool = False) -> tuple[Path, Catalog]:
    """Find and load the workspace. Raises AdaptError."""
    root = locate_workspace(given, quiet=quiet)
    return root, load_catalog(root)


def refuse_faulty(catalog: Catalog) -> None:
    """Raises AdaptError where the documents could not be read without a finding."""
    if catalog.findings:
        count = len(catalog.findings)
        raise AdaptError(f"the documents have {count} finding(s)", "kunlun-adapt validate")


def open_lock(root: Path) -> Lock:
    """Return the workspace's lock, empty where there is none. Raises LockError or AdaptError."""
    path = root / LOCK_FILE
    if not os.path.lexists(path):
        return Lock()
    if not path.is_file():
        raise AdaptError(
            f"{path} is not a regular file", "move it away, then kunlun-adapt lock --sglang VERSION"
        )
    return read_lock(path)


def releases_in(broken: Path) -> list[str]:
    """Return the releases that a lock names which cannot be read as a whole, oldest first."""
    try:
        text = broken.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return []
    return sorted({r for r in _RELEASE.findall(text) if is_version(r)}, key=Version)


def is_version(text: str) -> bool:
    """Tell whether a text is a version, such as a release has."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _lock_hint(error: LockError) -> str:
    releases = releases_in(Path(error.file)) or ["VERSION"]
    again = " ".join(f"--sglang {release}" for release in releases)
    return f"settle the merge that left it so, or write it anew: kunlun-adapt lock {again}"


def default_release(catalog: Catalog, lock: Lock) -> str:
    """Return the release that a command works on when none is named. Raises AdaptError."""
    import importlib.util

    if importlib.util.find_spec("sglang") is not None:
        return "installed"
    claim = catalog.platform_map.model.sglang if catalog.platform_map else ""
    known = [r for r in lock.releases if in_range(claim, r)]
    if not known:
        raise AdaptError("no release named, and none is installed", "give --sglang VERSION")
    return max(known, key=Version)


def obtain(spec: str, *, offline: bool, quiet: bool) -> Release:
    """Open a release, with a progress bar on a terminal where it has to be fetched first."""
    console = None if quiet else terminal(sys.stderr)
    if console is None:
        say = _plain(spec, quiet)
        return open_release(spec, offline=offline, progress=say)
    with _bar(console) as bar:
        task = bar.add_task(f"sglang {spec}", total=None)

        def show(message: str, fraction: float | None) -> None:
            total = None if fraction is None else 1.0
            bar.update(task, description=message, total=total, completed=fraction or 0.0)

        return open_release(spec, offline=offline, progress=show)


def as_release(spec: str, version: str) -> str:
    """Return how to name the release that a spec will be, whose `version` no range may name."""
    from kunlun_adapt.check.releases import release_at

    place, to_come = spec.removesuffix(f"@{version}"), release_at(version)
    if place.startswith("git:") or Path(place).expanduser().is_dir():
        return f"{place}@{to_come}"
    return f"DIR@{to_come}, where DIR is the folder that holds its sglang/"


def facts_of(spec: str, lock: Lock, *, offline: bool, quiet: bool) -> Facts:
    """Return what is known of a release: from the lock where it holds it, else from the release."""
    if spec in lock.releases:
        return LockFacts(lock, spec)
    return Resolver(obtain(spec, offline=offline, quiet=quiet))


@contextlib.contextmanager
def working(what: str, *, quiet: bool) -> Iterator[Callable[[str, float | None], None] | None]:
    """Show on a terminal what is being done, for as long as it takes.

    What is yielded takes what part of it is being done, and how far that is; None where nobody
    looks.
    """
    console = None if quiet else terminal(sys.stderr)
    if console is None:
        yield None
        return
    with _bar(console) as bar:
        task = bar.add_task(what, total=None)

        def show(part: str, fraction: float | None) -> None:
            done = fraction is not None and fraction >= 1.0
            total = None if fraction is None or done else 1.0
            description = what if done else f"{what}: {part}"
            bar.update(task, description=description, total=total, completed=fraction or 0.0)

        yield show


def terminal(stream: TextIO | None) -> Console | None:
    """Return a console on a stream where that is a terminal, or is said to be one."""
    # Rich takes long to import, and may only be told by these that a pipe is a terminal.
    if stream is None or not (
        stream.isatty() or os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}
    ):
        return None
    from rich.console import Console

    console = Console(stderr=stream is sys.stderr, highlight=False)
    return console if console.is_terminal else None


def _bar(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # Rich would put something of its own in the place of a closed stdout, and leave it there.
    return Progress(*columns, console=console, transient=True, redirect_stdout=False)


def _plain(spec: str, quiet: bool) -> Callable[[str, float | None], None]:
    said: set[str] = set()

    def show(message: str, fraction: float | None) -> None:
        if not quiet and message not in said:
            said.add(message)
            print(message, file=sys.stderr, flush=True)

    return show


def remark(text: str) -> None:
    """Say something on stderr that is no part of the result."""
    print(text, file=sys.stderr)


def emit(text: str) -> None:
    """Write a command's result to stdout as it is. Raises AdaptError where that is closed."""
    if sys.stdout is None:
        raise AdaptError("stdout is closed", "send what is not wanted to /dev/null")
    sys.stdout.write(text)
    sys.stdout.flush()


def as_json(body: dict[str, Any]) -> str:
    """Return a versioned JSON document."""
    import json

    return json.dumps({"schema": SCHEMA, **body}, indent=2, ensure_ascii=False) + "\n"

"""Fetch the wheel of a version through the user's own pip, once per machine.

SGLang's wheels are built for each CPython and for Linux. Since they are only read here, a wheel
for another interpreter or another system is as good, and pip is asked for one where the running
interpreter has none.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from kunlun_adapt.upstream.errors import ReleaseError
from kunlun_adapt.upstream.seal import seal, seal_holds

#: Receives a message and the done fraction, None while it is unknown.
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class PipResult:
    """How a pip run ended, and all that it printed."""

    returncode: int
    output: str


#: Runs pip with the arguments and hands over each printed line as it comes.
PipRunner = Callable[[Sequence[str], Callable[[str], None]], PipResult]

CACHE_VARIABLE = "KUNLUN_ADAPT_CACHE"
_OTHER_PYTHONS = ("3.12", "3.11", "3.13", "3.10")
_GLIBC = range(17, 43)
_UNREACHABLE = (
    "NewConnectionError",
    "ConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
    "Max retries exceeded",
    "connection broken",
    "SSLError",
    "ProxyError",
    "ResolutionError",
)


def default_cache_dir() -> Path:
    """The user's cache folder for this tool; `KUNLUN_ADAPT_CACHE` overrides it."""
    stated = os.environ.get(CACHE_VARIABLE)
    return Path(stated) if stated else Path(platformdirs.user_cache_dir("kunlun-adapt"))


def fetch_wheel(
    version: Version,
    *,
    cache_dir: Path | None = None,
    offline: bool = False,
    progress: Progress | None = None,
    pip: PipRunner | None = None,
) -> Path:
    """The cached wheel of a version, downloaded first where it is not there yet.

    Safe to call from many processes at once. Raises ReleaseError where the version does not
    exist (with the nearest ones), where no index answers, and where `offline` forbids to ask.
    """
    cache = cache_dir or default_cache_dir()
    folder = cache / "releases"
    try:
        # One by one: with parents=True the mode would hold for the last folder only.
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ReleaseError(
            f"the cache folder {folder} cannot be made: {error}",
            f"set {CACHE_VARIABLE} to a folder that you can write",
        ) from error
    # A wheel that is there and intact needs no lock: it was renamed into place whole.
    wheel = _cached(folder, version)
    if wheel is not None and seal_holds(wheel):
        return wheel
    from filelock import FileLock

    # One lock for all versions: one for each would leave a file for each misspelt version.
    with FileLock(folder / ".fetch.lock"):
        wheel = _cached(folder, version)
        if wheel is not None and seal_holds(wheel):
            return wheel
        if offline:
            state = "is not cached" if wheel is None else "is damaged in the cache"
            raise ReleaseError(
                f"the wheel of SGLang {version} {state} and --offline forbids to fetch it",
                "run once without --offline, or give a wheel file",
            )
        if wheel is not None:
            wheel.unlink(missing_ok=True)
        return _download(folder, version, progress or _silent, pip or run_pip)


def _silent(message: str, fraction: float | None) -> None:
    return None


def _cached(folder: Path, version: Version) -> Path | None:
    for path in sorted(folder.glob("sglang-*.whl")):
        try:
            if parse_wheel_filename(path.name)[1] == version:
                return path
        except (InvalidWheelFilename, InvalidVersion):
            continue
    return None


def _download(folder: Path, version: Version, progress: Progress, pip: PipRunner) -> Path:
    listed: set[str] = set()
    output = ""
    # The folder lies beside the target so that the rename stays within one file system.
    scratch = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
    try:
        for flags in _interpreters():
            progress(f"fetching SGLang {version}", None)
            arguments = ["download", "--no-deps", "--only-binary=:all:", "--no-input"]
            arguments += ["--disable-pip-version-check", "--dest", str(scratch)]
            arguments += [*flags, f"sglang=={version}"]
            result = pip(arguments, _reporter(version, progress))
            output = result.output
            wheels = sorted(scratch.glob("*.whl"))
            if result.returncode == 0 and wheels:
                target = folder / wheels[0].name
                seal(wheels[0])
                wheels[0].with_name(f"{wheels[0].name}.sha256").replace(
                    target.with_name(f"{target.name}.sha256")
                )
                wheels[0].replace(target)
                progress(f"fetched {target.name}", 1.0)
                return target
            if "No module named pip" in output:
                raise ReleaseError(
                    f"SGLang {version} cannot be fetched: this Python has no pip",
                    "run `python -m ensurepip`, or give a wheel file",
                )
            found = _listed_versions(output)
            if not found and any(sign in output for sign in _UNREACHABLE):
                raise ReleaseError(
                    f"SGLang {version} cannot be fetched: the package index does not answer",
                    "check pip's configuration with `pip config list`, or give a wheel file",
                )
            listed |= found
            if "No matching distribution" not in output:
                break
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    raise _not_fetched(version, listed, output)


def _interpreters() -> Iterator[list[str]]:
    """pip flags to ask with: for the running interpreter first, then for others on Linux."""
    yield []
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in reversed(_GLIBC)]
    platforms += ["manylinux2014_x86_64", "linux_x86_64"]
    for python in _OTHER_PYTHONS:
        flags = ["--implementation", "cp", "--python-version", python]
        for abi in (f"cp{python.replace('.', '')}", "abi3", "none"):
            flags += ["--abi", abi]
        for platform in platforms:
            flags += ["--platform", platform]
        yield flags


def _reporter(version: Version, progress: Progress) -> Callable[[str], None]:
    def report(line: str) -> None:
        match = re.match(r"\s*Progress (\d+) of (\d+)", line)
        if match and int(match[2]):
            progress(f"fetching SGLang {version}", int(match[1]) / int(match[2]))

    return report


def _listed_versions(output: str) -> set[str]:
    found: set[str] = set()
    for match in re.finditer(r"\(from versions: ([^)]*)\)", output):
        found |= {part.strip() for part in match[1].split(",")} - {"", "none"}
    return found


def _not_fetched(version: Version, listed: set[str], output: str) -> ReleaseError:
    near = nearest_versions(version, listed)
    if version not in {Version(text) for text in near} and listed:
        return ReleaseError(
            f"SGLang {version} does not exist", f"the nearest versions are {', '.join(near)}"
        )
    lines = [line for line in output.splitlines() if line.startswith("ERROR:")]
    reason = lines[-1].removeprefix("ERROR:").strip() if lines else "pip gave no reason"
    return ReleaseError(
        f"SGLang {version} cannot be fetched: {reason}",
        "try `pip download --no-deps sglang==…` yourself, or give a wheel file",
    )


def nearest_versions(version: Version, listed: set[str], count: int = 4) -> list[str]:
    """The listed versions nearest to one, in order; pre-releases only where it is one."""
    known: list[Version] = []
    for text in listed:
        try:
            known.append(Version(text))
        except InvalidVersion:
            continue
    known = sorted(item for item in known if version.is_prerelease or not item.is_prerelease)
    below = [item for item in known if item < version]
    above = [item for item in known if item > version]
    half = count // 2
    lower = below[-max(half, count - len(above)) :]
    chosen = lower + above[: count - len(lower)]
    return [str(item) for item in ([version] if version in known else []) + chosen]


def run_pip(arguments: Sequence[str], on_line: Callable[[str], None]) -> PipResult:
    """Run the running interpreter's pip, with the user's own configuration and environment."""
    command = [sys.executable, "-m", "pip", *arguments]
    if _pip_reports_progress():
        command += ["--progress-bar", "raw"]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return PipResult(127, f"ERROR: {error}")
    lines: list[str] = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            on_line(line)
        return PipResult(process.wait(), "".join(lines))


def _pip_reports_progress() -> bool:
    try:
        return Version(importlib.metadata.version("pip")) >= Version("24.1")
    except (importlib.metadata.PackageNotFoundError, InvalidVersion):
        return False

"""Builds the virtual environments of this repository under `.venvs/`.

    python3 tools/env.py NAME...      build or bring up to date; `--list` says what there is

Standard library only: it runs before anything is installed. What each environment holds is data,
in `environments.json`. An environment is stamped with the hash of what went into it, so a second
call costs nothing, a half-made one is made again, and a change of `pyproject.toml` reinstalls this
project alone.

`KUNLUN_ADAPT_TORCH_INDEX` names the package index that torch comes from (pip's `--index-url`):
elsewhere the default index may hand out the CUDA build, which works but weighs several gigabytes.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venvs"
RECIPES = Path(__file__).with_name("environments.json")
HEARTBEAT_SECONDS = 15.0
LOG_TAIL_LINES = 30


class EnvironmentFailed(Exception):
    """An environment could not be built; the message says why, for the person at the terminal."""


@dataclass(frozen=True)
class Step:
    """One pip run."""

    what: str
    packages: tuple[str, ...]
    no_deps: bool = False
    torch_index: bool = False


@dataclass(frozen=True)
class Recipe:
    """What one environment holds."""

    name: str
    about: str
    steps: tuple[Step, ...]
    constraints: tuple[str, ...]
    extras: tuple[str, ...]
    prefer_python: str | None


def load_recipes() -> dict[str, Recipe]:
    """Read `environments.json`."""
    document = json.loads(RECIPES.read_text(encoding="utf-8"))
    entries = document["environments"]
    return {name: _recipe(name, entries, document["sets"]) for name in entries}


def _recipe(name: str, entries: dict[str, Any], sets: dict[str, list[str]]) -> Recipe:
    entry = entries[name]
    base = {**entries[entry["like"]], **entry} if "like" in entry else entry
    steps = tuple(
        Step(
            what=step["what"],
            packages=(*step["packages"], *(p for key in step.get("sets", ()) for p in sets[key])),
            no_deps=step.get("no_deps", False),
            torch_index=step.get("torch_index", False),
        )
        for step in base["steps"]
    )
    return Recipe(
        name=name,
        about=entry["about"],
        steps=steps,
        constraints=tuple(base.get("constraints", ())),
        extras=tuple(base["extras"]),
        prefer_python=base.get("prefer_python"),
    )


def build(recipe: Recipe) -> Path:
    """Bring one environment up to date and return its Python."""
    venv = VENVS / recipe.name
    python = venv / "bin" / "python"
    base_stamp = venv / "stamp-packages"
    project_stamp = venv / "stamp-project"
    torch_index = os.environ.get("KUNLUN_ADAPT_TORCH_INDEX", "")
    interpreter = find_interpreter(recipe.prefer_python)
    content = repr((recipe.steps, recipe.constraints))
    base_key = _digest(content, torch_index, str(venv), interpreter)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project_key = _digest(base_key, repr(recipe.extras), project)
    VENVS.mkdir(exist_ok=True)
    with _one_builder(recipe.name):
        if _read(project_stamp) == project_key:
            return python
        started = time.monotonic()
        if _read(base_stamp) != base_key:
            say(f"{recipe.name}: building {venv.relative_to(ROOT)} ({recipe.about})")
            shutil.rmtree(venv, ignore_errors=True)
            _run([interpreter, "-m", "venv", str(venv)], "create the environment", venv)
            for step in recipe.steps:
                _pip(venv, recipe, step, torch_index)
            base_stamp.write_text(base_key, encoding="utf-8")
        project_stamp.unlink(missing_ok=True)
        extras = f"[{','.join(recipe.extras)}]" if recipe.extras else ""
        _pip(venv, recipe, Step("kunlun-adapt, editable", ("-e", f"{ROOT}{extras}")), "")
        project_stamp.write_text(project_key, encoding="utf-8")
        seconds = time.monotonic() - started
        say(f"{recipe.name}: ready in {seconds:.0f} s, {_megabytes(venv)} MB")
    return python


def find_interpreter(preferred: str | None) -> str:
    """The Python that an environment is made with: the preferred version where there is one.

    SGLang publishes wheels per Python version and torch's CPU build is not to be had for each, so
    the tested version wins over the one that runs this script.
    """
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if preferred is None or preferred == running:
        return sys.executable
    found = shutil.which(f"python{preferred}")
    # Run it: a version manager leaves shims on the path for versions that are not selected.
    if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
        return found
    say(f"note: tested with Python {preferred}, which is not here; going on with {running}")
    return sys.executable


def say(text: str) -> None:
    """Print one progress line at once, also into a pipe."""
    print(text, flush=True)


def _pip(venv: Path, recipe: Recipe, step: Step, torch_index: str) -> None:
    # -qq: only errors. With --no-deps packages about, pip would warn of every CUDA requirement.
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "-qq"]
    command += ["--disable-pip-version-check", "--no-input"]
    if step.no_deps:
        command.append("--no-deps")
    elif recipe.constraints and not step.torch_index:
        constraints = venv / "constraints.txt"
        constraints.write_text("\n".join(recipe.constraints) + "\n", encoding="utf-8")
        command += ["-c", str(constraints)]
    if step.torch_index and torch_index:
        command += ["--index-url", torch_index]
    _run([*command, *step.packages], f"install {step.what}", venv)


def _run(command: list[str], what: str, venv: Path) -> None:
    log = VENVS / f"{venv.name}.log"
    started = time.monotonic()
    say(f"  {what} …")
    with log.open("w", encoding="utf-8") as sink:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        )
        try:
            while True:
                try:
                    code = process.wait(timeout=HEARTBEAT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    seconds = time.monotonic() - started
                    say(f"  {what} … {seconds:.0f} s, {_megabytes(venv)} MB so far")
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code != 0:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-LOG_TAIL_LINES:])
        raise EnvironmentFailed(f"{what} failed with exit code {code}; the end of {log}:\n{tail}")


@contextmanager
def _one_builder(name: str) -> Iterator[None]:
    """Keep a second `make` from building the same environment at the same time."""
    with (VENVS / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _megabytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # A file that pip moves away between the listing and the look counts as nothing.
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total // 1_000_000


def main(arguments: list[str] | None = None) -> int:
    """Build the named environments; exit code 0, or 2 with the reason on standard error."""
    recipes = load_recipes()
    parser = argparse.ArgumentParser(description="Build the virtual environments under .venvs/.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(recipes))
    parser.add_argument("--list", action="store_true", help="say what there is and stop")
    options = parser.parse_args(arguments)
    if options.list or not options.names:
        for recipe in recipes.values():
            say(f"{recipe.name:16}{recipe.about}")
        return 0
    unknown = [name for name in options.names if name not in recipes]
    if unknown:
        parser.error(f"no environment {', '.join(unknown)}; there are {', '.join(recipes)}")
    try:
        for name in options.names:
            build(recipes[name])
    except EnvironmentFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

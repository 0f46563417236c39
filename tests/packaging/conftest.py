"""Builds the distributions once and installs the wheel where nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment that holds the built wheel and its requirements only."""

    folder: Path
    site_packages: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs outside the checkout."""
        program, *arguments = command
        return run([str(self.folder / "bin" / program), *arguments], cwd)


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run without what the surrounding shell says about Python or about us."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHONPATH", "KUNLUN_ADAPT_", "SGLANG_"))
    }
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it and not from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="session")
def installed(
    distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    # Installed from outside: pip and setuptools in the environment would weigh half as much as we.
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    options = ["-qq", "--no-input", "--disable-pip-version-check"]
    done = run([*pip, "install", *options, str(distributions[1])], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (site_packages,) = folder.glob("lib/python*/site-packages")
    return Installed(folder, site_packages)

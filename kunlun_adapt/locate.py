"""Where the workspace is: the documents, the templates and the lock.

Kept free of imports, since every process on a machine without a device asks it.
"""

from __future__ import annotations

import os
from pathlib import Path

MAP_FILE = "platform_map.yaml"
OPERATORS = "operator_recipes"
RECIPES = "recipes"
TEMPLATES = "templates"
LOCK_FILE = "adapt.lock"
ENVIRONMENT = "KUNLUN_ADAPT_WORKSPACE"

_PACKAGE = Path(__file__).resolve().parent
SHIPPED = (_PACKAGE / "workspace", _PACKAGE.parent)
"""Where the shipped workspace lies: inside the installed package, or around the checkout's."""


def find_workspace(given: Path | str | None = None) -> Path:
    """Return the folder that holds `platform_map.yaml`.

    In this order: `given`, `$KUNLUN_ADAPT_WORKSPACE`, the shipped one. Raises AdaptError where
    there is none.
    """
    asked = given or os.environ.get(ENVIRONMENT)
    if asked:
        root = Path(asked).expanduser()
        if not (root / MAP_FILE).is_file():
            raise _error(
                f"no workspace in {root}: {MAP_FILE} is missing",
                f"point --workspace or {ENVIRONMENT} at a folder that holds {MAP_FILE}",
            )
        return root
    for root in SHIPPED:
        if (root / MAP_FILE).is_file():
            return root
    raise _error(
        "no workspace found beside the installed package",
        f"reinstall kunlun-adapt, or point {ENVIRONMENT} at a folder that holds {MAP_FILE}",
    )


def _error(message: str, hint: str) -> Exception:
    from kunlun_adapt.diagnostics.finding import AdaptError

    return AdaptError(message, hint)


def template_folders(workspace: Path) -> list[Path]:
    """Return the folders that may hold the templates, the workspace's own first."""
    return [root / TEMPLATES for root in (workspace, *SHIPPED)]


def shipped_file(name: str) -> Path | None:
    """Return a file that ships with the package, such as a page under `docs/`."""
    return next((root / name for root in SHIPPED if (root / name).is_file()), None)


def workspace_files(root: Path) -> list[tuple[str, Path]]:
    """Return (name, path) of every document file, the map first, in a stable order."""
    files = [(MAP_FILE, root / MAP_FILE)]
    for folder in (OPERATORS, RECIPES):
        files += sorted(
            (path.relative_to(root).as_posix(), path)
            for path in (root / folder).rglob("*.yaml")
            if path.is_file()
        )
    return files

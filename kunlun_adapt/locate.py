"""Where the workspace is: the documents, the templates and the lock.

Kept free of imports, since every process on a machine without a device asks it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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


def find_workspace(given: Path | str | None = None, *, current: bool = False) -> Path:
    """Return the folder that holds `platform_map.yaml`.

    In this order: `given`, `$KUNLUN_ADAPT_WORKSPACE`, with `current` the current folder, the
    shipped one. Only the command line asks for `current`: what a server runs must not hang on
    where it was started. Raises AdaptError where there is none.
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
    if current and os.path.lexists(MAP_FILE):
        return Path.cwd()
    for root in SHIPPED:
        if (root / MAP_FILE).is_file():
            return root
    raise _error(
        "no workspace found beside the installed package",
        f"reinstall kunlun-adapt, or point {ENVIRONMENT} at a folder that holds {MAP_FILE}",
    )


def is_installed(workspace: Path) -> bool:
    """Tell whether a workspace is the copy that was installed together with the package."""
    return workspace.resolve() == SHIPPED[0].resolve()


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
    """Return (name, path) of every document file, the map first, in a stable order.

    Whatever bears a document's name is listed, and so is a folder of documents that cannot be
    looked into: reading them fails, so that no document is missed without a word.
    """
    files = [(MAP_FILE, root / MAP_FILE)]
    for folder in (OPERATORS, RECIPES):
        files += sorted((path.relative_to(root).as_posix(), path) for path in _below(root / folder))
        if os.path.lexists(root / folder) and not (root / folder).is_dir():
            # Nothing lies below a file; the path makes the system say so.
            files.append((folder, root / folder / "*.yaml"))
    return files


def _below(folder: Path) -> Iterator[Path]:
    """Yield every entry named *.yaml, and the folders that cannot be listed; links are followed."""
    unlisted: list[OSError] = []
    seen: set[str] = set()
    for here, folders, names in os.walk(folder, onerror=unlisted.append, followlinks=True):
        real = os.path.realpath(here)
        if real in seen:  # a link back up, or a second one to the same place
            folders.clear()
            continue
        seen.add(real)
        yield from (Path(here, name) for name in (*folders, *names) if name.endswith(".yaml"))
        folders[:] = [name for name in folders if not name.endswith(".yaml")]
    yield from (Path(e.filename) for e in unlisted if Path(e.filename).is_dir())

"""One SGLang release as files to read, wherever it comes from. Nothing is ever imported."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.errors import NoVersionError, ReleaseError
from kunlun_adapt.upstream.fetch import PipRunner, Progress, fetch_wheel
from kunlun_adapt.upstream.git_store import GitStore
from kunlun_adapt.upstream.packaged import PROJECT, left_out
from kunlun_adapt.upstream.stores import (
    PACKAGE,
    Store,
    TreeStore,
    WheelStore,
    version_in_metadata,
)

_GIT = "git:"
_FORMS = "a version such as 0.5.19, a .whl file, a directory, git:PATH@REV or `installed`"


@dataclass(frozen=True)
class Release:
    """One release: paths are relative to the folder that holds `sglang/`, with forward slashes."""

    version: str
    origin: str
    store: Store = field(repr=False)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, None where there is none; raises ReleaseError if unreadable."""
        return self.store.read(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file at the path."""
        return self.store.exists(path)

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder at the path."""
        return self.store.is_dir(path)

    def files(self) -> tuple[str, ...]:
        """All files of the package, sorted."""
        return tuple(self.store.files())

    def modules(self) -> Iterator[str]:
        """The dotted names of all modules that have a Python file, in file order."""
        for path in self.store.files():
            name = module_of(path)
            if name is not None:
                yield name

    def module_file(self, name: str) -> str | None:
        """The Python file of a module, None where it has none (a namespace, or no module)."""
        base = name.replace(".", "/")
        for path in (f"{base}/__init__.py", f"{base}.py"):
            if self.store.exists(path):
                return path
        return None

    def sha256(self, path: str) -> str:
        """The hexadecimal SHA-256 of a file's bytes; raises ReleaseError where there is none."""
        data = self.read(path)
        if data is None:
            raise ReleaseError(f"SGLang {self.version} has no file {path}")
        return hashlib.sha256(data).hexdigest()


def module_of(path: str) -> str | None:
    """The dotted name of the module in a Python file, None for any other file."""
    stem = path.removesuffix(".py")
    if stem == path:
        return None
    parts = stem.split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def open_release(
    spec: str,
    *,
    cache_dir: Path | None = None,
    offline: bool = False,
    progress: Progress | None = None,
    pip: PipRunner | None = None,
) -> Release:
    """Open the release that `spec` names.

    `spec` is a version (`0.5.19`, fetched by pip into the cache), a wheel file, a directory (one
    that holds `sglang/`, the package itself, or a checkout with `python/sglang`; `DIR@VERSION`
    where the tree does not state its version), `git:PATH@REV` (a commit, read from the object
    store; `git:PATH@REV@VERSION` where no tag states its version), or `installed`. `progress`
    receives a message and a fraction (None while unknown). Raises ReleaseError with a hint.
    """
    spec = spec.strip()
    if not spec:
        raise ReleaseError(
            "no release is named", "give a version such as 0.5.19, a .whl file or a directory"
        )
    if "\0" in spec:
        raise ReleaseError(f"{spec!r} names no release", f"give {_FORMS}")
    if spec == "installed":
        return _installed()
    if spec.startswith(_GIT):
        return _from_git(spec.removeprefix(_GIT))
    version = _version(spec)
    if version is not None:
        wheel = fetch_wheel(
            version, cache_dir=cache_dir, offline=offline, progress=progress, pip=pip
        )
        return _from_wheel(wheel, f"PyPI wheel {wheel.name}", cached=True)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _from_directory(path, None)
    if path.suffix == ".whl":
        return _from_wheel(path, f"wheel {path}")
    folder, at, stated = spec.rpartition("@")
    if at and Path(folder).expanduser().is_dir():
        if _version(stated) is None:
            raise ReleaseError(f"{stated!r} is not a version", "write DIR@0.5.19, for example")
        return _from_directory(Path(folder).expanduser(), stated)
    if path.is_file():
        raise ReleaseError(
            f"{spec} is neither a wheel nor a directory",
            f"give {_FORMS}",
        )
    raise ReleaseError(
        f"{spec!r} names no release: no such version, file or directory",
        f"give {_FORMS}",
    )


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _from_wheel(path: Path, origin: str, *, cached: bool = False) -> Release:
    store = WheelStore(path, cached=cached)
    version = store.metadata_version() or _stated_version(store)
    if version is None or _version(version) is None:
        raise NoVersionError(
            f"{path.name} does not state its version", "give a wheel with a METADATA file"
        )
    return Release(str(Version(version)), origin, store)


def _from_directory(path: Path, stated: str | None) -> Release:
    root = _package_root(path)
    if root is None:
        raise ReleaseError(
            f"{path} holds no SGLang",
            f"give the folder that contains {PACKAGE}/, the package itself, or a checkout",
        )
    store = TreeStore(root, left_out(TreeStore(root).read(PROJECT)))
    version = stated or _dist_info_version(root) or _stated_version(store)
    if version is None or _version(version) is None:
        raise NoVersionError(
            f"{path} does not state its version", f"say which it is: {path}@0.5.19, for example"
        )
    return Release(str(Version(version)), str(path), store)


def _from_git(spec: str) -> Release:
    folder, at, revision = spec.rpartition("@")
    stated: str | None = None
    # `git:PATH@REV@VERSION`; a revision alone may look like a version as well, as tags do.
    if at and _version(revision) is not None and "@" in folder:
        outer, _, inner = folder.rpartition("@")
        if not Path(folder).expanduser().is_dir():
            folder, revision, stated = outer, inner, revision
    if not at or not folder or not revision:
        raise ReleaseError(
            f"git:{spec} does not name a repository and a revision",
            "write git:PATH@REV, for example git:~/sglang@v0.5.19",
        )
    path = Path(folder).expanduser()
    store = GitStore(path, revision)
    version = stated or store.stated_version() or _stated_version(store)
    if version is None or _version(version) is None:
        raise NoVersionError(
            f"{revision} of {path} does not state its version, and no release is tagged near it",
            "`git fetch --tags` of upstream brings the tags; or say which it is: "
            f"git:{folder}@{revision}@0.5.19, for example",
        )
    return Release(str(Version(version)), f"git {path} at {store.commit[:12]}", store)


def _package_root(path: Path) -> Path | None:
    """The folder that holds `sglang/`, for the package, its parent or a checkout."""
    candidates = (path, path / "python", path.resolve().parent)
    for root in candidates[:2]:
        if (root / PACKAGE / "__init__.py").is_file():
            return root
    if path.resolve().name == PACKAGE and (path / "__init__.py").is_file():
        return candidates[2]
    return None


def _dist_info_version(root: Path) -> str | None:
    found = sorted(root.glob(f"{PACKAGE}-*.dist-info/METADATA"))
    # Two of them means a broken environment; then only the package itself can tell.
    return version_in_metadata(found[0].read_bytes()) if len(found) == 1 else None


def _stated_version(store: Store) -> str | None:
    """The `__version__` that the package spells as a literal, or None."""
    for path in (f"{PACKAGE}/_version.py", f"{PACKAGE}/version.py"):
        source = store.read(path)
        if source is None:
            continue
        try:
            tree = syntax.parse_module(source, path)
        except (SyntaxError, ValueError):
            continue
        for node in tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(syntax.dotted(item) == "__version__" for item in targets):
                return syntax.string_of(node.value)
    return None


def _installed() -> Release:
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        raise ReleaseError(
            "SGLang is not installed here",
            "install it, or name a version such as 0.5.19, a wheel or a directory",
        )
    try:
        stated: str | None = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        stated = None
    release = _from_directory(Path(folders[0]), stated)
    return Release(release.version, f"installed in {Path(folders[0]).parent}", release.store)

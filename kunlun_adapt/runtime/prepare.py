"""The generated modules for the installed release: from the cache, or compiled now.

A warm process reads the inputs, hashes them and takes the text; it imports neither the YAML parser
nor the compiler.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.locate import LOCK_FILE, template_folders, workspace_files
from kunlun_adapt.runtime import cache
from kunlun_adapt.runtime.probe import switched_on

UNVERIFIED = "KUNLUN_ADAPT_UNVERIFIED"
STRICT = "KUNLUN_ADAPT_STRICT"
_COMPILER = ("documents", "upstream", "plan", "source", "runtime")
_VERSION = re.compile(r"^__version__\b[^\n=]*=[^\n'\"]*['\"]([^'\"\n]+)['\"]", re.M)
_DIST_INFO = re.compile(r"sglang-([^-]+)\.dist-info\Z")


@dataclass(frozen=True, slots=True)
class Installed:
    """The SGLang that this process runs: its version and the folder that holds `sglang/`."""

    version: str
    root: Path


def installed_sglang() -> Installed:
    """Find the installed SGLang without importing it. Raises AdaptError.

    A patched copy that comes first on the path may have no metadata beside it, and that of another
    release behind it, so its own word for its version comes before what is installed elsewhere.
    """
    module = sys.modules.get("sglang")
    spec = getattr(module, "__spec__", None) or importlib.util.find_spec("sglang")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise AdaptError("SGLang is not installed here", "pip install sglang")
    root = Path(places[0]).parent
    version = _beside(root) or _stated(root) or _known_to_python()
    if not version:
        raise AdaptError(
            f"the SGLang in {root} does not state its version",
            "install it by pip, or add its dist-info folder beside it",
        )
    return Installed(version, root)


def prepare(root: Path, installed: Installed, profile: str, documents: str) -> cache.Cached:
    """Return the generated modules. Raises AdaptError, or SystemExit with a table.

    `documents` is the digest of the workspace's documents and lock.
    """
    unverified = switched_on(UNVERIFIED, "tries a release that is not claimed")
    strict = switched_on(STRICT, "refuses a release whose replaced symbols are not as locked")
    name = cache.key(
        [
            ("python", repr(sys.version_info[:2]).encode()),
            ("release", installed.version.encode()),
            ("profile", profile.encode()),
            ("unverified", str(unverified).encode()),
            ("documents", documents.encode()),
            *_compiler(root),
        ]
    )
    kept = cache.load(name)
    if kept is not None and not drifted(installed, kept.files):
        return kept
    from kunlun_adapt.runtime.compiling import compile_here

    made = compile_here(root, installed, profile, unverified=unverified, strict=strict)
    if made.files:
        cache.save(name, made)
    return made


def documents_digest(root: Path) -> str:
    """Return the hash of the workspace's documents and lock."""
    return cache.key(_contents([*workspace_files(root), (LOCK_FILE, root / LOCK_FILE)]))


def map_revision(digest: str) -> str:
    """Return a short form of the documents' digest, to tell two runs apart."""
    return digest[:12]


def drifted(installed: Installed, files: Mapping[str, str]) -> list[str]:
    """Return the upstream files that are not what they were when the facts were taken."""
    found = []
    for file, digest in files.items():
        try:
            now = hashlib.sha256((installed.root / file).read_bytes()).hexdigest()
        except OSError:
            now = ""
        if now != digest:
            found.append(file)
    return found


def _compiler(root: Path) -> Iterable[tuple[str, bytes]]:
    """Yield the templates and our own code: all else that the text is made from."""
    package = Path(__file__).resolve().parent.parent
    places: list[tuple[str, Path]] = []
    for folder in template_folders(root):
        if folder.is_dir():
            places += [(f"templates/{p.name}", p) for p in sorted(folder.glob("*.j2"))]
            break
    for part in _COMPILER:
        places += [(f"{part}/{p.name}", p) for p in sorted((package / part).glob("*.py"))]
    yield from _contents([*places, ("locate.py", package / "locate.py")])


def _contents(places: Iterable[tuple[str, Path]]) -> Iterable[tuple[str, bytes]]:
    for name, path in places:
        # A pipe would be waited for; what is no file is refused when the documents are loaded.
        content = path.read_bytes() if path.is_file() else None
        if content is not None or path.exists():
            yield name, content if content is not None else b"not a file"


def _beside(root: Path) -> str | None:
    """Return the version of the only metadata folder beside the package."""
    try:
        names = [m[1] for name in os.listdir(root) if (m := _DIST_INFO.match(name))]
    except OSError:
        return None
    return names[0] if len(names) == 1 else None


def _stated(root: Path) -> str | None:
    """Return the version that the package spells out."""
    for name in ("_version.py", "version.py"):
        try:
            found = _VERSION.search((root / "sglang" / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found[1]
    return None


def _known_to_python() -> str | None:
    try:
        return importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        return None

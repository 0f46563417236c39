"""The generated modules for the installed release: from the cache, or compiled now.

The facts of upstream come from the lock. The files that hold bound symbols are hashed against it;
where they differ (a patched tree, a release that is not locked) the installed tree is read.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.locate import LOCK_FILE, template_folders, workspace_files
from kunlun_adapt.runtime import cache
from kunlun_adapt.runtime.stop import Failure, stop

logger = logging.getLogger("kunlun_adapt")

UNVERIFIED = "KUNLUN_ADAPT_UNVERIFIED"


@dataclass(frozen=True, slots=True)
class Installed:
    """The SGLang that this process runs: its version and the folder that holds `sglang/`."""

    version: str
    root: Path


def installed_sglang() -> Installed:
    """Find the installed SGLang without importing it. Raises AdaptError."""
    module = sys.modules.get("sglang")
    spec = module.__spec__ if module is not None else importlib.util.find_spec("sglang")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    try:
        version = importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    if not places or not version:
        raise AdaptError("SGLang is not installed here", "pip install sglang")
    return Installed(version, Path(places[0]).parent)


def prepare(root: Path, installed: Installed, profile: str) -> cache.Cached:
    """Return the generated modules. Raises AdaptError, or SystemExit with a table."""
    unverified = os.environ.get(UNVERIFIED) == "1"
    name = cache.key(
        [
            ("release", installed.version.encode()),
            ("profile", profile.encode()),
            ("unverified", str(unverified).encode()),
            *_inputs(root),
        ]
    )
    kept = cache.load(name)
    if kept is not None and not _drifted(installed, kept.files):
        return kept
    return _compile(root, installed, profile, unverified, name)


def _inputs(root: Path) -> Iterable[tuple[str, bytes]]:
    """Yield all that the text is made from: documents, templates, lock and our own compiler."""
    package = Path(__file__).resolve().parent.parent
    places = [path for _, path in workspace_files(root)] + [root / LOCK_FILE]
    for templates in template_folders(root):
        places += sorted(templates.glob("*.j2"))
    for part in ("documents", "upstream", "plan", "source"):
        places += sorted((package / part).glob("*.py"))
    for path in places:
        if path.is_file():
            yield path.name, path.read_bytes()


def _drifted(installed: Installed, files: Mapping[str, str]) -> list[str]:
    """Return the upstream files that are not what they were when the facts were taken."""
    drifted = []
    for file, digest in files.items():
        try:
            found = hashlib.sha256((installed.root / file).read_bytes()).hexdigest()
        except OSError:
            found = ""
        if found != digest:
            drifted.append(file)
    return drifted


def _compile(
    root: Path, installed: Installed, profile: str, unverified: bool, name: str
) -> cache.Cached:
    from kunlun_adapt.documents import in_range, load_catalog
    from kunlun_adapt.plan import make_plan
    from kunlun_adapt.source import compile_plan, template_folder
    from kunlun_adapt.upstream import Facts, Lock, LockFacts, Resolver, open_release, read_lock

    catalog = load_catalog(root)
    if catalog.findings:
        raise stop(
            f"the documents in {root} have {len(catalog.findings)} finding(s)",
            [Failure(str(f.position), f"{f.code}: {f.message}") for f in catalog.findings[:20]],
            "run kunlun-adapt validate",
        )
    if catalog.platform_map is None:
        raise AdaptError(f"no usable platform_map.yaml in {root}", "run kunlun-adapt validate")
    claim = catalog.platform_map.model.sglang
    if not in_range(claim, installed.version):
        if not unverified:
            raise AdaptError(
                f"sglang {installed.version} lies outside what the map claims ({claim})",
                "install a claimed release, widen the claim after `kunlun-adapt validate "
                f"--beyond-claims`, or set {UNVERIFIED}=1 to try it all the same",
            )
        logger.warning(
            "sglang %s lies outside what the map claims (%s); trying it, since %s=1",
            installed.version,
            claim,
            UNVERIFIED,
        )
    lock = read_lock(root / LOCK_FILE) if (root / LOCK_FILE).is_file() else Lock()
    files = lock.files(installed.version)
    drifted = _drifted(installed, files)
    facts: Facts = LockFacts(lock, installed.version)
    if drifted or not files:
        what = f"{len(drifted)} file(s) differ from the lock" if files else "it is not in the lock"
        logger.warning("sglang %s: %s; reading the installed tree", installed.version, what)
        facts = Resolver(open_release(str(installed.root)))
        files = {}
    plan = make_plan(catalog, facts, profile, beyond_claims=unverified)
    missing = [(b, m) for b, m in plan.unresolved() if b.required]
    if missing:
        raise stop(
            f"{len(missing)} target(s) do not exist in sglang {installed.version}",
            [
                Failure(
                    b.id,
                    f"{root / b.position.file}:{b.position.line}: {m.path}: {m.detail or m.reason}",
                )  # fmt: skip
                for b, m in missing
            ],
            f"run kunlun-adapt validate --sglang {installed.root}: it suggests the edit",
        )
    source = compile_plan(plan, template_folder(root))
    cached = cache.Cached(source.modules, files)
    if files:
        cache.save(name, cached)
    return cached

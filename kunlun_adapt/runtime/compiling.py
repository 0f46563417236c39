"""Compiling the workspace for the installed release, where nothing is cached for it.

The facts of upstream come from the lock. Where the installed files are not those that were locked
(a patched tree, a release that is not locked) they come from the installed tree, and that is said;
so do those of a target that was bound since the lock was written.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.documents import Bind, Catalog, HookAt, in_range, load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import Binding, Plan, make_plan
from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.cache import Cached
from kunlun_adapt.runtime.drift import judge_drift
from kunlun_adapt.runtime.prepare import UNVERIFIED, Installed, drifted
from kunlun_adapt.runtime.stop import Failure, command, stop
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import (
    Facts,
    Lock,
    LockError,
    LockFacts,
    Missing,
    ReleaseError,
    Resolver,
    Symbol,
    open_release,
    read_lock,
)

logger = logging.getLogger("kunlun_adapt")

SHOWN = 20


class _Completed:
    """The facts of a locked release; what its lock does not hold is read from the installed tree.

    `read` are the paths that were found there, in the order of asking.
    """

    def __init__(self, lock: Lock, installed: Installed) -> None:
        self._locked = LockFacts(lock, installed.version)
        self._installed = installed
        self._tree: Resolver | None = None
        self.read: dict[str, None] = {}

    @property
    def version(self) -> str:
        """The release's version."""
        return self._installed.version

    def resolve(self, path: str) -> Symbol | Missing:
        """The locked symbol of a path, else that of the tree, or why there is none."""
        found = self._locked.resolve(path)
        # Of other packages a tree of SGLang says nothing.
        if isinstance(found, Missing) and path.startswith("sglang."):
            found = self._reader().resolve(path)
            if isinstance(found, Symbol):
                self.read[path] = None
        return found

    def members(self, class_path: str) -> dict[str, Symbol]:
        """The members of a class, from the tree where it was not locked with any."""
        found = self._locked.members(class_path)
        if not found and class_path.startswith("sglang."):
            found = self._reader().members(class_path)
            self.read.update(dict.fromkeys([class_path] if found else ()))
        return found

    def _reader(self) -> Resolver:
        if self._tree is None:
            self._tree = _tree(self._installed)
        return self._tree


def compile_here(
    root: Path, installed: Installed, profile: str, *, unverified: bool, strict: bool
) -> Cached:
    """Return the generated modules for the installed SGLang.

    Its `files` are empty where the text was made from a tree that the lock does not know, and must
    then not be kept. Raises AdaptError, or SystemExit with a table.
    """
    try:
        catalog = _catalog(root)
        outside = _check_claim(catalog, installed, unverified)
        path = root / LOCK_FILE
        lock = read_lock(path) if path.is_file() else Lock()
        facts, files = _facts(lock, installed)
        plan = make_plan(catalog, facts, profile, beyond_claims=unverified)
        if isinstance(facts, _Completed) and facts.read:
            # Who binds something new is to see it work before the lock is written; that the lock
            # is old has to be said at every start, so the text is not kept.
            _say_unlocked(list(facts.read), installed)
            files = {}
        plan, smaller = _served(plan)
        _check_calls(plan)
        _check_processes(plan)
        if not files:
            judge_drift(plan, lock, strict=strict)
        modules = compile_plan(plan, template_folder(root)).modules
        # What was left out, and that the release is not claimed, has to be said at every start, so
        # such a text is not kept.
        return Cached(modules, {} if smaller or outside else files)
    except ReleaseError as error:
        raise AdaptError(error.message, error.hint) from error
    except LockError as error:
        raise AdaptError(
            f"the lock cannot be read: {error}", f"restore it, or write it anew: {command('lock')}"
        ) from error


def _catalog(root: Path) -> Catalog:
    catalog = load_catalog(root)
    if catalog.findings:
        raise stop(
            f"the documents in {root} have {len(catalog.findings)} finding(s)",
            [Failure(str(f.position), f"{f.code}: {f.message}") for f in catalog.findings[:SHOWN]],
            f"run {command('validate')}",
        )
    return catalog


def _check_claim(catalog: Catalog, installed: Installed, unverified: bool) -> bool:
    """Tell whether the release lies outside the claim. Raises AdaptError where that is refused."""
    if catalog.platform_map is None:
        raise AdaptError(
            f"no usable platform_map.yaml in {catalog.root}", f"run {command('validate')}"
        )
    claim = catalog.platform_map.model.sglang
    if in_range(claim, installed.version):
        return False
    outside = f"sglang {installed.version} lies outside what the map claims ({claim})"
    if not unverified:
        raise AdaptError(
            outside,
            "install a claimed release, widen the claim after "
            f"`{command('validate --sglang installed --beyond-claims')}`, or set {UNVERIFIED}=1 to "
            "try it all the same",
        )
    logger.warning("%s; trying it, since %s=1", outside, UNVERIFIED)
    ledger.LEDGER.unverified = True
    return True


def _facts(lock: Lock, installed: Installed) -> tuple[Facts, dict[str, str]]:
    """Return what is known about the release, and the hashes of the files that it was read from."""
    files = lock.files(installed.version)
    changed = drifted(installed, files)
    if files and not changed:
        return _Completed(lock, installed), files
    what = f"{_some(changed)} differ from the lock" if files else "it is not in the lock"
    logger.warning(
        "sglang %s in %s: %s; reading the installed tree",
        installed.version,
        installed.root,
        what,
    )
    return _tree(installed), {}


def _tree(installed: Installed) -> Resolver:
    return Resolver(open_release(f"{installed.root}@{installed.version}"))


def _say_unlocked(targets: list[str], installed: Installed) -> None:
    logger.warning(
        "sglang %s in %s: %s not in the lock; reading the installed tree for that at every start, "
        "until `%s` has made starts quick again",
        installed.version,
        installed.root,
        f"{_some(targets, 'target')} {'is' if len(targets) == 1 else 'are'}",
        command("lock"),
    )


def _some(names: list[str], what: str = "file") -> str:
    shown = ", ".join(names[:3])
    return f"{len(names)} {what}(s) ({shown}{', …' if len(names) > 3 else ''})"


def _served(plan: Plan) -> tuple[Plan, bool]:
    """Return the plan without what the release lacks, and whether that left anything out.

    Raises SystemExit where a required binding is among it.
    """
    missing = plan.unresolved()
    lost = [(b, m) for b, m in missing if b.required]
    if lost:
        raise stop(
            f"{len(lost)} target(s) do not exist in sglang {plan.release}",
            [Failure(b.id, f"{m.path}: {m.detail or m.reason}") for b, m in lost],
            f"run {command('validate --sglang installed')}: it suggests the edit",
        )
    for binding, absent in missing:
        ledger.enter(binding.id, False).fail(f"{absent.path}: {absent.detail or absent.reason}")
        logger.warning(
            "%s: %s does not exist in sglang %s; it is not required, and left out",
            binding.id,
            absent.path,
            plan.release,
        )
    if not missing:
        return plan, False
    gone = {binding.id for binding, _ in missing}
    warm_up = plan.warm_up
    kept = replace(
        plan,
        members=tuple(m for m in plan.members if m.binding.id not in gone),
        hooks=tuple(h for h in plan.hooks if h.binding.id not in gone),
        kernels=tuple(k for k in plan.kernels if k.binding.id not in gone),
        models=tuple(m for m in plan.models if m.binding.id not in gone),
        warm_up=None if warm_up is None or warm_up.binding.id in gone else warm_up,
    )
    return kept, True


def _check_calls(plan: Plan) -> None:
    """Refuse upstream parameters that the bindings say nothing about: they would be dropped."""
    calls: list[tuple[Binding, Bind | HookAt, Symbol | Missing]]
    calls = [(k.binding, k.bind, k.call) for k in plan.kernels]
    calls += [(h.binding, h.at, h.symbol) for h in plan.hooks if h.maps_call]
    failures = []
    for binding, at, call in calls:
        if not isinstance(call, Symbol) or call.kind == "class":
            continue
        if call.signature is None:
            if isinstance(at, HookAt):
                why = (
                    f"{at.target} is no function with a known signature; a value takes `type: set`"
                )
                failures.append(Failure(binding.id, why))
            continue
        names = call.signature.names[1 if call.kind in ("method", "classmethod") else 0 :]
        stated = {path.partition(".")[0] for path in at.args.values()} | set(at.ignores)
        free = [name for name in names if name not in stated]
        if free:
            failures.append(
                Failure(
                    binding.id,
                    f"{at.target} takes {', '.join(free)}, neither mapped in `args` nor ignored",
                )
            )
    if failures:
        raise stop(
            f"{len(failures)} call(s) of sglang {plan.release} are not what the bindings say",
            failures,
            f"run {command('validate --sglang installed')}: it suggests the edit",
        )


def _check_processes(plan: Plan) -> None:
    """Refuse hooks for a process in which nothing would ever apply them."""
    lost = plan.unreached()
    for hook, process in lost:
        logger.warning(
            "%s is for the %s process, and nothing says what that runs in sglang %s: it is not "
            "applied there",
            hook.binding.id,
            process,
            plan.release,
        )
    failures = [
        Failure(hook.binding.id, f"it is not known what the {process} process runs")
        for hook, process in lost
        if hook.binding.required
    ]
    if failures:
        raise stop(
            f"{len(failures)} hook(s) cannot reach their process in sglang {plan.release}",
            failures,
            "spell the process in the map's `interface`; "
            f"{command('validate --sglang installed')} says how",
        )

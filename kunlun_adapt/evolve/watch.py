"""Which upstream commit broke which binding: found in git's history, by halving it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kunlun_adapt.check import Context, context_for
from kunlun_adapt.check.accepted import accepted
from kunlun_adapt.check.rules import BOTH_RULES, CLAIM_RULES, RELEASE_RULES, Rule
from kunlun_adapt.check.targets import lost
from kunlun_adapt.diagnostics import AdaptError, Finding, Severity
from kunlun_adapt.documents import Catalog
from kunlun_adapt.upstream import Lock, Missing, Release, Resolver, Symbol, open_release
from kunlun_adapt.upstream.errors import NoPackageError, NoVersionError, ReleaseError
from kunlun_adapt.upstream.git_history import Commit, commits_between, common_ancestor
from kunlun_adapt.upstream.git_store import GitStore
from kunlun_adapt.upstream.git_version import AFTER_A_RELEASE

GONE = ("KA101", "KA102", "KA103")
"""That a name is no longer where it is looked up: which of them, depends on where it is now."""
OPEN_AT_ONCE = 5
MENDS = 12
"""So many of the commits that may have mended a binding for a while are looked at."""

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class Point:
    """A revision as it was named, its commit and the version that its code has."""

    revision: str
    commit: str
    release: str

    def to_json(self) -> dict[str, str]:
        """A JSON object."""
        return {"revision": self.revision, "commit": self.commit, "release": self.release}


@dataclass(frozen=True, slots=True)
class Broken:
    """What is wrong at the end of a history, and the commit that made it so.

    `before` says that it was so at its start, or, with `held`, that it was not there, but where
    start and end part; then there is no commit. `merge` is the merge that brought the commit into
    the history of the end, where one did. `tried` counts the commits that were looked at, of
    `among` that touched the files in question.
    """

    finding: Finding
    commit: Commit | None
    before: bool
    held: bool = True
    merge: Commit | None = None
    tried: int = 0
    among: int = 0

    def to_json(self) -> dict[str, Any]:
        """The finding, as `validate` has it, with the commit."""
        return {
            **self.finding.to_json(),
            "broken_before": self.before,
            "held_at_since": self.held,
            "commit": self.commit.to_json() if self.commit else None,
            "brought_by": self.merge.to_json() if self.merge else None,
        }


@dataclass(frozen=True, slots=True)
class Watched:
    """What is broken between two revisions: the oldest commit first.

    `parted` is the newest commit that both have, where the start is not below the end: upstream
    tags its releases on branches.
    """

    since: Point
    until: Point
    broken: tuple[Broken, ...]
    parted: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON object, without the schema's number."""
        return {
            "since": self.since.to_json(),
            "until": self.until.to_json(),
            "parted": self.parted,
            "broken": [item.to_json() for item in self.broken],
        }


def watch(
    catalog: Catalog,
    lock: Lock | None,
    repository: Path,
    since: str,
    until: str = "HEAD",
    *,
    version: str | None = None,
    severity: Severity = Severity.ERROR,
    progress: Progress | None = None,
) -> Watched:
    """Check every binding at `until`, and find for each that is broken the commit that broke it.

    `version` is taken for both where no tag states one. Only commits that touched the files in
    which the symbol is, or was, are looked at; where none of them explains it, all are. Where a
    binding broke, was mended and broke again, the commit that broke it last is looked for. Raises
    ReleaseError for a repository or revision that cannot be read, AdaptError without a map.
    """
    history = _History(catalog, lock, repository, version)
    start, end = history.point(since), history.point(until)
    parted = common_ancestor(repository, start.commit, end.commit)
    if parted is None:
        raise ReleaseError(
            f"{since} and {until} have no commit in common",
            "a shallow clone may lack it: `git fetch --unshallow`",
        )
    say = progress or _quiet
    say(f"checking {end.release}", None)
    found = list(history.findings(end.commit, severity))
    order = {c.hash: i for i, c in enumerate(commits_between(repository, start.commit, end.commit))}
    broken = []
    for number, (rule, finding) in enumerate(found):
        say(finding.binding or finding.target or finding.code, number / len(found))
        twins = [f for _, f in found if _key(f) == _key(finding)]
        broken.append(_broken(history, start, parted, end, rule, finding, alone=len(twins) == 1))

    def age(item: Broken) -> tuple[int, str, str]:
        commit = item.commit
        if commit is None:
            return -1, "", ""
        brought = item.merge or commit
        return order.get(brought.hash, len(order)), commit.date, commit.hash

    broken.sort(key=lambda item: (not item.before, age(item), item.finding.sort_key))
    return Watched(start, end, tuple(broken), parted if parted != start.commit else None)


def _quiet(message: str, fraction: float | None) -> None:
    """Say nothing: nobody asked how far it is."""


class _Plain(Resolver):
    """A resolver that does not look for where a missing symbol is: that reads the whole release."""

    def suggest(self, missing: Missing, fingerprint: str | None = None) -> Missing:
        """The miss as it is."""
        return missing


class _History:
    """The checks of some commits; those that were looked at last are kept."""

    def __init__(
        self, catalog: Catalog, lock: Lock | None, repository: Path, version: str | None
    ) -> None:
        self._catalog = catalog
        self._lock = lock
        self.repository = repository
        self._version = version
        self.resolver = lru_cache(OPEN_AT_ONCE)(self._resolver)
        self.context = lru_cache(OPEN_AT_ONCE)(self._context)

    def point(self, revision: str) -> Point:
        release = self._open(revision)
        assert isinstance(release.store, GitStore)  # what `git:` opens
        return Point(revision, release.store.commit, release.version)

    def _open(self, revision: str) -> Release:
        stated = f"@{self._version}" if self._version else ""
        try:
            return open_release(f"git:{self.repository}@{revision}{stated}")
        except NoVersionError as error:
            hint = "`git fetch --tags` of upstream brings the tags; or say --version"
            raise ReleaseError(error.message, hint) from error

    def _resolver(self, commit: str) -> Resolver:
        return _Plain(self._open(commit))

    def _context(self, commit: str) -> Context:
        return self._made(self.resolver(commit))

    def _made(self, facts: Resolver) -> Context:
        context = context_for(self._catalog, facts, lock=self._lock, beyond_claims=True)
        if context is None:
            raise AdaptError("the map does not load", "kunlun-adapt validate says why")
        return context

    def findings(self, commit: str, severity: Severity) -> Iterable[tuple[Rule, Finding]]:
        """Yield what is wrong, with the rule that says so.

        Rules that no release can make speak are left out.
        """
        context = self._made(Resolver(self._open(commit)))
        open_ = not context.platform_packages_missing
        rules = (*CLAIM_RULES, *BOTH_RULES, *RELEASE_RULES) if open_ else CLAIM_RULES
        for rule in rules:
            for finding in dict.fromkeys(accepted(context, list(rule(context)))):
                if finding.severity >= severity:
                    yield rule, finding


def _broken(
    history: _History,
    start: Point,
    parted: str,
    end: Point,
    rule: Rule,
    finding: Finding,
    *,
    alone: bool,
) -> Broken:
    if start.commit == end.commit:
        return Broken(finding, None, True, held=False)
    # A name that the documents say of both ends can be asked for without planning anything.
    named = finding.code in GONE and _has(history, start.commit, finding.target)

    def bad(commit: str) -> bool:
        if finding.code in GONE and _has(history, commit, finding.target):
            return False  # whatever the documents still name for that commit's version
        return named or _shows(history.context(commit), rule, finding, alone)

    if not named and bad(start.commit):
        return Broken(finding, None, True, held=False)
    between = (history.repository, parted, end.commit)
    files = _files(history, start, end, finding)
    near = commits_between(*between, files)
    tried: set[str] = set()
    commit: Commit | None = None
    broken = parted != start.commit and _safely(bad, parted)
    if not broken:
        commit = _first_bad(near, bad, tried)
        if commit is None:
            near = commits_between(*between)
            commit = _first_bad(near, bad, tried)
    if finding.target is not None and (broken or commit):
        after = commit.hash if commit else parted
        last = _last_break(history, near, after, end, files, finding.target, bad, tried)
        commit = last or commit
    culprit = _behind(history.repository, commit, files, bad, tried) if commit else None
    merge = commit if culprit is not commit else None
    return Broken(finding, culprit, broken and commit is None, True, merge, len(tried), len(near))


def _behind(
    repository: Path,
    commit: Commit,
    files: list[str],
    bad: Callable[[str], bool],
    tried: set[str],
) -> Commit:
    """Return the commit of a merged branch that broke it, or the merge itself.

    It is the merge where no branch of it is bad at its end and good where it left.
    """
    own, *merged = commit.parents or ("",)
    for parent in merged:
        left = common_ancestor(repository, own, parent)
        if left is None or not _safely(bad, parent) or _safely(bad, left):
            continue
        for near in (
            commits_between(repository, left, parent, files),
            commits_between(repository, left, parent),
        ):
            found = _first_bad(near, bad, tried)
            if found is not None:
                return _behind(repository, found, files, bad, tried)
    return commit


def _last_break(
    history: _History,
    near: tuple[Commit, ...],
    after: str,
    end: Point,
    files: list[str],
    target: str,
    bad: Callable[[str], bool],
    tried: set[str],
) -> Commit | None:
    """Return the commit that broke it for good, if what was broken at `after` was mended since.

    A commit that mends it changes a line that names it, or its class. The newest of these after
    which it holds is where to look on from.
    """
    *_, owner, name = target.split(".")
    names = [name, owner] if owner[:1].isupper() else [name]
    naming = [
        commits_between(history.repository, after, end.commit, files, naming=n) for n in names
    ]
    mends = {commit.hash for some in naming for commit in some}
    order = [commit for commit in near if commit.hash in mends][-MENDS:]
    for commit in reversed(order):
        tried.add(commit.hash)
        if not _safely(bad, commit.hash):
            later = near[near.index(commit) + 1 :]
            return _first_bad(later, bad, tried)
    return None


def _has(history: _History, commit: str, target: str | None) -> bool:
    return target is not None and isinstance(history.resolver(commit).resolve(target), Symbol)


def _first_bad(
    commits: tuple[Commit, ...], bad: Callable[[str], bool], tried: set[str]
) -> Commit | None:
    """Halve a history that starts good; None where its end is good as well."""

    def fails(index: int) -> bool:
        tried.add(commits[index].hash)
        return _safely(bad, commits[index].hash)

    low, high = -1, len(commits) - 1
    if high < 0 or not fails(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return commits[high]


def _safely(bad: Callable[[str], bool], commit: str) -> bool:
    try:
        return bad(commit)
    except NoPackageError:
        return False  # a commit that holds no release breaks no binding of one


def _shows(context: Context, rule: Rule, finding: Finding, alone: bool) -> bool:
    """Tell whether the same is wrong at another commit."""
    if finding.code in GONE:
        return any(
            item.use.binding == finding.binding
            and (finding.binding is not None or item.use.path == finding.target)
            for item in lost(context)
        )
    return any(
        _key(other) == _key(finding) and (alone or _words(other) == _words(finding))
        for other in rule(context)
        if other.severity >= finding.severity
    )


def _key(finding: Finding) -> tuple[str, ...]:
    """What makes two findings of two commits the same; a binding's target may have moved."""
    return finding.code, finding.binding or "", "" if finding.binding else finding.target or ""


def _words(finding: Finding) -> str:
    """A message without what is different at each commit: versions and line numbers."""
    return re.sub(rf"\+{AFTER_A_RELEASE}|\d+", "", finding.message)


def _files(history: _History, start: Point, end: Point, finding: Finding) -> list[str]:
    """The files in which the symbol is, or was, and those on the way to it."""
    files = [finding.upstream.file] if finding.upstream else []
    for point in (start, end):
        symbol = history.resolver(point.commit).resolve(finding.target) if finding.target else None
        if isinstance(symbol, Symbol):
            places = [symbol.location, *symbol.via, *(v.location for v in symbol.variants)]
            files += [place.file for place in places]
    return [file for file in dict.fromkeys(files) if file.endswith(".py")]

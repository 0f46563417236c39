"""Carry a workspace to a new release: find the edits, apply those that are sure, prove the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from kunlun_adapt.check import Context, context_for, report_of
from kunlun_adapt.diagnostics import AdaptError, Finding, ReleaseReport, Severity
from kunlun_adapt.documents import Catalog, in_range, load_catalog
from kunlun_adapt.evolve.retarget.account import account_of, general
from kunlun_adapt.evolve.retarget.copies import ask_who_copies
from kunlun_adapt.evolve.retarget.groups import groups_of
from kunlun_adapt.evolve.retarget.holding import Place
from kunlun_adapt.evolve.retarget.parts import (
    OF_THE_LOCK,
    ask_who_passes,
    of_findings,
    of_lost,
)
from kunlun_adapt.evolve.retarget.ranges import widened
from kunlun_adapt.evolve.retarget.result import Account, Retargeted
from kunlun_adapt.evolve.retarget.texts import patch
from kunlun_adapt.evolve.retarget.unused import ask_who_uses
from kunlun_adapt.evolve.retarget.work import Work
from kunlun_adapt.evolve.retarget.yaml_nodes import EditError
from kunlun_adapt.evolve.retarget.yaml_text import Draft
from kunlun_adapt.locate import MAP_FILE
from kunlun_adapt.plan import HookBinding, binding_of
from kunlun_adapt.upstream import Lock
from kunlun_adapt.upstream.following import FollowingResolver

ROUNDS = 4
"""So often edits that did not mend what they were for are taken back, and the rest looked at."""

Choose = Callable[[Account], bool]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be carried where: `known` releases are claimed ones, oldest first.

    `between` are those after them and before the `new` one that can be looked at.
    """

    root: Path
    texts: Mapping[str, str]
    lock: Lock
    known: tuple[FollowingResolver, ...]
    between: tuple[FollowingResolver, ...]
    new: FollowingResolver
    choose: Choose
    claim: bool = False
    tell: Tell = lambda what: None
    workspace: str | None = None


def retarget(job: Job) -> Retargeted:
    """Find the edits that carry a workspace to a release, and make those that are chosen.

    Nothing is written: the result has the files' new texts. Raises AdaptError.
    """
    catalog = load_catalog(job.root, job.texts)
    document = catalog.platform_map
    if document is None or catalog.findings:
        raise AdaptError(
            f"the documents have {len(catalog.findings)} finding(s)", "kunlun-adapt validate"
        )
    older = [r.version for r in job.known if Version(r.version) < Version(job.new.version)]
    if not older:
        raise AdaptError(
            f"no claimed release is older than {job.new.version}, so there is none to start from",
            f"kunlun-adapt validate --sglang {job.new.version} --beyond-claims",
        )
    job.tell(f"checking sglang {job.new.version}")
    context = _context(job, catalog, job.new)
    if context.platform_packages_missing:
        raise AdaptError(
            f"sglang {job.new.version} has no {context.platform_packages_missing[0]}: nothing can "
            "be bound there"
        )
    before = report_of(context)
    old_warnings = _said_before(job, catalog)
    groups = groups_of(context, job.known, job.between)
    # What the newest known release leaves out is not carried: what is said of it is listed.
    works = {g.entry.place: Work(g, [], []) for g in groups if g.followed}
    job.tell("following what is lost")
    ways = {place: work.group.way for place, work in works.items()}
    moved = [(place, part) for place, part in of_lost(context, ways) if place in works]
    entries = {place: work.group.entry for place, work in works.items()}
    fresh = [f for f in before.findings if _key(f) not in old_warnings]
    made, without = of_findings(context, fresh, entries, ways)
    made = [*moved, *made]
    ask_who_passes(context, made, entries, ways)
    for place, part in made:
        works[place].parts.append(part)
    rest = _blocked(works.values(), without)
    contexts: dict[str, Context] = {job.new.version: context}

    def context_of(version: str) -> Context:
        if version not in contexts:
            job.tell(f"looking at sglang {version} on the way")
            resolver = next(r for r in (*job.known, *job.between) if r.version == version)
            contexts[version] = _context(job, catalog, resolver)
        return contexts[version]

    job.tell("looking who uses what is bound")
    ask_who_uses(works.values(), context)
    ask_who_copies(works.values(), context_of, (*job.known, *job.between, job.new))
    for work in works.values():
        account_of(work, context, context_of)
    for work in works.values():
        assert work.account is not None
        work.chosen = work.account.outcome == "carried" or (
            work.account.outcome == "proposed" and job.choose(work.account)
        )
    texts = _proved(job, works)
    after, texts, claim = _claimed(job, document.model.sglang, texts)
    accounts = [replace(w.account, taken=w.chosen) for w in works.values() if w.account is not None]
    accounts += [general(f) for f in {_key(f): f for f in rest}.values()]
    return Retargeted(
        release=job.new.version,
        start=older[-1],
        through=tuple(r.version for r in job.between),
        accounts=tuple(sorted(accounts, key=lambda a: (a.position, a.binding))),
        texts=texts,
        patch=patch(job.texts, texts),
        before=(before,),
        after=after,
        claim=(document.model.sglang, claim),
    )


def _context(
    job: Job, catalog: Catalog, resolver: FollowingResolver, beyond: bool = True
) -> Context:
    context = context_for(
        catalog, resolver, lock=job.lock, beyond_claims=beyond, workspace=job.workspace
    )
    assert context is not None, "the catalog has a map"
    return context


def _said_before(job: Job, catalog: Catalog) -> set[tuple[str, str | None, str | None]]:
    """Return the warnings that the newest known release gives: they are no news of the new one."""
    if not job.known:
        return set()
    job.tell(f"checking sglang {job.known[-1].version}")
    report = report_of(_context(job, catalog, job.known[-1], beyond=False))
    return {_key(f) for f in report.findings if f.severity is Severity.WARNING}


def _key(finding: Finding) -> tuple[str, str | None, str | None]:
    return finding.code, finding.binding, finding.target


def _blocked(works: Iterable[Work], without: Sequence[Finding]) -> list[Finding]:
    """Give each finding without an edit to the binding that it is about; return the others."""
    by_name: dict[str, Work] = {}
    for work in works:
        by_name.setdefault(work.group.binding or work.group.name, work)
    rest = []
    for finding in without:
        owner = by_name.get(finding.binding or "")
        if owner is not None:
            owner.blocked.append(finding)
        else:
            rest.append(finding)
    return rest


def _proved(job: Job, works: dict[Place, Work]) -> dict[str, str]:
    """Make the chosen edits, and take those back that leave an error of their binding behind."""
    for _ in range(ROUNDS):
        texts = _applied(job, works)
        catalog = load_catalog(job.root, texts)
        if catalog.findings:
            raise AdaptError(f"an edit broke the documents: {catalog.findings[0].message}")
        job.tell(f"checking the edits against sglang {job.new.version}")
        report = report_of(_context(job, catalog, job.new))
        errors = [f for f in report.findings if f.severity is Severity.ERROR]
        errors = [f for f in errors if f.code not in OF_THE_LOCK]
        found = ((w, next((f for f in errors if _names(f, w)), None)) for w in works.values())
        bad = [(work, error) for work, error in found if work.chosen and error is not None]
        if not bad:
            return texts
        for work, error in bad:
            _take_back(work, f"{error.code}: {error.message}")
    return dict(job.texts)


def _names(finding: Finding, work: Work) -> bool:
    """Tell whether a finding names the binding; of the interface the key, or what it is spelled."""
    entry, binding, target = work.group.entry, finding.binding or "", finding.target or ""
    if entry.key is None:
        return binding == work.group.binding
    own = binding_of(entry.key)
    if binding:
        # One spelling may be that of all keys of a group.
        return binding == own or ("call" not in entry.stated and binding.startswith(f"{own}."))
    stated = work.account.entry if work.account is not None else entry.stated
    member = stated.get("method") or stated.get("field")
    if member is None:
        return bool(target) and target == stated.get("call")
    return target.rpartition(".")[2] == str(member).rpartition(".")[2]


def _take_back(work: Work, why: str) -> None:
    assert work.account is not None
    work.chosen = False
    review = (*work.account.review, f"taken back, since it leaves {why}")
    work.account = replace(work.account, outcome="left", review=review)


def _applied(
    job: Job, works: Mapping[Place, Work], doubted: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return the texts with the chosen edits; one that cannot be made is left to a person.

    Entries of one list are changed from its end on: what comes before keeps its place. Each edit
    of a `doubted` file is proved by itself, so that only the one at fault is left.
    """
    drafts = {name: Draft(text) for name, text in job.texts.items() if _touched(works, name)}
    for place in sorted(works, key=_order, reverse=True):
        work = works[place]
        if not work.chosen:
            continue
        draft = drafts[place[0]]
        saved = draft.copy()
        try:
            _apply(draft, place, work)
            if place[0] in doubted:
                draft.prove()
        except EditError as error:
            drafts[place[0]] = saved
            _take_back(work, error.message)
    for name, draft in drafts.items():
        try:
            draft.prove()
        except EditError as error:
            if name in doubted:
                raise AdaptError(f"{name}: {error.message}") from error
            return _applied(job, works, doubted | {name})
    return {name: drafts[name].text if name in drafts else text for name, text in job.texts.items()}


def _apply(draft: Draft, place: Place, work: Work) -> None:
    account, ranges = work.account, work.ranges
    assert account is not None
    for part in work.parts:
        if part.item is not None:
            draft.add_item(part.item.document, part.item.path, part.item.item)
    if ranges is None:
        return
    _, document, path = place
    if "repair" in account.added:
        assert isinstance(work.group.entry.item, HookBinding)
        names = [*work.group.entry.item.hook.repair, *account.added["repair"]]
        draft.set_values(document, path[:-2], {"repair": names})
    if ranges.new is not None:
        draft.copy_item(document, path, {"sglang": ranges.new, **account.values})
    # Each copy comes right after the entry: the last of them first.
    for text, values in reversed(ranges.between):
        draft.copy_item(document, path, {"sglang": text, **values})
    if ranges.old != work.group.own:
        draft.set_values(document, path, {"sglang": ranges.old})


def _touched(works: Mapping[Place, Work], name: str) -> bool:
    return any(place[0] == name and work.chosen for place, work in works.items())


def _order(place: Place) -> tuple[str, int, tuple[tuple[int, str], ...]]:
    file, document, path = place
    return file, document, tuple((s, "") if isinstance(s, int) else (-1, s) for s in path)


def _claimed(
    job: Job, own: str, texts: dict[str, str]
) -> tuple[tuple[ReleaseReport, ...], dict[str, str], str]:
    """Raise the map's claim where it then holds, and check every claimed release."""
    wanted = widened(own, job.new.version)
    raised = dict(texts)
    if wanted != own:
        draft = Draft(texts[MAP_FILE])
        draft.set_values(0, (), {"sglang": wanted})
        draft.prove()
        raised[MAP_FILE] = draft.text
    catalog = load_catalog(job.root, raised)

    def checked(resolver: FollowingResolver) -> ReleaseReport:
        job.tell(f"checking sglang {resolver.version} with the edits")
        return report_of(_context(job, catalog, resolver, beyond=False))

    new = checked(job.new)
    # Where it is not clean the claim stays, and with it which releases are claimed.
    raises = job.claim or not new.count(Severity.ERROR)
    held = wanted if raises else own
    releases = [r for r in (*job.known, *job.between) if in_range(held, r.version)]
    releases.sort(key=lambda r: Version(r.version))
    reports = [*map(checked, releases), new]
    reports.sort(key=lambda report: Version(report.release))
    clean = all(not report.count(Severity.ERROR) for report in reports)
    if wanted == own or clean or job.claim:
        return tuple(reports), raised, wanted
    return tuple(reports), texts, own

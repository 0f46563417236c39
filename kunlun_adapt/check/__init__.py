"""Rules over documents, plan and release."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kunlun_adapt.check.accepted import accepted, unused_acceptances
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.rules import CLAIM_RULES, DOCUMENT_RULES, RULES
from kunlun_adapt.diagnostics import Finding, ReleaseReport
from kunlun_adapt.documents import Catalog
from kunlun_adapt.plan import Plan, make_plan
from kunlun_adapt.upstream import Facts, Lock, Resolver

__all__ = ["RULES", "Context", "check_release", "context_for", "report_of"]


def check_release(
    catalog: Catalog,
    facts: Facts,
    *,
    lock: Lock | None = None,
    beyond_claims: bool = False,
    source: str | None = None,
    workspace: str | None = None,
    ignored: Callable[[str], bool] = lambda code: False,
) -> ReleaseReport:
    """Check every claim of the workspace against one release.

    All profiles of the map are planned; a binding that any of them binds counts as bound, and none
    does in a release that has no door for plugins. A workspace whose map does not load gives a
    report with the loader's findings and no bindings.
    A release that the map does not claim is only checked `beyond_claims`, that is as if every
    binding claimed it; without that the report says so, and what is wrong whatever the release.
    `source` and `workspace` are how the user named both, for what is advised to be run. Of codes
    that are `ignored` nothing is said to be accepted in vain.
    """
    context = context_for(
        catalog,
        facts,
        lock=lock,
        beyond_claims=beyond_claims,
        source=source,
        workspace=workspace,
    )
    if context is None:
        return ReleaseReport(facts.version, 0, 0, 0, _sorted(catalog.findings))
    return report_of(context, ignored)


def context_for(
    catalog: Catalog,
    facts: Facts,
    *,
    lock: Lock | None = None,
    beyond_claims: bool = False,
    source: str | None = None,
    workspace: str | None = None,
) -> Context | None:
    """Return what the check of one release works on; None without a map that loads."""
    document = catalog.platform_map
    if document is None:
        return None
    if isinstance(facts, Resolver):
        facts.use_cache()
    plans = tuple(
        make_plan(catalog, facts, profile, beyond_claims=beyond_claims)
        for profile in document.model.device.profiles
    )
    return Context(catalog, document, facts, plans, lock, beyond_claims, source, workspace)


def report_of(
    context: Context, ignored: Callable[[str], bool] = lambda code: False
) -> ReleaseReport:
    """Run the rules over one release."""
    catalog, facts, plans = context.catalog, context.facts, context.plans
    asked = context.claimed or context.beyond_claims
    # Where there is no door for a platform, whatever else falls short only repeats that.
    open_ = asked and not context.platform_packages_missing
    rules = RULES if open_ else (*DOCUMENT_RULES, *CLAIM_RULES)
    said = [item for rule in rules for item in rule(context)]
    found = [*accepted(context, said)]
    if open_:
        found += unused_acceptances(context, said, ignored)
    if isinstance(facts, Resolver):
        facts.keep_answers()
    count = _count(plans)
    if context.platform_packages_missing:
        count = {"bound": 0, "planned": 0, "excluded": sum(count.values())}
    return ReleaseReport(
        release=facts.version,
        bound=count["bound"],
        planned=count["planned"],
        excluded=count["excluded"],
        findings=_sorted((*catalog.findings, *found)),
    )


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: f.sort_key))


def _count(plans: tuple[Plan, ...]) -> dict[str, int]:
    rank = ("bound", "planned", "excluded")
    status: dict[str, str] = {}
    for plan in plans:
        for binding in plan.bindings:
            seen = status.get(binding.id, "excluded")
            status[binding.id] = min(seen, binding.status, key=rank.index)
    return {name: sum(s == name for s in status.values()) for name in rank}

"""Findings about how upstream itself uses the targets, found once and then replayed from the lock.

Finding them takes the index of the whole release. Their input is known: the release's files, what
the documents say of the bindings, and the rules. While its digest is the one in the lock, what
the lock holds is what the rules would find again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import CODES, Finding, Severity, UpstreamPosition
from kunlun_adapt.documents import Bind, Hook
from kunlun_adapt.upstream import Location, Release
from kunlun_adapt.upstream.answers import USAGE

CODES_OF_USAGE = ("KA115", "KA117", "KA118", "KA119", "KA120", "KA121")

READERS = (
    *("body_text", "describe", "found", "guards", "lazy", "lookup", "module", "release"),
    *("resolve", "symbols", "syntax"),
)
"""The modules of `upstream` that read what the rules look at."""

_FINDINGS: WeakKeyDictionary[Context, tuple[Finding, ...]] = WeakKeyDictionary()


def usage_findings(context: Context) -> tuple[Finding, ...]:
    """Return what is to be said of upstream's uses: from the lock where it still holds."""
    if context not in _FINDINGS:
        # Each rule asks for its own part, and all are found together.
        _FINDINGS[context] = _held_or_found(context)
    return _FINDINGS[context]


def _held_or_found(context: Context) -> tuple[Finding, ...]:
    if context.reader is None:
        return ()
    held = None if context.lock is None else context.lock.usage.get(context.release)
    digest = usage_digest(context)
    if held is None or held.get("digest") != digest:
        # The lock was written for other documents; those at hand may have been checked since.
        held = context.reader.recall(USAGE, digest, lambda: _found_row(context, digest))
    replayed = _replayed(context, held)
    return found(context) if replayed is None else replayed


def found(context: Context) -> tuple[Finding, ...]:
    """Find what is to be said, with the index of the whole release."""
    # Imported here: what is replayed needs none of it.
    from kunlun_adapt.check.rules import (
        call_not_accepted,
        excluded_but_there,
        import_time_value,
        kernel_inside_kernels,
        named_by_reexport,
        unreachable_reference,
        vacuous_target,
    )
    from kunlun_adapt.check.use_sites import UseSites

    searches = (
        call_not_accepted.search,
        import_time_value.search,
        unreachable_reference.search,
        vacuous_target.search,
        kernel_inside_kernels.search,
        excluded_but_there.search,
        named_by_reexport.search,
    )
    if context.index is None or not (context.hooks or context.kernels):
        return ()
    sites = UseSites.of(context, context.index)
    findings = [finding for search in searches for finding in search(sites)]
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: f.sort_key))


def usage_row(context: Context, held: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what the lock holds of a release; a held row whose digest still stands is kept."""
    digest = usage_digest(context)
    stands = held is not None and held.get("digest") == digest
    if held is not None and stands and _replayed(context, held) is not None:
        return dict(held)
    return _found_row(context, digest)


def _found_row(context: Context, digest: str) -> dict[str, Any]:
    return {"digest": digest, "findings": [_row(finding) for finding in found(context)]}


def usage_digest(context: Context) -> str:
    """Return the hash of all that the findings depend on."""
    assert context.reader is not None
    digest = hashlib.sha256(_rules_digest().encode())
    content = context.reader.recall("digest", "", partial(_content, context.reader.release))
    digest.update(content.encode())
    for part in _stated(context):
        digest.update(json.dumps(part, sort_keys=True, ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()[:32]


def _content(release: Release) -> str:
    # Imported here: what is replayed needs nothing of the index.
    from kunlun_adapt.upstream.index import release_digest

    return release_digest(release)


def _stated(context: Context) -> Iterable[Any]:
    """What the documents and the lock say of the bindings."""
    yield [context.release, context.map.sglang, context.beyond_claims]
    for entry in context.catalog.hooks:
        yield _model(entry.hook)
    for recipe in context.operators:
        yield [recipe.model.name, recipe.model.status]
        yield from (_model(bind) for bind in recipe.model.binds)
    for key, spellings in context.map.interface.items():
        if key.startswith("process."):
            yield [key, [spelling.model_dump(mode="json") for spelling in spellings]]
    from kunlun_adapt.check.rules.excluded_but_there import left_out, locked_fingerprints

    for left in left_out(context):
        yield [left.target, locked_fingerprints(context, left.target)]


def _model(model: Hook | Bind) -> Any:
    # What is accepted is said of findings, and changes none.
    return model.model_dump(mode="json", exclude={"accepts", "why", "served"})


@cache
def _rules_digest() -> str:
    """The hash of our own code that finds: the rules, and what they read a release with."""
    package = Path(__file__).parent.parent
    names = [f"check/{name}.py" for name in ("usage", "use_sites", "targets", "processes")]
    names += ["check/parameters.py", "check/wording.py"]
    rules = (
        *("call_not_accepted", "import_time_value", "unreachable_reference", "vacuous_target"),
        *("kernel_inside_kernels", "excluded_but_there", "named_by_reexport"),
    )
    names += [f"check/rules/{name}.py" for name in rules]
    names += [f"upstream/{name}.py" for name in READERS]
    files = [package / name for name in names]
    files += sorted((package / "upstream" / "index").glob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "binding": finding.binding,
        "target": finding.target,
        "message": finding.message,
        "upstream": str(finding.upstream) if finding.upstream else None,
        "suggestion": finding.suggestion,
    }


def _replayed(context: Context, held: Mapping[str, Any]) -> tuple[Finding, ...] | None:
    """The findings of a row at the places where the bindings stand now; None for a strange row."""
    positions = {b.id: b.position for plan in context.plans for b in plan.bindings}
    rows = held.get("findings")
    if not isinstance(rows, list):
        return None
    replayed = []
    for row in rows:
        try:
            place = None if row["upstream"] is None else Location.parse(row["upstream"])
            replayed.append(
                Finding(
                    code=row["code"],
                    severity=Severity(CODES[row["code"]].severity),
                    message=row["message"],
                    position=positions[row["binding"]],
                    binding=row["binding"],
                    target=row["target"],
                    upstream=UpstreamPosition(place.file, place.line) if place else None,
                    suggestion=row["suggestion"],
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # not what we write: it is found anew
    return tuple(sorted(replayed, key=lambda f: f.sort_key))

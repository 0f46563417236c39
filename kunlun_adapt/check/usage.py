"""Findings about how upstream itself uses the targets, found once and then replayed from the lock.

Finding them takes the index of the whole release. Their input is known: the release's files, what
the documents say of the bindings, and the rules. While its digest is the one in the lock, what
the lock holds is what the rules would find again.

Nothing of that is another release: a row stands when one of them is locked or dropped. Which
bodies KA121 looks for depends on them; a row says where its release has those that were known
when it was made, and the rule looks for any other itself.
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
from kunlun_adapt.check.neighbours import neighbours
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
_ROWS: WeakKeyDictionary[Context, Mapping[str, Any]] = WeakKeyDictionary()


def usage_findings(context: Context) -> tuple[Finding, ...]:
    """Return what is to be said of upstream's uses: from the lock where it still holds."""
    if context not in _FINDINGS:
        # Each rule asks for its own part, and all are found together.
        replayed = () if context.reader is None else _replayed(context, usage_now(context))
        _FINDINGS[context] = found(context) if replayed is None else replayed
    return _FINDINGS[context]


def usage_now(context: Context) -> Mapping[str, Any]:
    """Return the row of the release as it is: the lock's where it stands, else one found anew."""
    if context not in _ROWS:
        _ROWS[context] = _row_now(context)
    return _ROWS[context]


def _row_now(context: Context) -> Mapping[str, Any]:
    if context.reader is None:
        return {}
    held = None if context.lock is None else context.lock.usage.get(context.release)
    digest = usage_digest(context)
    if held is not None and row_digest(held) == digest:
        return held
    # The lock was written for other documents; those at hand may have been checked since.
    row: Mapping[str, Any] = context.reader.recall(USAGE, digest, lambda: _found_row(context))
    return row


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
    """Return what the lock holds of a release; a held row that still stands is kept.

    `digest` covers what all bindings share; `bindings` has a row for each one: the hash of what
    the documents state of it, its neighbours, where bodies that it is left out for are, and what
    was found.
    """
    stands = held is not None and row_digest(held) == usage_digest(context)
    if held is not None and stands and _replayed(context, held) is not None:
        return dict(held)
    return _found_row(context)


def _found_row(context: Context) -> dict[str, Any]:
    from kunlun_adapt.check.rules.excluded_but_there import bodies

    bindings: dict[str, dict[str, Any]] = {}
    for id, digest in _stated_digests(context).items():
        bindings[id] = {"stated": digest}
    for id, row in neighbours(context).items():
        bindings[id].update(row)
    for id, places in bodies(context).items():
        bindings[id]["bodies"] = places
    for finding in found(context):
        # Of a binding alone, so that two branches that each add one merge line by line.
        assert finding.binding is not None, finding
        bindings[finding.binding].setdefault("findings", []).append(_row(finding))
    return {"digest": _shared_digest(context), "bindings": bindings}


def usage_digest(context: Context) -> str:
    """Return the hash of all that the findings depend on."""
    return _whole(_shared_digest(context), _stated_digests(context))


def row_digest(row: Mapping[str, Any]) -> str | None:
    """Return what `usage_digest` was when a row was made; None for a strange row."""
    digest, bindings = row.get("digest"), row.get("bindings", {})
    if not isinstance(digest, str) or not isinstance(bindings, Mapping):
        return None
    try:
        return _whole(digest, {id: str(item["stated"]) for id, item in bindings.items()})
    except (KeyError, TypeError):
        return None


def _whole(shared: str, stated: Mapping[str, str]) -> str:
    text = json.dumps([shared, sorted(stated.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _shared_digest(context: Context) -> str:
    assert context.reader is not None
    digest = hashlib.sha256(_rules_digest().encode())
    content = context.reader.recall("digest", "", partial(_content, context.reader.release))
    digest.update(content.encode())
    for part in _shared(context):
        digest.update(json.dumps(part, sort_keys=True, ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()[:32]


def _stated_digests(context: Context) -> dict[str, str]:
    """The hash of what the documents say of each binding that a finding may be of."""
    parts: dict[str, list[Any]] = {}
    for id, part in _stated(context):
        parts.setdefault(id, []).append(part)
    return {
        id: hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
        for id, said in sorted(parts.items())
    }


def _content(release: Release) -> str:
    # Imported here: what is replayed needs nothing of the index.
    from kunlun_adapt.upstream.index import release_digest

    return release_digest(release)


def _shared(context: Context) -> Iterable[Any]:
    """What the documents say that is about no binding alone."""
    yield [context.release, context.map.sglang, context.beyond_claims]
    for key, spellings in context.map.interface.items():
        if key.startswith("process."):
            yield [key, [spelling.model_dump(mode="json") for spelling in spellings]]


def _stated(context: Context) -> Iterable[tuple[str, Any]]:
    """What the documents say of each binding that acts, or is left out.

    Nothing of other releases: a row stays as it is when one of them is locked or dropped.
    """
    from kunlun_adapt.check.rules.excluded_but_there import left_out

    for hook in context.hooks:
        yield hook.binding.id, [hook.binding.status, _model(hook.hook)]
    for kernel in context.kernels:
        yield kernel.binding.id, [kernel.binding.status, _model(kernel.bind)]
    for left in left_out(context):
        # By which of several places it is excluded changes nothing.
        yield left.binding.id, [left.target, left.silent]


def _model(model: Hook | Bind) -> Any:
    # What is accepted is said of findings, and changes none.
    return model.model_dump(mode="json", exclude={"accepts", "why", "served"})


@cache
def _rules_digest() -> str:
    """The hash of our own code that finds: the rules, and what they read a release with."""
    package = Path(__file__).parent.parent
    names = [
        f"check/{name}.py"
        for name in (*("usage", "use_sites", "targets", "processes"), "neighbours")
    ]
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
        "target": finding.target,
        "message": finding.message,
        "upstream": str(finding.upstream) if finding.upstream else None,
        "suggestion": finding.suggestion,
    }


def _replayed(context: Context, held: Mapping[str, Any]) -> tuple[Finding, ...] | None:
    """The findings of a row at the places where the bindings stand now; None for a strange row."""
    positions = {b.id: b.position for plan in context.plans for b in plan.bindings}
    replayed = []
    try:
        for id, rows in held["bindings"].items():
            for row in rows.get("findings", ()):
                place = None if row["upstream"] is None else Location.parse(row["upstream"])
                replayed.append(
                    Finding(
                        code=row["code"],
                        severity=Severity(CODES[row["code"]].severity),
                        message=row["message"],
                        position=positions[id],
                        binding=id,
                        target=row["target"],
                        upstream=UpstreamPosition(place.file, place.line) if place else None,
                        suggestion=row["suggestion"],
                    )
                )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # not what we write: it is found anew
    return tuple(sorted(replayed, key=lambda f: f.sort_key))

"""KA207: a method of ours that is not what the release's platform method is."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from kunlun_adapt.check.annotations import differ
from kunlun_adapt.check.bodies import function
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_calls import call_text, faults
from kunlun_adapt.check.impl_uses import ImplUse, find, impl_uses
from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Compare what `methods` gives with upstream's method: its parameters, and what it returns."""
    for use in impl_uses(context):
        found = find(context, use.path) if use.member is not None else None
        if use.member is None or not isinstance(found, Implementation):
            continue
        said = list(faults(use, found.signature)) if found.signature is not None else []
        node = function(context, use.member)
        theirs = node.returns if node is not None else None
        promise = ""
        if found.returns is not None and theirs is not None and differ(found.returns, theirs):
            promise = f" -> {_text(theirs)}"
            said.append(f"it returns {_text(found.returns)}, and upstream {_text(theirs)}")
        if said:
            yield _report(context, use, use.member, found, said, promise)


def _report(
    context: Context,
    use: ImplUse,
    member: Symbol,
    found: Implementation,
    said: list[str],
    promise: str,
) -> Finding:
    name = use.path.partition(":")[2]
    signature = found.signature.text() if found.signature is not None else ""
    return Finding.of(
        "KA207",
        f"{name}{signature} ({found.location}) is not what sglang {context.release} calls as "
        f"{member.name}({call_text(use)}): {'; '.join(said)}",
        use.position,
        binding=use.binding,
        target=member.path,
        upstream=member.location,
        suggestion=f"write `def {name}{_parameters(member)}{promise}: …`",
    )


def _parameters(member: Symbol) -> str:
    if member.signature is None:
        return "(…)"
    plain = member.kind == "staticmethod"
    return (member.signature if plain else member.signature.without_first()).text()


def _text(annotation: ast.expr) -> str:
    """The annotation without the quotes that keep it from being evaluated."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation)

"""KA109: the named class only inherits the member."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import kind_findings
from kunlun_adapt.check.targets import Bound, bound
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import in_range
from kunlun_adapt.plan import HookBinding, KernelBinding
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Report members that are bound on a class which has them from a base of the release."""
    broken = {(f.binding, f.target) for f in kind_findings(context, "KA111")}
    for item in bound(context):
        symbol, base = item.symbol, item.symbol.inherited_from
        id = item.binding.binding.id
        if base is None or (id, item.at.target) in broken:
            continue
        nothing = not _accepted(context, item) and _reaches_nothing(context, symbol)
        outcome = _outcome(item.binding, symbol, base)
        if nothing:
            outcome = "the named class has neither a subclass nor a use in this release"
        yield Finding.of(
            "KA109",
            f"{symbol.path} is inherited from {base}; {outcome}",
            item.position,
            binding=id,
            target=item.at.target,
            upstream=symbol.location,
            suggestion=item.naming(
                f"{base}.{symbol.name}",
                f"name the class that defines it: target: {base}.{symbol.name}",
                "inherited",
            ),
            severity=Severity.ERROR if nothing else None,
        )


def _accepted(context: Context, item: Bound) -> bool:
    """Tell whether the warning was accepted: looking through the whole release is spared then."""
    binding = item.binding
    accepts = binding.hook.accepts if isinstance(binding, HookBinding) else binding.bind.accepts
    return any(a.code == "KA109" and in_range(a.sglang, context.release) for a in accepts)


def _reaches_nothing(context: Context, symbol: Symbol) -> bool:
    """Tell whether no object of the release can be of the named class.

    A class that goes by another name as well may be used by that one.
    """
    owner = symbol.path.rpartition(".")[0]
    reader, index = context.reader, context.index
    if reader is None or index is None or reader.definition(owner) != owner:
        return False
    if index.subclasses(owner):
        return False
    return all(found.kind == "annotation" for found in index.references(owner))


def _outcome(binding: HookBinding | KernelBinding, symbol: Symbol, base: str) -> str:
    if isinstance(binding, KernelBinding) and not symbol.path.startswith(f"{symbol.module}."):
        # Kernels are patched where they are defined; see `source.compile`.
        return "the operator would serve every class that has it from there"
    owner = symbol.path.rpartition(".")[0].rpartition(".")[2]
    return (
        f"what is bound here reaches {owner} and its subclasses, and no other class that has it "
        f"from {base.rpartition('.')[2]}"
    )

"""What the operator template shows: an operator's tiers and the places where upstream calls it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kunlun_adapt.documents import Document, OperatorRecipe, Prepare, Tier
from kunlun_adapt.plan import (
    SERVER_ARGS_ACCESSOR,
    Condition,
    KernelBinding,
    Plan,
    Subject,
    TierTable,
    present,
    tier_table,
)
from kunlun_adapt.source.signatures import guards, parameter_parts, uses_unset
from kunlun_adapt.source.text import (
    SourceError,
    distinct,
    dotted,
    identifier,
    literal,
    module_and_name,
    place,
)
from kunlun_adapt.source.traced import TracedText, traced_text
from kunlun_adapt.upstream import Signature, Symbol

_LONGEST_CHAIN = 80
_IDENTITY = re.compile(r"\w+ is (?:not )?(?:None|True|False)\Z")


@dataclass(frozen=True, slots=True)
class TierText:
    """One tier as the template prints it.

    `traced_into` says that torch.compile may get to it: it then counts nothing. What becomes an op
    is gone before the first tier.
    """

    name: str
    at: str
    index: int
    conditions: tuple[str, ...]
    kernel: str
    arguments: tuple[str, ...]
    fallback: bool
    eager: bool
    traced_into: bool
    why: str | None


@dataclass(frozen=True, slots=True)
class FunctionText:
    """One generated dispatch function: the operator's own, or the one for an upstream place."""

    name: str
    parameters: tuple[str, ...]
    note: str
    at: str
    guards: tuple[tuple[str, str, str], ...]
    assignments: tuple[tuple[str, str], ...]
    returns: str | None
    binding: str
    op: bool = False

    @property
    def assignment(self) -> str:
        """A line for each name, or one statement where a name would be overwritten and then read.

        The one statement makes a tuple at each call; the lines do not.
        """
        targets = [target for target, _ in self.assignments]
        roots = [value.partition(".")[0] for _, value in self.assignments]
        if not any(root in targets[:index] for index, root in enumerate(roots)):
            return "\n".join(f"{target} = {value}" for target, value in self.assignments)
        values = [value for _, value in self.assignments]
        line = f"{', '.join(targets)} = {', '.join(values)}"
        if len(line) <= 90:
            return line
        sides = [",\n    ".join(side) for side in (targets, values)]
        return " = ".join(f"(\n    {side},\n)" for side in sides)


@dataclass(frozen=True, slots=True)
class ServerText:
    """The server arguments that conditions read, and upstream's function that hands them out."""

    module: str
    accessor: str
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class OperatorText:
    """Everything that one operator module contains."""

    name: str
    at: str
    why: str
    dtypes: tuple[str, ...]
    imports: tuple[tuple[str, str, str], ...]
    needs: tuple[tuple[str, tuple[str, ...], bool], ...]
    settings: tuple[tuple[str, str, str], ...]
    server: ServerText | None
    reads: tuple[tuple[str, str], ...]
    derived: tuple[tuple[str, str], ...]
    shared: tuple[tuple[str, str], ...]
    params: tuple[str, ...]
    tiers: tuple[TierText, ...]
    functions: tuple[FunctionText, ...]
    unset: bool
    traced: TracedText | None

    @property
    def tier_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tiers)

    @property
    def runtime_names(self) -> tuple[str, ...]:
        """What the module takes from the runtime."""
        wanted = {
            "fell_back": any(t.fallback for t in self.tiers),
            "refuse": self.may_refuse,
            "require": any(not optional for _, _, optional in self.needs),
            "setting": bool(self.settings),
            "tally": True,
            "unserved": any(f.guards for f in self.functions),
        }
        return tuple(name for name, used in wanted.items() if used)

    @property
    def eager(self) -> bool:
        """Whether a tier must not be captured."""
        return any(t.eager for t in self.tiers)

    @property
    def may_refuse(self) -> bool:
        """Whether a call may get past the last tier."""
        return bool(self.tiers[-1].conditions)

    @property
    def shown(self) -> tuple[str, ...]:
        """The entries of a dictionary of the arguments, for messages about a call."""
        return tuple(f"{literal(p)}: {p}" for p in self.params)


def operator_text(plan: Plan, recipe: Document[OperatorRecipe]) -> OperatorText:
    """Return the texts of one operator. Raises SourceError and ConditionError."""
    model = recipe.model
    table = tier_table(model)
    binds = [k for k in plan.kernels if k.recipe is recipe]
    names = _kernel_names(model)
    functions = function_names(plan, recipe)
    used = {c.subject.root for _, cs in table.tiers for c in cs}
    taken = {*table.params, *table.reads, *table.derived, *names.values(), *functions}
    taken |= {f"{part}_{model.name}" for part in ("fake", "op", "serve")}
    shared = _shared(table, taken | {f"returns_{name}" for name in functions})
    traced = traced_text(model, table.params, _fake_name(model, names))
    return OperatorText(
        name=identifier(model.name),
        at=place(recipe.at("name")),
        why=model.why,
        dtypes=_dtypes(table, model),
        imports=_imports(model, names, dict(zip(functions, binds, strict=True))),
        needs=tuple(
            (tier.name, tuple(tier.needs), _optional(tier)) for tier in model.kernels if tier.needs
        ),
        settings=_settings(table),
        server=_server(plan, table, model),
        reads=_reads(model, table, used),
        derived=_derived(table, used),
        shared=tuple((name, text) for text, name in shared.items()),
        params=tuple(identifier(p) for p in model.params),
        tiers=tuple(
            _tier(recipe, table, tier, i, _ordered(conditions, shared), names, traced)
            for i, (tier, (_, conditions)) in enumerate(
                zip(model.kernels, table.tiers, strict=True)
            )
        ),
        functions=(
            *((_op(recipe, traced),) if traced else ()),
            *((_own(recipe),) if model.serves else ()),
            *(_bound(k, name, table) for k, name in zip(binds, functions, strict=True)),
        ),
        unset=any(
            isinstance(k.call, Symbol) and k.call.signature and uses_unset(k.call.signature)
            for k in binds
        ),
        traced=traced,
    )


def _fake_name(model: OperatorRecipe, names: dict[str, str]) -> str:
    """Return the local name of what a traced call without data runs, "" where nothing is made."""
    if not model.traced or model.returned is not None:
        return ""
    if model.fake is not None:
        return "fake_results"
    if model.golden is None:
        raise SourceError(f"{model.name}: a traced operator needs a golden, or fake")
    golden = next((t.name for t in model.kernels if t.impl in (None, model.golden)), None)
    return names[golden] if golden is not None else "fake_results"


def _kernel_names(model: OperatorRecipe) -> dict[str, str]:
    """Return the local name of each tier's implementation; two tiers never share one."""
    return dict(
        zip(
            (t.name for t in model.kernels),
            distinct(f"kernel_{t.name}" for t in model.kernels),
            strict=True,
        )
    )


def _imports(
    model: OperatorRecipe, names: dict[str, str], binds: dict[str, KernelBinding]
) -> tuple[tuple[str, str, str], ...]:
    found = [(*module_and_name(_impl(model, tier)), names[tier.name]) for tier in model.kernels]
    found += [
        (*module_and_name(k.bind.returns), f"returns_{name}")
        for name, k in binds.items()
        if k.bind.returns
    ]
    if _fake_name(model, names) == "fake_results":
        found.append((*module_and_name(str(model.fake or model.golden)), "fake_results"))
    return tuple(sorted(set(found)))


def _impl(model: OperatorRecipe, tier: Tier) -> str:
    found = tier.impl or model.golden
    if found is None:
        raise SourceError(f"{model.name}: the tier {tier.name!r} has no implementation")
    return found


def _dtypes(table: TierTable, model: OperatorRecipe) -> tuple[str, ...]:
    found = {
        v
        for _, conditions in table.tiers
        for c in conditions
        if c.subject.prop == "dtype"
        for v in c.test.points()
    }
    found |= {
        p.to
        for tier in model.kernels
        for p in tier.prepare.values()
        if isinstance(p, Prepare) and p.to
    }
    return tuple(sorted(found))


def _optional(tier: Tier) -> bool:
    """A tier that asks whether its vendor op exists may do without it."""
    return any(key.startswith("op.") for key in tier.when)


def _settings(table: TierTable) -> tuple[tuple[str, str, str], ...]:
    """Return (local name, scope, name) of what is read once, when the module is imported."""
    once = [s for s in table.subjects() if s.scope in ("env", "op")]
    return tuple((s.expression(), s.scope, s.root) for s in once)


def _server(plan: Plan, table: TierTable, model: OperatorRecipe) -> ServerText | None:
    """Return what is read once on the first call: at import there are no server arguments yet."""
    asked = [s for s in table.subjects() if s.scope == "server"]
    if not asked:
        return None
    accessor = plan.names.get(SERVER_ARGS_ACCESSOR)
    if not isinstance(accessor, Symbol):
        raise SourceError(
            f"{model.name}: {asked[0].text} cannot be read: the map's interface does not say how "
            f"sglang {plan.release} hands out its server arguments ({SERVER_ARGS_ACCESSOR})"
        )
    module, _, name = accessor.path.rpartition(".")
    return ServerText(
        dotted(module), identifier(name), tuple((s.expression(), identifier(s.root)) for s in asked)
    )


def _reads(model: OperatorRecipe, table: TierTable, used: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the declared attributes that a tier reads, each with how it is read."""
    found = []
    for name, path in model.reads.items():
        if name in used:
            root, *rest = (identifier(part) for part in path.split("."))
            text = ".".join((root, *rest))
            optional = table.params[root].optional
            found.append((identifier(name), f"{root} and {text}" if optional else text))
    return tuple(found)


def _shared(table: TierTable, taken: set[str]) -> dict[str, str]:
    """Return, for each dtype that is compared more than once, how it is read → its local name.

    Reading a tensor's dtype costs several comparisons. What may be absent is read where a tier has
    made sure of it.
    """
    compared: dict[Subject, int] = {}
    for _, conditions in table.tiers:
        for condition in conditions:
            if condition.subject.prop == "dtype":
                seen = compared.get(condition.subject, 0)
                compared[condition.subject] = seen + len(condition.test.points())
    found = {}
    for subject, times in compared.items():
        param = table.params.get(subject.root)
        name = f"{identifier(subject.root)}_dtype"
        always = param is not None and param.kind == "Tensor" and not param.optional
        if always and times > 1 and name not in taken:
            found[subject.expression()] = name
    return found


def _ordered(conditions: tuple[Condition, ...], shared: dict[str, str]) -> tuple[str, ...]:
    """Return a tier's conditions as text, those first that only compare what a name is.

    They are the cheapest, cannot raise, and tell tiers apart most often.
    """
    texts = [_condition(c, shared) for c in conditions]
    return tuple(sorted(texts, key=lambda text: not _IDENTITY.match(text)))


def _condition(condition: Condition, shared: dict[str, str]) -> str:
    read = condition.subject.expression()
    name = shared.get(read)
    if name is not None and len(condition.test.points()) > 1:
        # `in` asks each dtype that is another one whether it is equal, after all.
        text = " or ".join(f"{name} is {identifier(v)}" for v in condition.test.points())
        if len(text) <= _LONGEST_CHAIN:
            return f"({text})"
    return condition.test.expression(condition.subject, name or read)


def _derived(table: TierTable, used: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the formulas that a tier reads, and those they read in turn, in declared order."""
    wanted = set(used)
    for name in reversed(table.derived):
        if name in wanted:
            wanted |= {s.split(".")[0] for s in table.derived[name].subjects}
    return tuple((identifier(n), d.text) for n, d in table.derived.items() if n in wanted)


def _tier(
    recipe: Document[OperatorRecipe],
    table: TierTable,
    tier: Tier,
    index: int,
    conditions: tuple[str, ...],
    names: dict[str, str],
    traced: TracedText | None,
) -> TierText:
    model = recipe.model
    absent = {p.name for p in table.params.values() if p.optional} - present(table)[tier.name]
    arguments = [_prepared(p, tier, p in absent) for p in model.params]
    arguments += [f"{identifier(k)}={literal(v)}" for k, v in tier.fixed.items()]
    return TierText(
        name=tier.name,
        at=place(recipe.at("kernels", index, "name")),
        index=index,
        conditions=conditions,
        kernel=names[tier.name],
        arguments=tuple(arguments),
        fallback=tier.fallback,
        eager=model.captured(tier) == "eager",
        traced_into=traced is None
        or any(f"{name} is None" not in conditions for name in traced.unless),
        why=tier.why,
    )


def _prepared(param: str, tier: Tier, may_be_none: bool) -> str:
    """Return the argument as the kernel is given it; an absent one has nothing to prepare."""
    name = identifier(param)
    how = tier.prepare.get(param)
    if how is None:
        return name
    if how == "contiguous" or how.do == "contiguous":
        text = f"{name}.contiguous()"
    elif how.to:
        text = f"{name}.to({identifier(how.to)})"
    else:
        raise SourceError(f"prepare of {param!r}: cast needs `to`")
    return f"{name} if {name} is None else {text}" if may_be_none else text


def _op(recipe: Document[OperatorRecipe], traced: TracedText) -> FunctionText:
    """Return what the op runs: the tiers, where every parameter that it lacks is None."""
    model = recipe.model
    return FunctionText(
        name=f"serve_{identifier(model.name)}",
        parameters=traced.carried,
        note="run by the op that torch.compile sees",
        at=place(recipe.at("traced")),
        guards=(),
        assignments=tuple((name, "None") for name in traced.absent),
        returns=None,
        binding=model.name,
        op=True,
    )


def _own(recipe: Document[OperatorRecipe]) -> FunctionText:
    model = recipe.model
    return FunctionText(
        name=identifier(model.name),
        parameters=tuple(identifier(p) for p in model.params),
        note="called by our own classes",
        at=place(recipe.at("serves")),
        guards=(),
        assignments=(),
        returns=None,
        binding=model.name,
    )


def function_names(plan: Plan, recipe: Document[OperatorRecipe]) -> tuple[str, ...]:
    """Return the generated function's name for each place where upstream calls the operator."""
    leaves = [k.bind.target.rpartition(".")[2] for k in plan.kernels if k.recipe is recipe]
    return tuple(distinct(f"bind_{leaf}" for leaf in leaves))


def _bound(kernel: KernelBinding, name: str, table: TierTable) -> FunctionText:
    """Return the function that upstream calls in one place, with upstream's own parameters."""
    if not isinstance(kernel.call, Symbol) or kernel.call.signature is None:
        raise SourceError(f"{kernel.binding.id}: the signature of its target is not known")
    signature: Signature = kernel.call.signature
    assignments = []
    known = set(signature.names)
    for param in table.params.values():
        path = kernel.bind.args.get(param.name)
        if path is None:
            if not param.optional:
                raise SourceError(f"{kernel.binding.id}: {param.name!r} is not mapped")
            path_text = "None"
        else:
            if path.split(".")[0] not in known:
                raise SourceError(f"{kernel.binding.id}: upstream has no {path!r}")
            path_text = ".".join(identifier(p) for p in path.split("."))
        if path_text != param.name:
            assignments.append((identifier(param.name), path_text))
    return FunctionText(
        name=identifier(name),
        parameters=parameter_parts(signature),
        note=f"{kernel.binding.target} ({kernel.bind.style})",
        at=place(kernel.binding.position),
        guards=tuple(guards(kernel.bind.ignores, signature)),
        assignments=tuple(assignments),
        returns=f"returns_{name}" if kernel.bind.returns else None,
        binding=kernel.binding.id,
    )

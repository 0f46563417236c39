"""`kunlun-adapt explain`: a binding, an operator's tiers, or a finding code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rapidfuzz import process
from rich.console import Console
from rich.markdown import Markdown

from kunlun_adapt.cli.common import (
    Offline,
    OneRelease,
    Quiet,
    TextOrJson,
    Workspace,
    as_json,
    cannot,
    default_release,
    emit,
    fail,
    obtain,
    open_lock,
    open_workspace,
)
from kunlun_adapt.cli.listing import union_of_profiles
from kunlun_adapt.diagnostics import CODES, Code
from kunlun_adapt.documents import Catalog, Document, OperatorRecipe, resolve_scalar
from kunlun_adapt.locate import shipped_file
from kunlun_adapt.plan import DTYPES, ConditionError, analyse, call_values, tier_table
from kunlun_adapt.upstream import Facts, LockFacts, Resolver

Shapes = dict[str, tuple[int, ...]]
_TENSOR = re.compile(r"(?P<dtype>[a-z0-9_]+)\[(?P<shape>[\d,\s]*)\]\Z")


def explain(
    name: Annotated[str, typer.Argument(help="A binding id, an operator, or a code like KA105.")],
    call: Annotated[
        list[str] | None,
        typer.Option(
            "--call",
            metavar="ARG=VALUE",
            help="With an operator: an argument, as x=bfloat16[7,512] or topk=8; says which tier "
            "serves the call. Arguments not given are absent.",
            show_default=False,
        ),
    ] = None,
    sglang: OneRelease = None,
    workspace: Workspace = None,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Explain a binding, an operator (which tier serves which shape, and why) or a finding code.

    Examples:

      kunlun-adapt explain worker-affinity --sglang 0.5.23

      kunlun-adapt explain rms_norm

      kunlun-adapt explain silu_and_mul --call "x=bfloat16[8193,512]"

      kunlun-adapt explain KA105
    """
    with cannot():
        code = CODES.get(name.upper())
        if code is not None:
            _code(code, format)
            return
        root, catalog = open_workspace(workspace, quiet=quiet)
        recipe = catalog.operator(name)
        if recipe is not None:
            _operator(recipe, call or [], format)
            return
        lock = open_lock(root)
        spec = sglang or default_release(catalog, lock)
        facts: Facts = (
            LockFacts(lock, spec)
            if spec in lock.releases
            else Resolver(obtain(spec, offline=offline, quiet=quiet))
        )
        _binding(catalog, facts, name, format)


def _code(code: Code, format: TextOrJson) -> None:
    if format is TextOrJson.JSON:
        emit(
            as_json(
                {
                    "code": code.code,
                    "name": code.name,
                    "severity": code.severity.value,
                    "meaning": code.meaning,
                }
            )
        )
        return
    page = shipped_file(code.page)
    if page is None:
        emit(f"{code.code} {code.name} ({code.severity.value}): {code.meaning}\n")
        return
    text = page.read_text(encoding="utf-8")
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        emit(text)


def _binding(catalog: Catalog, facts: Facts, name: str, format: TextOrJson) -> None:
    bindings = {b.id: b for b in union_of_profiles(catalog, facts)}
    binding = bindings.get(name)
    if binding is None:
        choices = [*bindings, *(d.model.name for d in catalog.operators), *CODES]
        near = [match for match, *_ in process.extract(name, choices, limit=3, score_cutoff=60)]
        fail(f"nothing is called {name!r}", f"did you mean {', '.join(near)}?" if near else None)
    found = facts.resolve(binding.target) if "." in binding.target else None
    signature = getattr(getattr(found, "signature", None), "text", lambda: None)()
    body: dict[str, Any] = {
        "id": binding.id,
        "kind": binding.kind,
        "release": facts.version,
        "status": binding.status,
        "target": binding.target,
        "upstream": str(getattr(found, "location", None) or getattr(found, "detail", "") or ""),
        "signature": signature,
        "required": binding.required,
        "served": "simulator" if binding.served else "resolved only",
        "served_why": binding.served_why,
        "claims": binding.claims,
        "why": binding.why,
        "at": str(binding.position),
    }
    if format is TextOrJson.JSON:
        emit(as_json(body))
        return
    for key, value in body.items():
        if value not in (None, ""):
            emit(f"{key.replace('_', ' '):<11} {value}\n")


def _parse_call(call: list[str], params: Mapping[str, Any]) -> tuple[Shapes, dict[str, Any]]:
    """Read ARG=VALUE texts into tensor shapes and the other subjects' values."""
    shapes: Shapes = {}
    given: dict[str, Any] = {}
    for text in call:
        name, equals, value = text.partition("=")
        if not equals or name not in params:
            fail(f"--call {text!r}: write one of {', '.join(params)} as ARG=VALUE")
        tensor = _TENSOR.match(value)
        if tensor and tensor["dtype"] in DTYPES:
            shapes[name] = tuple(int(n) for n in re.findall(r"\d+", tensor["shape"]))
            given[f"{name}.dtype"] = tensor["dtype"]
        elif params[name].kind == "Tensor" and value != "none":
            fail(f"--call {text!r}: {name} is a tensor", f"{name}=bfloat16[7,512]")
        else:
            given[name] = None if value == "none" else resolve_scalar(value)
    return shapes, given


def _operator(recipe: Document[OperatorRecipe], call: list[str], format: TextOrJson) -> None:
    model = recipe.model
    try:
        table = tier_table(model)
    except ConditionError as error:
        fail(str(error), "kunlun-adapt validate")
    analysis = analyse(table)
    tiers = [
        {
            "name": tier.name,
            "when": [c.expression() for c in conditions],
            "needs": list(tier.needs),
            "fallback": tier.fallback,
            "why": tier.why,
        }
        for tier, (_, conditions) in zip(model.kernels, table.tiers, strict=True)
    ]
    cases = []
    for name, shapes in model.cases.items():
        for shape in shapes:
            if not isinstance(shape, list) or not all(isinstance(s, int) for s in shape):
                continue
            for dtype in table.dtypes:
                dims = tuple(s for s in shape if isinstance(s, int))
                serving = table.serving(call_values(table, {name: dims}, dtype, {}))
                cases.append({"param": name, "shape": list(dims), "dtype": dtype, "tier": serving})
    asked = None
    if call:
        tensors, given = _parse_call(call, table.params)
        asked = table.serving(call_values(table, tensors, "", given)) or "none: an error"
    places = [f"{b.target} ({b.sglang})" for b in model.binds] + list(model.serves)
    body = {
        "operator": model.name,
        "family": model.family,
        "at": str(recipe.at("name")),
        "why": model.why,
        "golden": model.golden,
        "binds": places,
        "tiers": tiers,
        "cases": cases,
        "gaps": analysis.gaps,
        "unreachable": list(analysis.unreachable),
        "call": {"arguments": call, "tier": asked} if call else None,
    }
    if format is TextOrJson.JSON:
        emit(as_json(body))
        return
    if asked is not None:
        emit(f"{model.name}({', '.join(call)}): served by {asked}\n")
        return
    emit(f"{model.name} ({model.family}, {recipe.at('name')}): {model.why}\n")
    emit(f"golden: {model.golden}\n")
    for place in places:
        emit(f"bound at {place}\n")
    for tier, (_, conditions) in zip(model.kernels, table.tiers, strict=True):
        mark = ", fallback" if tier.fallback else ""
        when = " and ".join(c.expression() for c in conditions) or "always"
        emit(f"\ntier {tier.name}{mark}: {when}\n")
        if tier.needs:
            emit(f"    needs {', '.join(tier.needs)}\n")
        if tier.why:
            emit(f"    why   {tier.why}\n")
    if cases:
        emit("\nserved, for the recipe's cases (other arguments absent):\n")
    for case in cases:
        emit(f"    {case['dtype']}{case['shape']}: {case['tier'] or 'none: an error'}\n")

"""`kunlun-adapt explain`: a binding, an operator's tiers, or a finding code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler
from rich.console import Console
from rich.markdown import Markdown

from kunlun_adapt.check.wording import near_ids
from kunlun_adapt.cli.calls import Call, answer, parse_call, to_give
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
    facts_of,
    fail,
    open_lock,
    open_workspace,
)
from kunlun_adapt.cli.listing import served, union_of_profiles
from kunlun_adapt.diagnostics import CODES, Code
from kunlun_adapt.documents import Catalog, Document, OperatorRecipe
from kunlun_adapt.locate import shipped_file
from kunlun_adapt.plan import ConditionError, analyse, tier_table
from kunlun_adapt.upstream import Facts, Missing


def explain(
    name: Annotated[
        str,
        typer.Argument(
            help="A binding's id or its key in the map, an operator, or a code like KA105."
        ),
    ],
    call: Annotated[
        list[str] | None,
        typer.Option(
            "--call",
            metavar="ARG=VALUE",
            help="With an operator: an argument, as x=bfloat16[7,512] or topk=8; says which tier "
            "serves the call. Optional arguments that are not given are absent, flags false.",
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
            _without_call(name, call)
            _code(code, format)
            return
        root, catalog = open_workspace(workspace, quiet=quiet)
        recipe = catalog.operator(name)
        if recipe is not None:
            _operator(recipe, call or [], format)
            return
        _without_call(name, call)
        lock = open_lock(root)
        facts = facts_of(
            sglang or default_release(catalog, lock), lock, offline=offline, quiet=quiet
        )
        _binding(catalog, facts, name, format)


def _without_call(name: str, call: list[str] | None) -> None:
    if call:
        fail(f"--call is for operators, and {name} is none", "kunlun-adapt list operators")


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
    text = page_text(code)
    if text is None:
        emit(f"{code.code} {code.name} ({code.severity.value}): {code.meaning}\n")
        return
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        emit(text)


def near_codes(text: str) -> list[str]:
    """Return the codes that are most like what was written."""
    found = process.extract(text.upper(), list(CODES), scorer=JaroWinkler.similarity, limit=3)
    return [match for match, *_ in found]


def page_text(code: Code) -> str | None:
    """Return the page of a code, or None where the package came without it."""
    page = shipped_file(code.page)
    return None if page is None else page.read_text(encoding="utf-8")


def _ids(name: str) -> Iterator[str]:
    """Yield the ids that a name may stand for: an id as it is, or a key as the map has it."""
    yield name
    section, _, key = name.partition(".")
    yield f"factory/{key if section == 'factories' else name}"
    if section == "methods":
        yield f"method/{key}"


def _binding(catalog: Catalog, facts: Facts, name: str, format: TextOrJson) -> None:
    bindings = {b.id: b for b in union_of_profiles(catalog, facts)}
    binding = next((bindings[id] for id in _ids(name) if id in bindings), None)
    if binding is None:
        choices = [*(d.model.name for d in catalog.operators), *bindings]
        near = (
            near_codes(name)
            if name[:2].upper() == "KA" and len(name) < 7
            else near_ids(name, choices)
        )
        fail(f"nothing is called {name!r}", f"did you mean {', '.join(near)}?" if near else None)
    bound = binding.status == "bound"
    found = facts.resolve(binding.target) if "." in binding.target else None
    if isinstance(found, Missing) and not bound:
        found = None  # what is not bound may well be missing; `status why` says what there is
    signature = getattr(getattr(found, "signature", None), "text", lambda: None)()
    body: dict[str, Any] = {
        "id": binding.id,
        "kind": binding.kind,
        "release": facts.version,
        "status": binding.status,
        "status_why": binding.status_why,
        "target": binding.target,
        "upstream": str(getattr(found, "location", None) or getattr(found, "detail", "") or ""),
        "signature": signature,
        "required": binding.required,
        "served": served(binding),
        "served_why": binding.served_why if bound else "",
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
    cases: list[dict[str, Any]] = []
    for name, shapes in model.cases.items():
        for shape in shapes:
            if not isinstance(shape, list) or not all(isinstance(s, int) for s in shape):
                continue
            for dtype in table.dtypes:
                dims = tuple(s for s in shape if isinstance(s, int))
                found = answer(table, Call({name: dims}), dtype)
                open_ = list(found.depends_on)
                case = {"param": name, "shape": list(dims), "dtype": dtype, "tier": found.tier}
                cases.append({**case, "depends_on": open_, "text": found.text()})
    asked = answer(table, parse_call(call, table)) if call else None
    if asked is not None and asked.depends_on:
        fail(f"which tier serves the call {asked.text()}", to_give(table, asked.depends_on))
    places = [f"{b.target} ({b.sglang})" for b in model.binds] + list(model.serves)
    body = {
        "operator": model.name,
        "family": model.family,
        "at": str(recipe.at("name")),
        "why": model.why,
        "golden": model.golden,
        "binds": places,
        "tiers": tiers,
        "cases": [{k: v for k, v in case.items() if k != "text"} for case in cases],
        "gaps": analysis.gaps,
        "unreachable": list(analysis.unreachable),
        "call": asked and {"arguments": call, "tier": asked.tier, "assumed": list(asked.assumed)},
    }
    if format is TextOrJson.JSON:
        emit(as_json(body))
        return
    if asked is not None:
        emit(f"{model.name}({', '.join(call)}): served by {asked.text()}\n")
        if asked.assumed:
            emit(f"    taken for granted: {', '.join(asked.assumed)}\n")
        return
    emit(f"{model.name} ({model.family}, {recipe.at('name')}): {model.why}\n")
    emit(f"golden: {model.golden or 'none yet'}\n")
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
        emit("\nserved, for the recipe's cases (optional arguments absent, flags false):\n")
    for case in cases:
        emit(f"    {case['dtype']}{case['shape']}: {case['text']}\n")

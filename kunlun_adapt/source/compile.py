"""A plan as Python text: the one compiler, used by `render` and by the runtime alike."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.locate import template_folders
from kunlun_adapt.plan import (
    PROCESS,
    ConditionError,
    KernelBinding,
    Member,
    ModelBinding,
    Plan,
)
from kunlun_adapt.source.hooks import hook_texts
from kunlun_adapt.source.operators import function_names, operator_text
from kunlun_adapt.source.platform import class_name, platform_text
from kunlun_adapt.source.text import (
    NAMESPACE,
    SourceError,
    comment,
    conjunction,
    dotted,
    folded,
    identifier,
    literal,
    module_and_name,
    place,
    placed,
)
from kunlun_adapt.upstream import Symbol

SPLIT_OPS = "split_ops"
"""The key under which the interface spells upstream's list of ops that split a graph."""


@dataclass(frozen=True, slots=True)
class Source:
    """The generated modules of one release and profile: name → text, names in a stable order.

    Names are `bindings`, `platform`, `hooks` and `operators/<operator>`.
    """

    release: str
    profile: str
    modules: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KernelText:
    """One kernel binding as the template prints it."""

    id: str
    style: str
    module: str
    attribute: str
    operator: str
    function: str
    required: bool
    at: str
    why: str


def template_folder(workspace: Path) -> Path:
    """Return the folder of the templates: the workspace's own, else those of the package."""
    for folder in template_folders(workspace):
        if folder.is_dir():
            return folder
    raise AdaptError("the templates are missing", "reinstall kunlun-adapt")


def compile_plan(plan: Plan, templates: Path) -> Source:
    """Turn a plan into Python. Same plan and templates, same bytes.

    Raises AdaptError where a binding has no target in the release or cannot be expressed; the
    message names the binding.
    """
    unresolved = plan.unresolved()
    if unresolved:
        binding, missing = unresolved[0]
        raise AdaptError(
            f"{binding.position}: {binding.id}: {missing.path} does not exist in sglang "
            f"{plan.release} ({missing.detail or missing.reason}); "
            f"{len(unresolved)} binding(s) in all",
            f"run kunlun-adapt validate --sglang {plan.release}",
        )
    environment = _environment(templates)
    try:
        modules = dict(_modules(plan, environment))
    except (SourceError, ConditionError) as error:
        raise AdaptError(str(error), "run kunlun-adapt validate") from error
    except jinja2.TemplateError as error:
        raise AdaptError(f"template: {error}", f"see {templates}") from error
    for name, text in modules.items():
        _must_parse(name, text)
    return Source(plan.release, plan.profile, modules)


def _environment(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(folder)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Python text; every value passes `literal` or is checked
    )
    environment.filters.update(
        literal=literal,
        literals=_literals,
        comment=comment,
        folded=folded,
        conjunction=conjunction,
    )
    return environment


def _literals(values: Sequence[object]) -> list[str]:
    """Return the entries of a tuple display; a single one keeps its comma."""
    shown = [literal(v) for v in values]
    return [f"{shown[0]},"] if len(shown) == 1 else shown


def _modules(plan: Plan, environment: jinja2.Environment) -> list[tuple[str, str]]:
    def render(name: str, **values: object) -> str:
        text = environment.get_template(f"{name}.py.j2").render(plan=plan, **values)
        return text.rstrip("\n") + "\n"

    profile = plan.platform_map.model.device.profiles[plan.profile]  # type: ignore[index]  # checked
    kernels = _kernels(plan)
    hooks = hook_texts(plan)
    count = {s: sum(b.status == s for b in plan.bindings) for s in ("bound", "planned", "excluded")}
    modules = [
        (
            "bindings",
            render(
                "bindings",
                platform_class=class_name(plan),
                dispatch_key=identifier(profile.dispatch_key),
                processes=_processes(plan),
                without_plugins=_without_plugins(plan),
                counts=tuple(count.values()),
                environment=placed(plan.platform_map, "environment", plan.environment, "name"),
                place=place,
                members=[
                    {
                        "id": m.binding.id,
                        "name": m.name,
                        "impl": _own_impl(m),
                        "at": place(m.binding.position),
                        "why": m.binding.why,
                    }
                    for m in plan.members
                ],
                kernels=kernels,
                models=[_model(m) for m in plan.models],
                warm_up=_warm_up(plan),
                split_ops=_split_ops(plan),
                own=[
                    {
                        "id": f"{r.model.name}/{served}",
                        "operator": r.model.name,
                        "at": place(r.at("serves", index)),
                        "why": r.model.why,
                    }
                    for r in plan.operators
                    for index, served in enumerate(r.model.serves)
                ],
            ),
        ),
        ("platform", render("platform", platform=platform_text(plan))),
        (
            "hooks",
            render(
                "hooks",
                hooks=hooks,
                unset=any(h.unset for h in hooks),
                guarded=any(h.guards for h in hooks),
            ),
        ),
    ]
    for recipe in sorted(plan.operators, key=lambda r: r.model.name):
        text = operator_text(plan, recipe)
        modules.append((f"operators/{identifier(recipe.model.name)}", render("operator", op=text)))
    return modules


def _own_impl(member: Member) -> str | None:
    """Return the implementation of ours that a member hands out, if it hands out one."""
    if member.value not in ("class", "function") or str(member.content).startswith("sglang."):
        return None
    return ":".join(module_and_name(member.content))


def _model(item: ModelBinding) -> dict[str, object]:
    if not isinstance(item.registry, Symbol):
        raise SourceError(f"{item.binding.id}: {item.registry.path} does not exist")
    return {
        "id": item.binding.id,
        "module": dotted(item.registry.module),
        "attribute": dotted(_attribute(item.registry)),
        "architecture": identifier(item.model.architecture),
        "impl": ":".join(module_and_name(item.model.cls)),
        "replaces": item.model.replaces,
        "required": item.binding.required,
        "at": place(item.binding.position),
        "why": item.binding.why,
    }


def _warm_up(plan: Plan) -> dict[str, object] | None:
    """Return the size of the collectives, and each group with what hands it out."""
    if plan.warm_up is None or plan.platform_map.model.communication is None:
        return None
    groups = []
    for name, symbol in plan.warm_up.groups:
        module, _, accessor = symbol.path.rpartition(".")
        groups.append((name, dotted(module), identifier(accessor)))
    return {
        "bytes": plan.warm_up.bytes,
        "groups": groups,
        "at": place(plan.platform_map.key_at("communication")),
        "why": plan.platform_map.model.communication.why,
    }


def _split_ops(plan: Plan) -> dict[str, object] | None:
    """Return upstream's list of the ops at which it cuts piecewise graphs, and ours for it."""
    symbol = plan.names.get(SPLIT_OPS)
    eager = [r.model.name for r in plan.operators if r.model.traced and r.model.capture == "eager"]
    if not eager or not isinstance(symbol, Symbol):
        return None
    return {
        "module": dotted(symbol.module),
        "attribute": dotted(_attribute(symbol)),
        "ops": [f"{NAMESPACE}.{identifier(name)}.default" for name in sorted(eager)],
    }


def _kernels(plan: Plan) -> list[KernelText]:
    """Return the kernel bindings in the plan's order, each with its generated function's name."""
    functions: dict[str, str] = {}
    for recipe in plan.operators:
        binds = [k for k in plan.kernels if k.recipe is recipe]
        for kernel, name in zip(binds, function_names(plan, recipe), strict=True):
            functions[kernel.binding.id] = name
    return [_kernel(k, functions[k.binding.id]) for k in plan.kernels]


def _kernel(kernel: KernelBinding, function: str) -> KernelText:
    if not isinstance(kernel.symbol, Symbol):
        raise SourceError(f"{kernel.binding.id}: {kernel.bind.target} does not exist")
    return KernelText(
        id=kernel.binding.id,
        style=kernel.bind.style,
        module=dotted(kernel.symbol.module),
        attribute=dotted(_attribute(kernel.symbol)),
        operator=identifier(kernel.recipe.model.name),
        function=function,
        required=kernel.binding.required,
        at=place(kernel.binding.position),
        why=kernel.binding.why,
    )


def _attribute(symbol: Symbol) -> str:
    """Return the name to patch in the defining module: the one that upstream looks up.

    An alias (`name = other_function`) is patched itself, since its callers look up the alias and
    others may call the function by its own name.
    """
    prefix = f"{symbol.module}."
    return symbol.path.removeprefix(prefix) if symbol.path.startswith(prefix) else symbol.qualname


def _processes(plan: Plan) -> list[tuple[str, str]]:
    """Return (process name, name of the function that it runs) from the map's interface."""
    found = []
    for key, symbol in plan.names.items():
        if key.startswith(f"{PROCESS}.") and isinstance(symbol, Symbol):
            found.append((key.partition(".")[2], symbol.path.rpartition(".")[2]))
    return found


def _without_plugins(plan: Plan) -> list[tuple[str, str, str]]:
    """Return (process name, module, attribute) of what begins the processes without plugins."""
    found = []
    for key in sorted(plan.without_plugins):
        symbol = plan.names.get(key)
        if key.startswith(f"{PROCESS}.") and isinstance(symbol, Symbol):
            found.append((key.partition(".")[2], dotted(symbol.module), dotted(_attribute(symbol))))
    return found


def _must_parse(name: str, text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise AdaptError(
            f"the generated module {name} is not Python (line {error.lineno}: {error.msg})",
            "a template is broken; restore it",
        ) from error

"""KA210: a name of ours that means something of upstream's in this release."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import in_range
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Location, Symbol

ENTRY = "EntryClass"
"""The name by which upstream's modules of models hand out their classes."""
FORWARD = "forward_"
PLAIN_TORCH = "native"
"""The dispatch key that leads to the forward in plain PyTorch, which is nobody's device."""


def rule(context: Context) -> Iterable[Finding]:
    """Report names that we register or dispatch by and that the release has taken."""
    if context.reader is None or context.platform_class is None:
        return
    for hook in context.hooks:
        if hook.hook.type == "register" and isinstance(hook.symbol, Symbol):
            yield from _registered(context, hook, hook.symbol)
    yield from _models(context)
    yield from _dispatch(context)


def _models(context: Context) -> Iterator[Finding]:
    """An architecture for which upstream has a class, and which the map does not replace."""
    for i, model in enumerate(context.map.models):
        if model.replaces or not in_range(model.sglang, context.release):
            continue
        bound = (m for plan in context.plans for m in plan.models if m.model is model)
        registry = next((m.registry for m in bound), None)
        at = _served_by(context, registry, model.architecture)
        if at is not None:
            yield Finding.of(
                "KA210",
                f"sglang {context.release} has a class for {model.architecture} itself: the start "
                "is refused where ours would take its place unsaid",
                context.document.at("models", i, "architecture"),
                binding=f"factory/models.{model.architecture}",
                upstream=at,
                suggestion=f"models[{i}]: add `replaces: true`, or name another architecture",
            )


def _served_by(context: Context, registry: object, architecture: str) -> Location | None:
    """Return where a module beside the registry names its class of that name `EntryClass`."""
    reader = context.reader
    if reader is None or not isinstance(registry, Symbol):
        return None
    package = registry.module.rpartition(".")[0]
    for module in reader.release.modules():
        if module.rpartition(".")[0] != package:
            continue
        file = reader.release.module_file(module)
        text = reader.release.read(file) if file is not None else None
        if text is None or architecture.encode() not in text:
            continue
        entry = context.facts.resolve(f"{module}.{ENTRY}")
        node = reader.statement(entry) if isinstance(entry, Symbol) else None
        value = getattr(node, "value", None)
        named = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} if value else set()
        if architecture in named or (
            isinstance(entry, Symbol) and entry.qualname.rpartition(".")[2] == architecture
        ):
            found = context.facts.resolve(f"{module}.{architecture}")
            return found.location if isinstance(found, Symbol) else Location(str(file), 1)
    return None


def _registered(context: Context, hook: HookBinding, registers: Symbol) -> Iterator[Finding]:
    value = hook.hook.value
    names = value if isinstance(value, list) else [value]
    taken = {**_in_table(context, hook.readback), **_decorated(context, registers)}
    for name in names[:1]:
        at = taken.get(name) if isinstance(name, str) else None
        if at is not None:
            yield Finding.of(
                "KA210",
                f"{hook.binding.id} registers {name!r}, which sglang {context.release} has taken: "
                "ours takes its place for every model",
                hook.document.at(*hook.path[:2], "value"),
                binding=hook.binding.id,
                target=hook.at.target,
                upstream=at,
                suggestion="register another name, or say that it is meant: "
                '`accepts: [{code: KA210, why: "…"}]`',
            )


def _in_table(context: Context, table: object) -> dict[str, Location]:
    """The keys with which a table of upstream's begins."""
    if context.reader is None or not isinstance(table, Symbol):
        return {}
    node = context.reader.statement(table)
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.Dict):
        return {}
    return {
        key.value: table.location
        for key in value.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _decorated(context: Context, registers: Symbol) -> dict[str, Location]:
    """The names under which functions of the same module are registered by a decorator."""
    if context.reader is None:
        return {}
    return dict(context.reader.decorated(registers.module, registers.qualname))


def _dispatch(context: Context) -> Iterator[Finding]:
    """A key leads to upstream's own `forward_<key>` where a class has one."""
    keys: dict[str, Symbol] = {}
    for kernel in context.kernels:
        if kernel.bind.style == "oot_forward" and isinstance(kernel.symbol, Symbol):
            for profile in context.map.device.profiles.values():
                name = f"{FORWARD}{profile.dispatch_key}"
                found = context.facts.resolve(f"{kernel.bind.target}.{name}")
                if isinstance(found, Symbol):
                    keys.setdefault(profile.dispatch_key, found)
    for name, profile in context.map.device.profiles.items():
        key = profile.dispatch_key
        if key in keys and key not in (PLAIN_TORCH, profile.reports_as):
            yield Finding.of(
                "KA210",
                f"the dispatch key {key!r} is a device of sglang {context.release}: every operator "
                f"without a kernel of ours runs its {FORWARD}{key}",
                context.document.at("device", "profiles", name, "dispatch_key"),
                binding="factory/device.dispatch_key",
                target=keys[key].path,
                upstream=keys[key].location,
                suggestion=f"take {PLAIN_TORCH}, a key of your own, or that of the device that the "
                f"profile answers to ({profile.reports_as})",
            )

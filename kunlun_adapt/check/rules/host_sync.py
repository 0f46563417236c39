"""KA314: a kernel that waits for the device, in an operator that may be captured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.host_syncs import host_syncs, is_readable
from kunlun_adapt.check.impl_uses import find
from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.check.tables import binding_of
from kunlun_adapt.diagnostics import Finding, Position, Severity
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.documents.operator_recipe import GOLDEN

SHOWN = 3
_KINDS = {"class": "a class", "value": "a value", "module": "a module", "function": "of SGLang"}


def rule(context: Context) -> Iterable[Finding]:
    """Read what runs inside a capture, down to the functions of its package that it calls.

    Of the golden it only informs: it is the last resort, and no adapter.
    """
    for recipe in context.active_operators:
        model = recipe.model
        binding = binding_of(context, recipe)
        for path, position in _adapters(recipe):
            if unread := _unread(context, path):
                yield Finding.of(
                    "KA314",
                    f"{path} is {unread}: whether it waits for the device is not told, and it is "
                    "marked `capture: safe`",
                    position,
                    binding=binding,
                    suggestion="name a function of ours that calls it",
                    severity=Severity.INFO,
                )
            if places := _waits(context, recipe, path):
                yield Finding.of(
                    "KA314",
                    f"{path} waits for the device at {places}, and is marked `capture: safe`",
                    position,
                    binding=binding,
                    suggestion="let it read only what the host knows, or mark the tier or the "
                    "operator `capture: eager`",
                )
        golden = model.golden
        serves = any(
            tier.name == GOLDEN and tier.impl is None and model.captured(tier) == "safe"
            for tier in model.kernels
        )
        if golden is not None and serves and (places := _waits(context, recipe, golden)):
            yield Finding.of(
                "KA314",
                f"{golden} reads values on the host at {places}: a captured call must not fall "
                "back to it",
                recipe.at("golden"),
                binding=binding,
                severity=Severity.INFO,
            )


def _adapters(recipe: Document[OperatorRecipe]) -> Iterator[tuple[str, Position]]:
    for i, tier in enumerate(recipe.model.kernels):
        if tier.impl is not None and recipe.model.captured(tier) == "safe":
            yield tier.impl, recipe.at("kernels", i, "impl")
    for i, bind in enumerate(recipe.model.binds):
        if bind.returns is not None and recipe.model.capture == "safe":
            yield bind.returns, recipe.at("binds", i, "returns")


def _unread(context: Context, path: str) -> str:
    """Say what a path leads to where that is no function whose text can be read, or nothing."""
    function = find(context, path)
    if not isinstance(function, Implementation) or is_readable(function):
        return ""  # KA301 says the former
    return "an async function" if function.is_async else _KINDS.get(function.kind, function.kind)


def _waits(context: Context, recipe: Document[OperatorRecipe], path: str) -> str:
    """Spell where a function waits, or nothing."""
    function = find(context, path)
    if not isinstance(function, Implementation):
        return ""  # KA301 says it
    tensors = [name for name, kind in recipe.model.params.items() if kind.startswith("Tensor")]
    syncs = host_syncs(function, tensors, partial(find, context))
    listed = [f"`{sync.text}` ({sync.place})" for sync in syncs[:SHOWN]]
    more = f" and {len(syncs) - SHOWN} more" if len(syncs) > SHOWN else ""
    return ", ".join(listed) + more

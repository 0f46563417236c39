"""Every place where a document names an implementation, and how it will be called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.drift import last_seen
from kunlun_adapt.check.implementations import Found, Implementations
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.plan import WRAPPING, HookBinding, Member, of_base
from kunlun_adapt.upstream import Signature, Symbol

ONE_CALL = ("call",)
ONE_RESULT = ("result",)
RECEIVER = "self"


@dataclass(frozen=True, slots=True)
class ImplUse:
    """One named implementation and the arguments that it is given.

    `positional` are passed in order and `keywords` by name; both are None where the way in which
    it is called is not ours to check (classes, values). `operator` says that they are an operator's
    parameters, which a parameter of another name must not take. `member` is the method of
    upstream's platform that it stands for. `kind` is what it has to be, a class or a function,
    where what is bound settles that. `upstream` is the hook for which it gets upstream's own
    arguments.
    """

    path: str
    position: Position
    binding: str | None
    positional: tuple[str, ...] | None = None
    keywords: tuple[str, ...] = ()
    operator: bool = False
    member: Symbol | None = None
    kind: str | None = None
    upstream: HookBinding | None = None


def impl_uses(context: Context) -> Iterator[ImplUse]:
    """Yield every implementation path of what is bound in this release, and every kernel's."""
    yield from _map(context)
    for recipe in context.operators:
        yield from _operator(context, recipe)


def find(context: Context, path: str) -> Found:
    """Follow an implementation path; a path without a colon is a module."""
    finder = _finder(context)
    return finder.find(path) if ":" in path else finder.find_module(path)


def _finder(context: Context) -> Implementations:
    if context not in _FINDERS:
        _FINDERS[context] = Implementations(
            context.catalog.root, context.facts, context.map.sources
        )
    return _FINDERS[context]


_FINDERS: WeakKeyDictionary[Context, Implementations] = WeakKeyDictionary()


def _map(context: Context) -> Iterator[ImplUse]:
    document, model = context.document, context.map
    backend = model.factories.attention_backend
    if backend is not None:
        at = document.at("factories", "attention_backend", "class")
        yield ImplUse(backend.cls, at, "factory/attention_backend")
    for plan in context.plans:
        for member in plan.members:
            if member.value not in ("class", "function"):
                continue
            path = member_path(member)
            if member.value == "function" and isinstance(_given(context, path), dict):
                path = (*path, plan.profile)
            at = document.at(*path)
            positional, keywords = _member_call(member.symbol, member.value)
            if positional is not None and _on_platform(context, member):
                positional = (RECEIVER, *positional)
            method = member.symbol if positional is not None else None
            yield ImplUse(
                str(member.content),
                at,
                member.binding.id,
                positional,
                keywords,
                member=method if isinstance(method, Symbol) else None,
            )
    for hook in context.hooks:
        if hook.hook.impl is None:
            continue
        at = hook.document.at(*hook.path[:2], "impl")
        bound = hook.symbol
        if not isinstance(bound, Symbol):
            # It is gone, which KA101 says. What it was tells what may take its place.
            seen = last_seen(context, hook.at.target)
            bound = seen[1] if seen is not None else bound
        whole_class = isinstance(bound, Symbol) and bound.kind == "class"
        called = hook.hook.type in WRAPPING and isinstance(bound, Symbol) and not whole_class
        kind = "function" if called else None
        if whole_class and hook.hook.type == "replace":
            kind = "class"
        positional = ONE_CALL if called else None
        as_is = called and hook.hook.takes == "arguments"
        yield ImplUse(
            hook.hook.impl,
            at,
            hook.binding.id,
            None if as_is else positional,
            kind=kind,
            upstream=hook if as_is and isinstance(hook.symbol, Symbol) else None,
        )
    if model.device.base is not None:
        at = document.at("device", "base")
        yield ImplUse(model.device.base, at, "factory/device.kind", kind="class")
    for i, shim in enumerate(model.shims):
        if shim.provide is None:
            continue
        yield ImplUse(shim.provide, document.at("shims", i, "provide"), f"shim/{shim.module}")
    for i, entry in enumerate(model.models):
        at = document.at("models", i, "class")
        yield ImplUse(entry.cls, at, f"factory/models.{entry.architecture}", kind="class")


def _on_platform(context: Context, member: Member) -> bool:
    """Tell whether it is a method of the platform class written by hand, which gets the platform.

    Upstream's own kind of method is asked: one of another kind is not plain, and not compared.
    """
    bound = isinstance(member.symbol, Symbol) and member.symbol.kind not in (
        "staticmethod",
        "classmethod",
    )
    return bound and of_base(context.map.device, str(member.content))


def _given(context: Context, path: tuple[str | int, ...]) -> Any:
    value = context.document.raw.data
    for part in path:
        value = value[part]
    return value


def _member_call(symbol: object, value: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """A function of ours gets upstream's arguments by name, as the generated method passes them."""
    if value != "function" or not isinstance(symbol, Symbol) or symbol.signature is None:
        return None, ()
    signature: Signature = symbol.signature
    if symbol.kind != "staticmethod":
        signature = signature.without_first()
    positional = tuple(p.name for p in signature.parameters if p.kind == "positional_only")
    keywords = tuple(
        p.name for p in signature.parameters if p.kind in ("positional", "keyword_only")
    )
    return positional, keywords


def _operator(context: Context, recipe: Document[OperatorRecipe]) -> Iterator[ImplUse]:
    model = recipe.model
    ids = [b.id for plan in context.plans for b in plan.bindings]
    binding = next((id for id in ids if id.startswith(f"{model.name}/")), model.name)
    params = tuple(model.params)
    if model.golden is not None:
        yield ImplUse(model.golden, recipe.at("golden"), binding, params, (), True)
    if model.fake is not None:
        yield ImplUse(model.fake, recipe.at("fake"), binding, params, (), True)
    for i, tier in enumerate(model.kernels):
        if tier.impl is not None:
            at = recipe.at("kernels", i, "impl")
            yield ImplUse(tier.impl, at, binding, params, tuple(tier.fixed), True)
    for i, bind in enumerate(model.binds):
        if bind.returns is not None:
            yield ImplUse(bind.returns, recipe.at("binds", i, "returns"), binding, ONE_RESULT)

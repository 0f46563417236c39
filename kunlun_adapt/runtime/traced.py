"""Operators as `torch.library` ops: what torch.compile takes whole instead of looking into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMESPACE = "kunlun_adapt"

_libraries: dict[str, Any] = {}
"""By operator; torch drops an op when its library goes away."""


def traced_op(
    name: str,
    schema: str,
    serve: Callable[..., Any],
    fake: Callable[..., Any] | None,
) -> Any:
    """Define the op `kunlun_adapt::<name>` and return it; an older one of the name goes away.

    Without `fake` the op only writes into its arguments. With it, it makes a list of contiguous
    tensors: `serve` computes them, and `fake` gives tensors of the same form.
    """
    import torch

    older = _libraries.pop(name, None)
    if older is not None:
        older._destroy()
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _libraries[name] = library
    library.define(name + schema)
    run = _writes(serve) if fake is None else _makes(serve)
    imitate = _nothing if fake is None else _makes(fake)
    library.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", imitate, lib=library)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _nothing(*arguments: Any) -> None:
    """What an op that only writes into its arguments makes."""


def _writes(serve: Callable[..., Any]) -> Callable[..., None]:
    def run(*arguments: Any) -> None:
        serve(*arguments)

    return run


def _makes(serve: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Return results in one form: compiled code relies on the strides that the fake has."""

    def run(*arguments: Any) -> list[Any]:
        made = serve(*arguments)
        results = made if isinstance(made, (tuple, list)) else (made,)
        # An op's result must not be an argument of it.
        taken = {id(argument) for argument in arguments}
        return [t.clone() if id(t) in taken else t.contiguous() for t in results]

    return run

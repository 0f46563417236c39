"""KA211: custom ops that the release registers where a device that answers to CUDA never looks."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from kunlun_adapt.check.bodies import FunctionNode, function
from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Symbol

REGISTERS = "sglang.srt.utils.common.direct_register_custom_op"
"""Upstream's function that hands custom ops to torch's dispatcher."""

OUT_OF_TREE, ELSEWHERE, CUDA = "is_out_of_tree", "PrivateUse1", "cuda"


def rule(context: Context) -> Iterable[Finding]:
    """Report profiles that answer to CUDA where upstream gives out-of-tree ops another key."""
    profiles = [p for p, v in context.map.device.profiles.items() if v.reports_as == CUDA]
    if not profiles or context.platform_class is None:
        return
    symbol = context.facts.resolve(REGISTERS)
    node = function(context, symbol)
    if node is None or not isinstance(symbol, Symbol) or not _by_platform(node):
        return
    for profile in profiles:
        yield Finding.of(
            "KA211",
            f"sglang {context.release} registers custom ops of an out-of-tree platform for "
            f"{ELSEWHERE}, and the tensors of the profile {profile} are CUDA's: torch finds no "
            "kernel for such an op",
            context.document.at("device", "profiles", profile, "reports_as"),
            binding="factory/device.reports_as",
            target=symbol.path,
            upstream=symbol.location,
            suggestion=f'hook {REGISTERS} for ">={context.floor}", or accept it at the top of '
            'the map: `accepts: [{code: KA211, why: "…"}]`',
        )


def _by_platform(node: FunctionNode) -> bool:
    """Tell whether an `if` that asks for an out-of-tree platform names the other key."""
    return any(
        isinstance(item, ast.If)
        and _mentions(item.test, OUT_OF_TREE)
        and any(_mentions(inner, ELSEWHERE) for inner in item.body)
        for item in ast.walk(node)
    )


def _mentions(node: ast.AST, word: str) -> bool:
    return any(
        (isinstance(item, ast.Attribute) and item.attr == word)
        or (isinstance(item, ast.Name) and item.id == word)
        or (isinstance(item, ast.Constant) and item.value == word)
        for item in ast.walk(node)
    )

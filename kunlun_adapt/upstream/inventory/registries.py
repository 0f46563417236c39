"""What a release registers by name: attention backends, quantization methods, models, operators."""

from __future__ import annotations

import ast
from dataclasses import replace

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.inventory.items import Item, Table
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location

ATTENTION = "sglang.srt.layers.attention.attention_registry"
REGISTER = "register_attention_backend"
QUANTIZATION = "sglang.srt.layers.quantization"
METHODS = "QUANTIZATION_METHODS"
MODELS = "sglang.srt.models."
ENTRY = "EntryClass"
FUSED = ("BaseFusedOp", "MultiPlatformOp", "CustomOp")
"""What operators that dispatch by device derive from, one release or the other."""


def attention_backends(resolver: Resolver) -> Table:
    """Each name under which an attention backend is registered."""
    modules = dict.fromkeys((ATTENTION, *resolver.index.importing(ATTENTION)))
    return {
        name: Item(module, location=at)
        for module in modules
        for name, at in resolver.decorated(module, REGISTER)
    }


def quantization_methods(resolver: Resolver) -> Table:
    """Each method's configuration class; those of one device only are there too."""
    table = resolver.table(QUANTIZATION)
    found: Table = {}
    if table is None:
        return found
    source = resolver.release.read(table.file) or b""
    for node in ast.walk(syntax.parse_module(source, table.file)):
        given: ast.expr | None = None
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any((syntax.dotted(t) or "").endswith(METHODS) for t in targets):
                given = node.value
        elif isinstance(node, ast.Call):
            called = syntax.dotted(node.func) or ""
            if called.endswith(f"{METHODS}.update") and node.args:
                given = node.args[0]
        if not isinstance(given, ast.Dict):
            continue
        for key, value in zip(given.keys, given.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                text = ast.unparse(value)
                before = found.get(key.value)
                if before is None:
                    found[key.value] = Item(text, location=Location(table.file, key.lineno))
                elif text not in before.text.split(" | "):
                    # Each device may have a class of its own under one name.
                    found[key.value] = replace(before, text=f"{before.text} | {text}")
    return found


def models(resolver: Resolver) -> Table:
    """Each architecture that a module of the models package offers."""
    found: Table = {}
    for definition in resolver.index.definitions(ENTRY):
        table = resolver.table(definition.module)
        if table is None or not definition.module.startswith(MODELS):
            continue
        for binding in table.scope.bindings.get(ENTRY, ()):
            if binding.kind != "assignment":
                continue
            for name in (binding.alias,) if binding.alias else syntax.names_of(table.node(binding)):
                bound = table.scope.bindings.get(name)
                line = bound[-1].line if bound else binding.line
                found.setdefault(name, Item(definition.module, location=Location(table.file, line)))
    return found


def fused_ops(resolver: Resolver) -> Table:
    """Each class of operators that upstream dispatches by class, by its dotted path."""
    index = resolver.index
    found: Table = {}
    for base in FUSED:
        for root in index.definitions(base):
            if root.kind != "class" or not root.module.startswith(("sglang.srt", "sglang.kernels")):
                continue
            for item in index.subclasses(root.path):
                if item.module.startswith(("sglang.srt", "sglang.kernels")):
                    at = item.location
                    found.setdefault(item.path, Item(", ".join(item.bases), location=at))
    return found

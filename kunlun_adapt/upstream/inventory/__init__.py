"""What a release offers by name: arguments, variables, models, backends, and who asks a platform.

Each table is read once and kept with the other answers about the release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kunlun_adapt.upstream.inventory.environment import environment
from kunlun_adapt.upstream.inventory.fields import fields_of
from kunlun_adapt.upstream.inventory.items import Item, Table, item_of, row_of
from kunlun_adapt.upstream.inventory.platform import platform_readers, plugin_loaders
from kunlun_adapt.upstream.inventory.registries import (
    attention_backends,
    fused_ops,
    models,
    quantization_methods,
)
from kunlun_adapt.upstream.resolve import Resolver

__all__ = ["TABLES", "Item", "Table", "fields", "inventory"]

SERVER_ARGS = "sglang.srt.server_args.ServerArgs"


def _server_args(resolver: Resolver) -> Table:
    return fields_of(resolver, SERVER_ARGS)


TABLES: Mapping[str, Callable[[Resolver], Table]] = {
    "server_args": _server_args,
    "environment": environment,
    "attention_backends": attention_backends,
    "quantization_methods": quantization_methods,
    "models": models,
    "fused_ops": fused_ops,
    "platform_readers": platform_readers,
    "plugin_loaders": plugin_loaders,
}


def fields(resolver: Resolver, class_path: str) -> Table:
    """The annotated fields of a class, from the cache where `use_cache` found one."""
    return _kept(resolver, "fields", class_path, lambda: fields_of(resolver, class_path))


def inventory(resolver: Resolver, table: str) -> Table:
    """One table of a release, from the cache where `use_cache` found one."""
    return _kept(resolver, "inventory", table, lambda: TABLES[table](resolver))


def _kept(resolver: Resolver, kind: str, key: str, make: Callable[[], Table]) -> Table:
    def rows() -> dict[str, Any]:
        return {name: row_of(item) for name, item in make().items()}

    return {name: item_of(row) for name, row in resolver.recall(kind, key, rows).items()}

"""YAML documents as typed models that remember where each of their parts stands."""

from kunlun_adapt.documents.adaptation_recipe import AdaptationRecipe
from kunlun_adapt.documents.catalog import Catalog, HookEntry, load_catalog
from kunlun_adapt.documents.fields import API_VERSION, Served, in_range
from kunlun_adapt.documents.loader import RawDocument, load_bytes, load_file, resolve_scalar
from kunlun_adapt.documents.operator_recipe import GOLDEN, Bind, OperatorRecipe, Prepare, Tier
from kunlun_adapt.documents.parse import KINDS, Document, parse
from kunlun_adapt.documents.platform_map import (
    Hook,
    HookAt,
    OutOfTreeModel,
    PlatformMap,
    ServerArg,
    Shim,
    Spelling,
)

__all__ = [
    "API_VERSION",
    "GOLDEN",
    "KINDS",
    "AdaptationRecipe",
    "Bind",
    "Catalog",
    "Document",
    "Hook",
    "HookAt",
    "HookEntry",
    "OperatorRecipe",
    "OutOfTreeModel",
    "PlatformMap",
    "Prepare",
    "RawDocument",
    "Served",
    "ServerArg",
    "Shim",
    "Spelling",
    "Tier",
    "in_range",
    "load_bytes",
    "load_catalog",
    "load_file",
    "parse",
    "resolve_scalar",
]

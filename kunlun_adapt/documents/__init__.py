"""YAML documents as typed models that remember where each of their parts stands."""

from .adaptation_recipe import AdaptationRecipe
from .catalog import (
    ENVIRONMENT,
    MAP_FILE,
    OPERATORS,
    RECIPES,
    Catalog,
    find_workspace,
    load_catalog,
    workspace_files,
)
from .fields import API_VERSION, Served, in_range
from .loader import RawDocument, load_bytes, load_file, resolve_scalar
from .operator_recipe import Bind, OperatorRecipe, Prepare, Tier
from .parse import KINDS, Document, parse
from .platform_map import Hook, HookAt, PlatformMap, ServerArg, Shim, Spelling

__all__ = [
    "API_VERSION",
    "ENVIRONMENT",
    "KINDS",
    "MAP_FILE",
    "OPERATORS",
    "RECIPES",
    "AdaptationRecipe",
    "Bind",
    "Catalog",
    "Document",
    "Hook",
    "HookAt",
    "OperatorRecipe",
    "PlatformMap",
    "Prepare",
    "RawDocument",
    "Served",
    "ServerArg",
    "Shim",
    "Spelling",
    "Tier",
    "find_workspace",
    "in_range",
    "load_bytes",
    "load_catalog",
    "load_file",
    "parse",
    "resolve_scalar",
    "workspace_files",
]

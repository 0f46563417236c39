"""The Adaptation Recipe: what one model or feature needs. Loadable; its checks come later."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from kunlun_adapt.documents.fields import ANY, Identifier, Range, Slug, Strict, Why
from kunlun_adapt.documents.platform_map import Hook


class AdaptationRecipe(Strict):
    """One model or feature; `runbook` and `acceptance` stay free-form until they are read.

    `hooks` are its own, bound beside those of the map whatever model is served: a worker binds
    before it knows its model. `bindings` names those of the map that it relies on.
    """

    api_version: Literal["kunlun-adapt/v1"] = Field(alias="apiVersion")
    kind: Literal["AdaptationRecipe"]
    name: Slug
    sglang: Range = ANY
    why: Why
    architectures: list[Identifier] = []
    quantization: list[Slug] = []
    features: list[Slug] = []
    operators: list[Identifier] = []
    bindings: list[str] = []
    hooks: list[Hook] = []
    parallel: dict[str, Any] = {}
    server_args: dict[str, Any] = {}
    environment: dict[str, str] = {}
    runbook: dict[str, Any] = {}
    acceptance: list[dict[str, Any]] = []

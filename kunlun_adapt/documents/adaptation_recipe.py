"""The Adaptation Recipe: what one model or feature needs. Loadable; its checks come later."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from kunlun_adapt.documents.fields import ANY, Identifier, Range, Slug, Strict, Why


class AdaptationRecipe(Strict):
    """One model or feature; `runbook` and `acceptance` stay free-form until they are read."""

    api_version: Literal["kunlun-adapt/v1"] = Field(alias="apiVersion")
    kind: Literal["AdaptationRecipe"]
    name: Slug
    sglang: Range = ANY
    why: Why
    architectures: list[Identifier] = []
    quantization: list[Slug] = []
    features: list[Slug] = []
    operators: list[Identifier] = []
    hooks: list[Slug] = []
    parallel: dict[str, Any] = {}
    server_args: dict[str, Any] = {}
    environment: dict[str, str] = {}
    runbook: dict[str, Any] = {}
    acceptance: list[dict[str, Any]] = []

"""The Operator Recipe: one mathematical operation, its kernels and where upstream calls it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from kunlun_adapt.documents.fields import (
    ANY,
    ArgPath,
    Identifier,
    Impl,
    Range,
    Scalar,
    Served,
    Slug,
    Standing,
    Strict,
    Target,
    Why,
)
from kunlun_adapt.documents.platform_map import Accept, Exclusion

GOLDEN = "golden"
"""The name of the tier that is the operation's own golden."""

When = dict[str, Scalar | list[Scalar]]
Case = Scalar | list[Scalar | list[Scalar]]
Capture = Literal["safe", "eager"]


class Bind(Strict):
    """Where upstream calls the operator in some releases, and how its call maps to our params.

    A target outside sglang says which shim (`provided_by`) or distribution (`package`) has it. The
    style `launcher` stands for a Triton kernel that upstream launches as `kernel[grid](...)`.
    """

    target: Target
    sglang: Range = ANY
    style: Literal["function", "oot_forward", "launcher"]
    status: Standing = "active"
    args: dict[Identifier, ArgPath] = {}
    provided_by: Target | None = None
    package: str | None = None
    watch: list[Target] = []
    accepts: list[Accept] = []
    ignores: dict[Identifier, Scalar] | list[Identifier] = []
    returns: Impl | None = None
    id: Slug | None = None
    required: bool = True
    excluded: list[Exclusion] = []
    served: Served | None = None


class Prepare(Strict):
    """What must be done to an argument before a kernel takes it."""

    do: Literal["contiguous", "cast"]
    to: Identifier | None = None

    @model_validator(mode="after")
    def _cast_says_to_what(self) -> Prepare:
        if (self.do == "cast") != (self.to is not None):
            raise PydanticCustomError("prepare", "cast needs `to`, and only cast takes it")
        return self


class Tier(Strict):
    """A kernel and the condition under which it serves."""

    name: Slug
    impl: Impl | None = None
    needs: list[Target] = []
    when: When = {}
    prepare: dict[Identifier, Literal["contiguous"] | Prepare] = {}
    fixed: dict[Identifier, Scalar] = {}
    fallback: bool = False
    overlap: dict[Identifier, str] = {}
    weights: Slug | None = None
    capture: Capture | None = None
    why: str | None = None


class Failure(Strict):
    """A known failure of a kernel and how it is avoided."""

    id: Slug
    when: When
    symptom: str
    avoid: str
    seen_in: str | None = None


class Fusion(Strict):
    """Which plain operations a fused operator covers."""

    covers: list[Slug]
    why: Why


class Precision(Strict):
    """How close to the golden a kernel must come in one dtype."""

    cosine: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    max_abs: float | None = Field(None, ge=0, allow_inf_nan=False)
    exact: bool = False


class OperatorRecipe(Strict):
    """One operator.

    A planned one says what upstream calls and which vendor ops will serve it; its golden and the
    `impl` of its tiers may still be open. `weights` of a tier names the layout in which it takes
    the weights.

    A tier that is captured otherwise than the operator says so itself. A `traced` operator is one
    node of the graph that torch.compile makes of upstream's code; nothing looks into it, so that
    `fake` (the golden, where it is left out) says what its results look like.
    """

    api_version: Literal["kunlun-adapt/v1"] = Field(alias="apiVersion")
    kind: Literal["OperatorRecipe"]
    name: Identifier
    family: Slug
    why: Why
    status: Standing = "active"
    golden: Impl | None = None
    params: dict[Identifier, str] = Field(min_length=1)
    returns: str
    mutates: list[Identifier] = []
    capture: Capture
    traced: bool = False
    fake: Impl | None = None
    binds: list[Bind] = []
    serves: list[str] = []
    served: Served | None = None
    reads: dict[Identifier, ArgPath] = {}
    derive: dict[Identifier, str] = {}
    kernels: list[Tier] = []
    otherwise: Literal["error"]
    fusion: Fusion | None = None
    failures: list[Failure] = []
    precision: dict[Identifier, Precision] = {}
    cases: dict[Identifier, list[Case]] = {}

    @field_validator("cases", mode="after")
    @classmethod
    def _shapes(cls, cases: dict[str, list[Case]]) -> dict[str, list[Case]]:
        """A shape has dimensions, and none of them is negative."""
        for name, listed in cases.items():
            if not listed:
                raise PydanticCustomError("cases", "{name} has no case", {"name": repr(name)})
            for shape in (case for case in listed if isinstance(case, list)):
                if not shape or any(isinstance(n, (int, float)) and n < 0 for n in shape):
                    raise PydanticCustomError(
                        "cases",
                        "{name} has the case {shape}, which is no shape",
                        {"name": repr(name), "shape": str(shape)},
                    )
        return cases

    @model_validator(mode="after")
    def _implemented(self) -> OperatorRecipe:
        if self.status == "planned":
            return self
        if not self.kernels:
            raise PydanticCustomError("operator", "an operator needs kernels, unless it is planned")
        for tier in self.kernels:
            if tier.impl is None and tier.name != GOLDEN:
                raise PydanticCustomError(
                    "tier",
                    "tier {name} needs impl (only the golden tier has its own)",
                    {"name": repr(tier.name)},
                )
        return self

    @model_validator(mode="after")
    def _traceable(self) -> OperatorRecipe:
        """Tell what a traced operator hands back: nothing, what it writes into, or new tensors."""
        if not self.traced:
            if self.fake is not None:
                raise PydanticCustomError("traced", "fake is for an operator that is traced")
            return self
        optional = {p for p in self.mutates if "None" in self.params.get(p, "")}
        if len(self.mutates) > 1 and (optional or self.returns != "None"):
            raise PydanticCustomError(
                "traced",
                "a traced operator that writes into several parameters needs them all and returns "
                "None",
            )
        if optional and self.returns == "None":
            raise PydanticCustomError(
                "traced", "a traced operator may lack what it writes into only if it returns it"
            )
        if self.fake is not None and self.returned is not None:
            raise PydanticCustomError("traced", "fake is for an operator that makes its results")
        return self

    @property
    def returned(self) -> str | None:
        """What a traced call hands back that is no new tensor: "None", or what it writes into."""
        if self.returns == "None":
            return "None"
        written = [p for p in self.mutates if "None" not in self.params.get(p, "")]
        return written[0] if written else None

    def captured(self, tier: Tier) -> Capture:
        """Return whether a tier may run while a graph is captured."""
        return tier.capture or self.capture

    @model_validator(mode="after")
    def _bound_somewhere(self) -> OperatorRecipe:
        if not self.binds and not self.serves:
            raise PydanticCustomError("operator", "an operator needs binds or serves")
        return self

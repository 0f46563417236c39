"""The Platform Map: how SGLang's platform interface and the rest of upstream meet the device."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from kunlun_adapt.documents.fields import (
    ANY,
    PROFILES,
    ArgPath,
    Date,
    Folder,
    Identifier,
    Impl,
    Process,
    ProfileName,
    Range,
    Scalar,
    Served,
    Slug,
    Standing,
    Strict,
    Target,
    Why,
)


class ImplAt(Strict):
    """What implements a member of the platform class in some releases."""

    sglang: Range
    impl: Impl


Given = Impl | list[ImplAt]
ByProfile = dict[ProfileName, Given]


class Probe(Strict):
    """The module whose presence means that the device runtime is there."""

    module: Target


class Profile(Strict):
    """What stands in for the device: the names that upstream sees."""

    reports_as: str
    dispatch_key: Identifier
    distributed_backend: str


class Device(Strict):
    """The device's name, how it is found and what its profiles report.

    `base` is a platform class written by hand, derived from upstream's: the generated class derives
    from it, and an entry of `methods` that names a method of it is called on the platform.
    """

    name: Slug
    probe: Probe
    base: Impl | None = None
    profiles: dict[ProfileName, Profile]

    @field_validator("base", mode="after")
    @classmethod
    def _in_its_module(cls, base: str | None) -> str | None:
        if base is not None and "." in base.partition(":")[2]:
            raise PydanticCustomError(
                "base", "{base} stands in another class; name one of a module", {"base": repr(base)}
            )
        return base


class AttentionBackendFactory(Strict):
    """The default attention backend: its name and the class behind the name."""

    name: Slug
    cls: Impl = Field(alias="class")


class Factories(Strict):
    """Classes and names that the platform hands to upstream."""

    attention_backend: AttentionBackendFactory | None = None
    kv_pool: dict[Identifier, Impl] = {}
    paged_allocator: Impl | None = None
    graph_runner: Given | ByProfile | None = None
    piecewise_backend: Impl | None = None
    compile_backend: str | None = None
    quantization: dict[Slug, Impl] = {}


class Spelling(Strict):
    """How one key is spelled in some releases: a method, a field, or a call."""

    sglang: Range = ANY
    method: Identifier | None = None
    field: Target | None = None
    call: Target | None = None
    argument: dict[Identifier, Scalar] = {}
    loads_plugins: bool = True

    @model_validator(mode="after")
    def _one_of(self) -> Spelling:
        given = [n for n in ("method", "field", "call") if getattr(self, n) is not None]
        if len(given) != 1:
            raise PydanticCustomError("spelling", "give exactly one of method, field, call")
        if not self.loads_plugins and self.call is None:
            raise PydanticCustomError("spelling", "loads_plugins speaks of what a process calls")
        return self


class ServerArg(Strict):
    """A server argument that the platform sets: `default` where the user left it, or `force`."""

    arg: Identifier
    status: Standing = "active"
    default: Scalar | list[Scalar] = None
    force: Scalar | list[Scalar] = None
    when: dict[str, Scalar | list[Scalar]] = {}
    profiles: list[ProfileName] = list(PROFILES)
    sglang: Range = ANY
    why: Why

    @model_validator(mode="after")
    def _one_of(self) -> ServerArg:
        if (self.default is None) == (self.force is None):
            raise PydanticCustomError("server_arg", "give exactly one of default, force")
        return self


class EnvironmentVariable(Strict):
    """An environment variable that gets a default before anything reads it.

    Without a default it is the user's to set; it is listed so that its meaning stands in one place.
    """

    name: Identifier
    default: str | None = None
    status: Standing = "active"
    profiles: list[ProfileName] = list(PROFILES)
    sglang: Range = ANY
    why: Why


class Shim(Strict):
    """A module that must exist before upstream imports it.

    A planned one may leave open what provides it.
    """

    module: Target
    provide: Target | None = None
    shadows: bool = False
    status: Standing = "active"
    profiles: list[ProfileName] = list(PROFILES)
    sglang: Range = ANY
    required: bool = True
    served: Served | None = None
    why: Why

    @model_validator(mode="after")
    def _provided(self) -> Shim:
        if self.provide is None and self.status == "active":
            raise PydanticCustomError("shim", "a shim needs provide, unless its status is planned")
        return self


class Readback(Strict):
    """The registry that must hold what a `register` hook registered, and under which key.

    Without a key it is the first of the hook's values.
    """

    target: Target
    key: Scalar = None


class HookAt(Strict):
    """Where a hook binds in some releases, and how its call is read."""

    sglang: Range = ANY
    target: Target
    readback: Readback | None = None
    args: dict[Identifier, ArgPath] = {}
    ignores: dict[Identifier, Scalar] | list[Identifier] = []
    provided_by: Target | None = None
    package: str | None = None
    watch: list[Target] = []


class Accept(Strict):
    """A warning about a binding that was looked at and taken as it is, and the reason.

    It is then reported as information only. Errors cannot be accepted. Those at the top of the map
    speak of the platform itself and of what belongs to no hook and no operator.
    """

    code: Annotated[str, Field(pattern=r"^KA[0-9]{3}$")]
    sglang: Range = ANY
    why: Why


HookType = Literal["before", "after", "around", "replace", "set", "extend", "add", "register"]


class Exclusion(Strict):
    """Releases inside the claim for which a binding is left out, and the reason."""

    sglang: Range
    why: Why


class Hook(Strict):
    """A binding that changes upstream code from outside.

    A planned one is checked against upstream like any other and may leave open what implements it.
    `watch` names upstream functions that it depends on without binding them, here or for the
    releases of one entry of `at`; `runs_after` names hooks that are applied before it where several
    change one call: it wraps what they left. An implementation `takes` the `call` through which the
    mapped arguments are read, or upstream's own `arguments` in the form that HookRegistry passes.
    """

    id: Slug
    why: Why
    family: Slug = "hook"
    status: Standing = "active"
    type: HookType
    impl: Impl | None = None
    value: Scalar | list[Scalar] = None
    key: Scalar = None
    takes: Literal["call", "arguments"] = "call"
    process: list[Process] | None = None
    profiles: list[ProfileName] = list(PROFILES)
    at: list[HookAt] = Field(min_length=1)
    required: bool = True
    on_missing: Literal["error", "skip"] = "error"
    excluded: list[Exclusion] = []
    repair: list[Target] = []
    watch: list[Target] = []
    runs_after: list[Slug] = []
    accepts: list[Accept] = []
    served: Served | None = None
    remove_when: str | None = None

    @model_validator(mode="after")
    def _says_what(self) -> Hook:
        takes_value = self.type in ("set", "extend", "register")
        open_ = self.status == "planned"
        says = self.impl is not None or (takes_value and "value" in self.model_fields_set)
        if not says and not open_:
            wanted = "impl or value" if takes_value else "impl"
            raise PydanticCustomError("hook", f"a hook of type {self.type} needs {wanted}")
        if self.type in ("set", "add", "extend") and any(a.args or a.ignores for a in self.at):
            raise PydanticCustomError("hook", f"a hook of type {self.type} takes no args")
        if self.takes == "arguments":
            if self.type not in ("before", "after", "around", "replace"):
                raise PydanticCustomError("hook", f"a hook of type {self.type} takes no arguments")
            if any(a.args or a.ignores for a in self.at):
                raise PydanticCustomError(
                    "hook", "a hook that takes upstream's arguments as they are maps none of them"
                )
        if self.key is not None and (self.type != "extend" or isinstance(self.value, list)):
            raise PydanticCustomError(
                "hook", "key is for a hook of type extend that puts one entry into a dict"
            )
        shows = self.type == "register"
        if any(a.readback is not None and not shows for a in self.at) or (
            shows and not open_ and any(a.readback is None for a in self.at)
        ):
            raise PydanticCustomError(
                "hook", "readback says where a hook of type register shows; no other type has it"
            )
        if self.repair and self.type in ("add", "register"):
            raise PydanticCustomError("hook", f"a hook of type {self.type} repairs no references")
        return self


class LandingPoint(Strict):
    """Which feature touches the device, and how it is met."""

    feature: Slug
    lands_in: Literal["factory", "hook", "operator", "server_args", "environment", "none"]
    bindings: list[str] = []
    why: Why


class Conflict(Strict):
    """Bindings that must not be combined, and what was decided.

    `keep` names the side that stays: where it is bound, no other side may be. Without it the
    decision lets them all stay.
    """

    between: list[str]
    keep: str | None = None
    decision: str
    recorded: Date

    @model_validator(mode="after")
    def _keeps_a_side(self) -> Conflict:
        if self.keep is not None and self.keep not in self.between:
            raise PydanticCustomError(
                "conflict", "keep names {keep}, which is not in between", {"keep": repr(self.keep)}
            )
        return self


class OutOfTreeModel(Strict):
    """A model class of our own for an architecture.

    Upstream's table of model classes takes it as soon as there is one (`interface.models`); one
    that upstream has for the same architecture has to be replaced on purpose.
    """

    architecture: Identifier
    cls: Impl = Field(alias="class")
    replaces: bool = False
    sglang: Range = ANY
    required: bool = True
    why: Why


class Communication(Strict):
    """Collectives that are warmed up before the first real one.

    `hook` names the hook that does it; `interface.group.<name>` says what hands out each group.
    """

    warmup_bytes: int = Field(gt=0)
    groups: list[Literal["tp", "ep", "pp", "dp"]] = Field(min_length=1)
    hook: Slug
    why: Why


class LeftAtDefault(Strict):
    """A platform member that we deliberately leave as upstream has it."""

    member: Target
    sglang: Range = ANY
    why: Why


class PlatformMap(Strict):
    """The whole Platform Map.

    `sources` are folders, as seen from the workspace, that hold packages which implement its
    bindings and need not be installed for their source to be checked.
    """

    api_version: Literal["kunlun-adapt/v1"] = Field(alias="apiVersion")
    kind: Literal["PlatformMap"]
    name: Identifier
    sglang: Range
    sources: list[Folder] = []
    device: Device
    factories: Factories = Factories()
    methods: dict[Identifier, Given | ByProfile] = {}
    capabilities: dict[Identifier, bool | dict[ProfileName, bool]] = {}
    left_at_default: list[LeftAtDefault] = []
    interface: dict[str, list[Spelling]] = {}
    server_args: list[ServerArg] = []
    environment: list[EnvironmentVariable] = []
    shims: list[Shim] = []
    models: list[OutOfTreeModel] = []
    communication: Communication | None = None
    hooks: list[Hook] = []
    served: dict[str, Served] = {}
    landing_points: list[LandingPoint] = []
    conflicts: list[Conflict] = []
    stack: list[dict[str, str]] = []
    accepts: list[Accept] = []

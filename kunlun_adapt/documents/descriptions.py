"""What each key of a document means, in a line: for the published schemas and the reference.

They stand here and not in the models, since every command loads the models and few tell of them.
"""

from __future__ import annotations

from pydantic import BaseModel

COMMON: dict[str, str] = {
    "apiVersion": "The version of the document format.",
    "kind": "What the document is.",
    "sglang": "The releases for which this holds: a PEP 440 range such as >=0.5.17,<0.5.24.",
    "why": "The reason, for whoever reviews the line or wonders whether it may go.",
    "status": "`planned` where the implementation is still to come: checked, and not bound.",
    "profiles": "Which stand-ins for the device it is for; all of them unless given.",
    "served": "Whether the simulator's server really runs it.",
    "required": "Whether a process ends where it cannot be bound.",
    "excluded": "Releases inside the claim for which it is left out, with the reason.",
    "accepts": "Warnings that were looked at and taken as they are, with the reason.",
    "watch": "Upstream functions that it depends on without binding them.",
    "provided_by": "The shim that has the target, where it is not SGLang's.",
    "package": "The distribution that has the target, where it is not SGLang's.",
    "ignores": "Upstream parameters that may be ignored, with the only value that may.",
}
"""Keys that mean the same wherever they stand."""

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "PlatformMap": {
        "name": "The name of the platform and of its package.",
        "sglang": "The releases that the map claims: those on which it was verified.",
        "sources": "Folders, seen from the workspace, with the source of what implements it.",
        "device": "The device, how it is found, and what its profiles report.",
        "factories": "Classes and names that the platform hands to upstream.",
        "methods": "The rest of the platform class: a function for each, by profile or release.",
        "capabilities": "What the device can do: a flag for each, or one per profile.",
        "left_at_default": "Members of upstream's platform that are deliberately not given.",
        "interface": "How each key of the map is spelled in each release.",
        "server_args": "Server arguments that the platform sets.",
        "environment": "Environment variables, with defaults set before anything reads them.",
        "shims": "Modules that must exist before upstream imports them.",
        "models": "Model classes of our own for an architecture.",
        "communication": "Collectives that are warmed up before the first real one.",
        "hooks": "Bindings that change upstream code from outside.",
        "served": "For keys of the map: whether the simulator's server really runs them.",
        "landing_points": "Which feature touches the device where, and how it is met.",
        "conflicts": "Bindings that must not be combined, and what was decided.",
        "stack": "Version combinations that were verified together.",
        "accepts": "Accepted warnings about the platform itself.",
    },
    "Device": {
        "name": "What the device is called.",
        "probe": "What tells that the device's runtime is there.",
        "base": "A platform class written by hand, from which the generated one derives.",
        "profiles": "What upstream sees of the device, by who stands in for it.",
    },
    "Probe": {"module": "The module whose presence means that the runtime is installed."},
    "Profile": {
        "reports_as": "The device type that upstream sees, such as cuda or cpu.",
        "dispatch_key": "The dispatch key under which forwards and custom ops are registered.",
        "distributed_backend": "The backend of torch.distributed, such as nccl or gloo.",
    },
    "Factories": {
        "attention_backend": "The default attention backend.",
        "kv_pool": "The classes of the key-value pools, by what they hold.",
        "paged_allocator": "The class that hands out pages.",
        "graph_runner": "The class that captures and replays graphs.",
        "piecewise_backend": "The class that captures piecewise graphs.",
        "compile_backend": "The name of the backend for torch.compile.",
        "quantization": "The quantization methods, by name.",
    },
    "AttentionBackendFactory": {
        "name": "The name under which it is registered and asked for.",
        "class": "The class behind the name.",
    },
    "LeftAtDefault": {"member": "The member of upstream's platform, or the key of the map."},
    "Spelling": {
        "method": "The platform's method that hands the value out.",
        "field": "The platform's field that holds the value.",
        "call": "The upstream object that is meant.",
        "argument": "Arguments that tell this key apart where several share a method.",
        "loads_plugins": (
            "Of a `process.` key: whether SGLang loads plugins in this process. Where it does not, "
            "our hooks are registered as the process begins with what `call` names."
        ),
    },
    "ServerArg": {
        "arg": "The name of the argument, as the class of server arguments has it.",
        "default": "The value where the user left the argument at its default.",
        "force": "The value whatever the user gave.",
        "when": "Conditions on other server arguments.",
    },
    "EnvironmentVariable": {
        "name": "The variable.",
        "default": "The value where the user set none; without it the variable is only listed.",
    },
    "Shim": {
        "module": "The module that upstream will import.",
        "provide": "The module of ours that stands in.",
        "shadows": "Whether it stands in also where the real package is installed.",
    },
    "Served": {"simulator": "Whether it does."},
    "OutOfTreeModel": {
        "architecture": "The architecture's name in a model's configuration.",
        "class": "The class that serves it.",
        "replaces": "Whether it takes the place of one that upstream has for the architecture.",
    },
    "Communication": {
        "warmup_bytes": "The size of the collective that warms up.",
        "groups": "The process groups to warm up, by the names that `interface.group` spells.",
        "hook": "The hook that warms up, once upstream's groups exist.",
    },
    "Hook": {
        "id": "The name of the binding.",
        "family": "What it belongs to, for lists and counts.",
        "type": "How upstream is changed: around a call, or a value, member or registry.",
        "impl": "The function or object of ours.",
        "value": "The value that is set, added or registered, in place of an implementation.",
        "key": "The key under which a hook of type extend puts its one entry into a dict.",
        "takes": "What the implementation gets: a `call`, or upstream's arguments as they are.",
        "process": "The processes that need it; all of them where it is left out.",
        "at": "Where it binds, by releases.",
        "on_missing": "What it means that the target does not exist.",
        "repair": "References taken earlier that are changed as well.",
        "runs_after": "Hooks that are applied before it where several change one call.",
        "remove_when": "What has to happen upstream for the hook to go.",
    },
    "ImplAt": {"impl": "What implements it there."},
    "HookAt": {
        "target": "The upstream symbol, by the path at which upstream looks it up.",
        "readback": "The registry in which a hook of type register must show.",
        "args": "Our names for upstream's parameters.",
    },
    "Readback": {
        "target": "The registry.",
        "key": "The key in it; the first of the hook's values where it is left out.",
    },
    "Accept": {"code": "The code of the warning."},
    "LandingPoint": {
        "feature": "The feature.",
        "lands_in": "What meets it.",
        "bindings": "The bindings that do.",
    },
    "Conflict": {
        "between": "The bindings.",
        "keep": "The side that stays; without it all may.",
        "decision": "What was decided.",
        "recorded": "When, as YYYY-MM-DD.",
    },
    "OperatorRecipe": {
        "name": "The operator, whatever upstream calls it in a given release.",
        "family": "What it belongs to, for lists and counts.",
        "golden": "The operation in plain PyTorch: the yardstick, and the last resort.",
        "params": "Its own parameters: Tensor[rows, 2*d], int, float, bool, str or object.",
        "returns": "What it returns, in the same form.",
        "mutates": "Parameters that it writes into.",
        "capture": "Whether it may run inside graph capture.",
        "traced": "Whether torch.compile takes it as one op, without looking into it.",
        "fake": "What makes the results of a traced call without computing; else the golden.",
        "binds": "Where upstream calls it.",
        "serves": "Keys of the map whose classes call it.",
        "reads": "Names for attributes of object parameters that conditions read.",
        "derive": "Named formulas over what conditions may read.",
        "kernels": "Its tiers, in order: the first whose condition holds serves.",
        "otherwise": "What a call gets that no tier serves.",
        "fusion": "Which plain operations it covers.",
        "failures": "Known failures of kernels, and how they are avoided.",
        "precision": "How close to the golden a kernel must come, by dtype.",
        "cases": "Shapes to align on, by parameter.",
    },
    "Bind": {
        "target": "The upstream symbol, by the path at which upstream looks it up.",
        "style": "How upstream calls it: as a function, by class, or as a Triton launch.",
        "args": "Where each of our parameters comes from in upstream's call.",
        "returns": "A function of ours that turns the result into upstream's.",
        "id": "The binding's name, where the target's last name is taken.",
    },
    "Exclusion": {"sglang": "The releases that are left out."},
    "Tier": {
        "name": "The tier's name; `golden` stands for the operator's golden.",
        "impl": "The kernel's adapter.",
        "needs": "Vendor ops that must exist.",
        "when": "The condition under which it serves; without one it serves all.",
        "prepare": "What must be done to an argument first.",
        "fixed": "Constants for this tier's kernel.",
        "fallback": "Whether a call that gets here is reported as a fallback.",
        "overlap": "What runs on which cluster at once.",
        "weights": "The layout in which it takes the weights.",
        "capture": "Whether it may run inside graph capture, where it differs from the operator.",
    },
    "Prepare": {"do": "What is done.", "to": "The dtype to cast to."},
    "Fusion": {"covers": "The operations."},
    "Failure": {
        "id": "The failure's name.",
        "when": "The calls that show it.",
        "symptom": "What is seen.",
        "avoid": "How it is avoided.",
        "seen_in": "Where it was seen.",
    },
    "Precision": {
        "cosine": "The least cosine similarity.",
        "max_abs": "The greatest absolute difference.",
        "exact": "Whether every bit must be the same.",
    },
    "AdaptationRecipe": {
        "name": "The model or feature.",
        "architectures": "The architectures that it is about.",
        "quantization": "The quantization methods that it is served with.",
        "features": "The features that it uses.",
        "operators": "The operators that it needs.",
        "bindings": "Bindings of the map that it relies on.",
        "hooks": "Its own hooks, bound whatever model is served.",
        "parallel": "How it is laid out over devices.",
        "server_args": "Server arguments to serve it with.",
        "environment": "Environment variables to serve it with.",
        "runbook": "How it is validated.",
        "acceptance": "The records of its validation.",
    },
}  # fmt: skip
"""What the keys of each model mean, by the model's name."""


def described(model: type[BaseModel], key: str) -> str | None:
    """Return what a key of a model means, or None where nobody has said it."""
    return DESCRIPTIONS.get(model.__name__, {}).get(key) or COMMON.get(key)

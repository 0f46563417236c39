"""Turn what a plugin does into the entries of a Platform Map and of operator recipes."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from typing import Any

from kunlun_adapt.evolve.adopt.events import Condition, Event, Place
from kunlun_adapt.evolve.adopt.left import Left, Reason
from kunlun_adapt.evolve.adopt.models import model_classes
from kunlun_adapt.evolve.adopt.names import (
    Ids,
    identifier,
    implementation,
    is_dotted,
    kebab,
    owner_is_there,
    role,
)
from kunlun_adapt.evolve.adopt.reading import Reading
from kunlun_adapt.evolve.adopt.registries import registry_of
from kunlun_adapt.evolve.adopt.values import (
    Const,
    Function,
    Made,
    ModuleValue,
    Unknown,
    Value,
    plain,
    text_of,
)
from kunlun_adapt.upstream import Missing, Resolver, Symbol

Entry = dict[str, Any]
_VALUES = ("constant", "attribute", "external", "lazy", "property", "module")
_MODELS = "sglang.srt.models."
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Taken:
    """One binding that was taken over: its id, its target, and where the plugin states it."""

    id: str
    kind: str
    target: str
    file: str
    line: int
    status: str = "active"


@dataclass(slots=True)
class Bound:
    """The parts of the documents that come from what the plugin does."""

    hooks: list[Entry] = field(default_factory=list)
    shims: list[Entry] = field(default_factory=list)
    models: list[Entry] = field(default_factory=list)
    environment: list[Entry] = field(default_factory=list)
    operators: list[Entry] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


def bind(reading: Reading, resolver: Resolver, claim: str) -> Bound:
    """Return the entries for every event; `claim` is the range for which they hold."""
    maker = _Maker(reading, resolver, claim)
    # A target in a stand-in is the stand-in's: these have to be known first.
    for event in sorted(reading.events, key=lambda e: e.how != "module"):
        maker.make(event)
    maker.conditions()
    return maker.bound


class _Maker:
    def __init__(self, reading: Reading, resolver: Resolver, claim: str) -> None:
        self._reading = reading
        self._resolver = resolver
        self._claim = claim
        self._ids = Ids()
        self._operators: set[str] = set()
        self._standins: dict[str, Entry] = {}
        self._hooked: dict[tuple[str, str], Entry] = {}
        self._under: dict[Condition, list[str]] = {}
        self.bound = Bound()

    def make(self, event: Event) -> None:
        make = {
            "hook": self._hook,
            "assign": self._assign,
            "module": self._module,
            "oot": self._oot,
            "register": self._register,
            "extend": self._extend,
            "environment": self._environment,
            "model": self._model,
            "models": self._models,
        }[event.how]
        make(event)

    def conditions(self) -> None:
        """Say once of each condition what hangs on it."""
        for condition, ids in self._under.items():
            what = f"holds only where `{condition.text}`"
            place = condition.place
            self.bound.left.append(
                Left("condition", place.file, place.line, what, tuple(dict.fromkeys(ids)))
            )

    def _leave(self, reason: Reason, event: Event, what: str, *ids: str) -> None:
        found = Left(reason, event.place.file, event.place.line, what, ids)
        if found not in self.bound.left:
            self.bound.left.append(found)

    def _unnamed(self, event: Event) -> None:
        shown = event.target or event.shown
        self._leave("name", event, f"the target is made at run time: {shown}")

    def _hook(self, event: Event) -> None:
        if event.target is None or not is_dotted(event.target):
            self._unnamed(event)
            return
        entry: Entry = {"type": event.kind}
        self._with_implementation(entry, event)
        if role(event.value, self._resolver) != "class":
            entry["takes"] = "arguments"
        self._add_hook(event.target, entry, event)

    def _assign(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            if event.called or role(event.value, self._resolver) in ("function", "class"):
                self._unnamed(event)
            return
        what = role(event.value, self._resolver)
        if not event.called and what not in ("function", "class"):
            text = f"{event.shown} is assigned by code that nothing here starts"
            self._leave("unreached", event, text)
            return
        if target.partition(".")[0] in sys.stdlib_module_names:
            self._leave("unsupported", event, f"changes the standard library: {target}")
            return
        entry = self._assignment(target, what, event)
        if entry is not None:
            self._add_hook(target, entry, event)

    def _assignment(self, target: str, what: str, event: Event) -> Entry | None:
        """Return the hook that says what an assignment does; None where none can."""
        upstream = target.startswith("sglang.")
        held = self._resolver.resolve(target) if upstream else None
        known, value = plain(event.value)
        kind = held.kind if isinstance(held, Symbol) else ""
        if isinstance(held, Missing) and owner_is_there(target, self._resolver):
            entry: Entry = {"type": "add"}
            if known or not self._names(event.value):
                self._leave("unsupported", event, f"gives upstream a new name: {event.shown} = …")
                return None
            self._with_implementation(entry, event)
            return entry
        if known:
            if not _storable(value):
                what = f"{event.shown} gets a value that YAML cannot hold"
                self._leave("unsupported", event, what)
                return None
            return {"type": "set", "value": value}
        replaces = what in ("function", "class") or (what == "unknown" and kind not in _VALUES)
        if not replaces or kind in _VALUES or (kind == "class" and what == "function"):
            entry = {"type": "set"}
            self._with_implementation(entry, event)
            return entry
        entry = {"type": "replace"}
        self._with_implementation(entry, event)
        if what != "class" and kind != "class":
            entry["takes"] = "arguments"
        return entry

    def _names(self, value: Value | None) -> bool:
        return implementation(value, self._resolver) is not None

    def _with_implementation(self, entry: Entry, event: Event) -> None:
        impl = implementation(event.value, self._resolver)
        if impl is not None:
            entry["impl"] = impl
        else:
            entry["status"] = "planned"

    def _add_hook(self, target: str, entry: Entry, event: Event) -> None:
        at: Entry = {"sglang": self._claim, "target": target}
        root = target.partition(".")[0]
        if root != "sglang":
            standin = next((m for m in self._standins if target.startswith(f"{m}.")), None)
            at |= {"provided_by": standin} if standin else {"package": root}
        if (event.kind != "decorator" and "readback" in entry) or "readback" in entry:
            at["readback"] = entry.pop("readback")
        twin = self._hooked.get((target, entry["type"]))
        if twin is not None and twin.get("impl") == entry.get("impl") and "value" not in entry:
            self._note_conditions(event, twin["id"])
            return
        id = self._ids.take(kebab(target) if root == "sglang" else f"{root}-{kebab(target)}")
        again = entry["type"] in ("replace", "set") and twin is not None
        if again or not event.called:
            entry["status"] = "planned"
        whole: Entry = {
            "id": id,
            "why": self._why(event),
            "family": slug_of(target),
        }
        whole |= {k: entry[k] for k in ("status", "type", "impl", "value", "takes") if k in entry}
        whole["at"] = [at]
        self._hooked.setdefault((target, entry["type"]), whole)
        self.bound.hooks.append(whole)
        self._took(id, "hook", target, event, whole.get("status", "active"))
        if "impl" not in entry and "value" not in entry:
            self._leave("implementation", event, _unnamed_why(event.value), id)
        if again and twin is not None:
            what = f"{target} is bound twice, by {twin['id']} too; this one is planned"
            self._leave("condition", event, what, id)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)

    def _took(self, id: str, kind: str, target: str, event: Event, status: str = "active") -> None:
        place = event.place
        self.bound.taken.append(Taken(id, kind, target, place.file, place.line, status))

    def _note_conditions(self, event: Event, id: str) -> None:
        for condition in event.conditions:
            self._under.setdefault(condition, []).append(id)

    def _why(self, event: Event) -> str:
        """Return the first line of what the implementation says of itself, and where it stands."""
        return why(event.value, event.place)

    def _module(self, event: Event) -> None:
        name = event.target
        if name is None or not is_dotted(f"x.{name}"):
            if event.called:
                self._unnamed(event)
            return
        if name in self._standins:
            self._note_conditions(event, f"shim/{name}")
            return
        entry: Entry = {"module": name}
        value = event.value
        provider = value.name if isinstance(value, ModuleValue) else None
        if provider is not None:
            entry["provide"] = provider
        if not event.weak:
            entry["shadows"] = True
        if provider is None or not event.called:
            entry["status"] = "planned"
        entry |= {"sglang": self._claim, "why": f"stands in for {name}, as {event.place} has it"}
        self._standins[name] = entry
        self.bound.shims.append(entry)
        id = f"shim/{name}"
        self._took(id, "shim", name, event, entry.get("status", "active"))
        if provider is None:
            what = "the stand-in is made at run time; move it into a module of its own"
            self._leave("implementation", event, what, id)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)

    def _oot(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            self._unnamed(event)
            return
        impl = implementation(event.value, self._resolver)
        leaf = target.rpartition(".")[2]
        name = base = identifier(kebab(leaf).replace("-", "_"))
        number = 2
        while name in self._operators:
            name, number = f"{base}_{number}", number + 1
        self._operators.add(name)
        params, args = self._parameters(event.value)
        planned = impl is None or not event.called
        recipe: Entry = {
            "apiVersion": "kunlun-adapt/v1",
            "kind": "OperatorRecipe",
            "name": name,
            "family": slug_of(target),
            "why": self._why(event),
            **({"status": "planned"} if planned else {}),
            "params": params,
            "returns": "object",
            "capture": "safe",
            "binds": [
                {"target": target, "sglang": self._claim, "style": "oot_forward", "args": args}
            ],
            **({"kernels": [{"name": "plugin", "impl": impl}]} if impl is not None else {}),
            "otherwise": "error",
        }
        self.bound.operators.append(recipe)
        id = f"{name}/{leaf}"
        self._took(id, "kernel", target, event, "planned" if planned else "active")
        if impl is None:
            self._leave("implementation", event, _unnamed_why(event.value), id)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)

    def _parameters(self, value: Value | None) -> tuple[dict[str, str], dict[str, str]]:
        """Return an operator's parameters, by the names that the implementation gives them."""
        if not isinstance(value, Function):
            return {"layer": "object"}, {"layer": "self"}
        given = value.node.args
        ordered = [*given.posonlyargs, *given.args]
        required = len(ordered) - len(given.defaults)
        params: dict[str, str] = {}
        args: dict[str, str] = {}
        for index, parameter in enumerate(ordered):
            name = parameter.arg
            params[name] = "object" if index < required else "object | None"
            args[name] = "self" if index == 0 else name
        return params or {"layer": "object"}, args

    def _register(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            self._unnamed(event)
            return
        found = registry_of(target, self._resolver)
        if found is None:
            what = f"calls {target}, which fills no table of upstream's that could be read back"
            if not isinstance(self._resolver.resolve(target), Symbol):
                what = f"calls {target}, which sglang {self._resolver.version} does not have"
            self._leave("unsupported", event, what)
            return
        values, impl, fault = self._registered(event)
        if fault:
            self._leave("implementation" if impl is None else "unsupported", event, fault)
        entry: Entry = {"type": "register", "readback": found}
        if values:
            entry["value"] = values
        if impl is not None:
            entry["impl"] = impl
        if impl is None or fault:
            entry["status"] = "planned"
        # Several registrations by one function are several hooks.
        self._hooked.pop((target, "register"), None)
        self._add_hook(target, entry, event)

    def _registered(self, event: Event) -> tuple[list[Any], str | None, str]:
        """Return the plain values and the implementation of a call, and what cannot be said."""
        values: list[Any] = []
        impls: list[str] = []
        fault = ""
        given = [*event.values, *event.keywords.values()]
        if event.value is not None:
            given.append(event.value)
        for value in given:
            known, content = plain(value)
            if known and isinstance(content, _PLAIN):
                values.append(content)
            elif (impl := implementation(value, self._resolver)) is not None:
                impls.append(impl)
            else:
                fault = _unnamed_why(value)
        if event.keywords:
            fault = f"passes {', '.join(event.keywords)} by name, which `register` does not do"
        if len(impls) > 1:
            fault = f"registers several objects at once: {', '.join(impls)}"
        return values, impls[0] if impls else None, fault

    def _extend(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            self._unnamed(event)
            return
        held = self._resolver.resolve(target)
        known = [plain(v) for v in event.values]
        storable = bool(known) and all(ok and isinstance(v, _PLAIN) for ok, v in known)
        if isinstance(held, Symbol) and held.kind not in ("constant", "attribute", "external"):
            if event.called:
                self._leave("unsupported", event, f"{event.shown}: {target} is no list")
            return
        if event.kind or not storable:
            what = f"{event.shown}: only plain values can be added to a list of upstream's"
            if event.kind == "entry":
                what = f"{event.shown} = …: an entry of a dict of upstream's"
            self._leave("unsupported", event, what)
            return
        self._add_hook(target, {"type": "extend", "value": [v for _, v in known]}, event)

    def _environment(self, event: Event) -> None:
        value = text_of(event.value)
        if event.target is None or not event.target.isidentifier() or value is None:
            if event.called:
                self._leave("name", event, f"an environment variable: {event.target or 'its name'}")
            return
        if any(e["name"] == event.target for e in self.bound.environment) or not event.called:
            return
        entry = {
            "name": event.target,
            "default": value,
            "sglang": self._claim,
            "why": f"set by {event.place}",
        }
        self.bound.environment.append(entry)
        id = f"environment/{event.target}"
        self._took(id, "environment", event.target, event)
        if not event.weak:
            what = "the plugin sets it whatever the user has set; here it is a default"
            self._leave("condition", event, what, id)
        self._note_conditions(event, id)

    def _model(self, event: Event) -> None:
        name = text_of(event.values[0]) if event.values else None
        impl = implementation(event.value, self._resolver)
        if name is None or impl is None or not name.isidentifier():
            self._unnamed(event)
            return
        self._add_model(name, impl, event)

    def _models(self, event: Event) -> None:
        """A package is registered: every class that its modules name as `EntryClass`."""
        package = text_of(event.values[0]) if event.values else None
        found = model_classes(self._reading, package) if package else []
        if not found:
            what = f"registers models of {package or 'a package made at run time'}"
            self._leave("name", event, what)
            return
        for name, impl in found:
            self._add_model(name, impl, event)

    def _add_model(self, architecture: str, impl: str, event: Event) -> None:
        if any(m["architecture"] == architecture for m in self.bound.models):
            return
        entry: Entry = {"architecture": architecture, "class": impl}
        definitions = self._resolver.index.definitions(architecture)
        if any(d.path.startswith(_MODELS) for d in definitions):
            entry["replaces"] = True
        entry |= {"sglang": self._claim, "why": self._why(event)}
        self.bound.models.append(entry)
        id = f"factory/models.{architecture}"
        self._took(id, "model", architecture, event)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)


def _storable(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(v, _PLAIN) for v in value)
    return isinstance(value, _PLAIN)


def _unnamed_why(value: Value | None) -> str:
    if isinstance(value, Function):
        return f"{value.label} stands inside a function; move it to its module, and name it in impl"
    if isinstance(value, Made):
        return f"it is made at run time, by {value.callee}"
    if isinstance(value, Unknown):
        return f"it is not known: {value.why}"
    if isinstance(value, Const):
        return f"it is the value {value.value!r}"[:120]
    return "nothing outside can name what implements it"


def slug_of(target: str) -> str:
    """Return the family of a target: the part of upstream that it belongs to."""
    parts = target.split(".")
    inner = [p for p in parts[:-1] if p not in ("sglang", "srt", "layers", "kernels", "ops")]
    plain_names = [p for p in inner if p.islower() or "_" in p]
    return (plain_names[0] if plain_names else parts[0]).replace("_", "-").strip("-") or "hook"


def why(value: Value | None, place: Place) -> str:
    """Return the reason for a binding as the plugin tells it."""
    node = getattr(value, "node", None)
    text = None
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        text = ast.get_docstring(node)
    first = (text or "").strip().partition("\n")[0].strip()
    printable = "".join(c for c in first if c.isprintable())[:120]
    return f"{printable} ({place})" if len(printable) > 4 else f"stated in {place}"

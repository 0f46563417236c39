"""Turn what a plugin does into the entries of a Platform Map and of operator recipes."""

from __future__ import annotations

import ast
import sys

from kunlun_adapt.evolve.adopt.events import Event
from kunlun_adapt.evolve.adopt.making import Bound, Entry
from kunlun_adapt.evolve.adopt.models import model_classes
from kunlun_adapt.evolve.adopt.names import (
    implementation,
    is_dotted,
    owner_is_there,
    role,
)
from kunlun_adapt.evolve.adopt.new_names import new_name
from kunlun_adapt.evolve.adopt.reading import Reading
from kunlun_adapt.evolve.adopt.registrations import PLAIN, Registrations
from kunlun_adapt.evolve.adopt.values import (
    External,
    ModuleValue,
    Wrapped,
    plain,
    storable,
    text_of,
)
from kunlun_adapt.upstream import Missing, Resolver, Symbol

_VALUES = ("constant", "attribute", "external", "lazy", "property", "module")
_MEMBERS = ("method", "classmethod", "staticmethod")
_MODELS = "sglang.srt.models."


def bind(reading: Reading, resolver: Resolver, claim: str) -> Bound:
    """Return the entries for every event; `claim` is the range for which they hold."""
    maker = _Bindings(reading, resolver, claim)
    maker.find_temporary()
    # A target in a stand-in is the stand-in's: these have to be known first.
    for event in sorted(reading.events, key=lambda e: e.how != "module"):
        maker.make(event)
    maker.conditions()
    return maker.bound


class _Bindings(Registrations):
    """Makes the entries for every event."""

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

    def find_temporary(self) -> None:
        """Find what is put back later: the assignments before that hold for a while only."""
        before: dict[str, list[Event]] = {}
        for event in self._reading.events:
            if event.how != "assign" or event.target is None:
                continue
            self._assigned_to.add(event.target)
            if event.kind == "back" and event.called:
                for one in before.pop(event.target, []):
                    self._temporary[id(one)] = event
            else:
                before.setdefault(event.target, []).append(event)

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
            elif event.kind == "named":
                text = f"{event.shown} is assigned by code that nothing here starts"
                self._leave("unreached", event, text)
            return
        what = role(event.value, self._resolver)
        if not event.called and what not in ("function", "class"):
            text = f"{event.shown} is assigned by code that nothing here starts"
            self._leave("unreached", event, text)
            return
        if target.partition(".")[0] in sys.stdlib_module_names:
            self._leave("unsupported", event, f"changes the standard library: {target}")
            return
        if event.kind == "back":
            if not event.called:
                self._leave("unreached", event, f"puts upstream's own {target} back")
            return
        entry = self._assignment(target, what, event)
        if entry is None:
            return
        fault = self._not_said(target, event)
        added = entry["type"] == "add"
        new = new_name(target, event.value, self._resolver) if added else None
        if fault or (new is not None and new.slip):
            entry["status"] = "planned"
        found = self._add_hook(target, entry, event)
        if new is not None and found is not None:
            self._leave("new", event, new.told(), found)
        if fault:
            self._leave("unsupported", event, fault, *([found] if found else []))

    def _not_said(self, target: str, event: Event) -> str:
        """Return why a hook would do something else than the assignment, "" where it would not."""
        back = self._temporary.get(id(event))
        if back is not None:
            return f"{target} is bound for a while only: {back.place} puts upstream's own back"
        how = event.value.how if isinstance(event.value, Wrapped) else ""
        held = self._resolver.resolve(target) if target.startswith("sglang.") else None
        kind = held.kind if isinstance(held, Symbol) else ""
        if how and how != "partial" and how != kind in _MEMBERS:
            # A hook keeps the kind that upstream's own has, and with it what is passed first.
            return f"makes a {how} of {target}, which is a {kind}"
        return ""

    def _assignment(self, target: str, what: str, event: Event) -> Entry | None:
        """Return the hook that says what an assignment does; None where none can."""
        upstream = target.startswith("sglang.")
        held = self._resolver.resolve(target) if upstream else None
        known, value = plain(event.value)
        kind = held.kind if isinstance(held, Symbol) else ""
        if isinstance(held, Missing) and owner_is_there(target, self._resolver):
            entry: Entry = {"type": "add"}
            # Upstream's own under a second name would be what is bound to the first by then.
            kept = isinstance(event.value, External) and event.value.name in self._assigned_to
            if known or kept or not self._names(event.value):
                new = new_name(target, event.value, self._resolver)
                near = f"; did you mean {new.near}?" if new.near else ""
                what = f"gives upstream a new name: {event.shown} = …{near}"
                self._leave("unsupported", event, what)
                return None
            self._with_implementation(entry, event)
            return entry
        if known and storable(event.value):
            return {"type": "set", "value": value}
        if known:
            if not self._names(event.value):
                what = f"{event.shown} gets a value that YAML cannot hold"
                self._leave("unsupported", event, what)
                return None
            entry = {"type": "set"}
            self._with_implementation(entry, event)
            return entry
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
            what = (
                "the stand-in is made at run time; move it and its parts into a module of its own"
            )
            self._leave("implementation", event, what, id)
        if not event.called:
            self._leave("unreached", event, "nothing that starts the plugin calls this", id)
        self._note_conditions(event, id)

    def _extend(self, event: Event) -> None:
        target = event.target
        if target is None or not is_dotted(target):
            self._unnamed(event)
            return
        held = self._resolver.resolve(target)
        known = [plain(v) for v in event.values]
        storable = bool(known) and all(ok and isinstance(v, PLAIN) for ok, v in known)
        if isinstance(held, Symbol) and held.kind not in ("constant", "attribute", "external"):
            if event.called:
                self._leave("unsupported", event, f"{event.shown}: {target} is no list")
            return
        if event.kind == "entry":
            self._entry(target, event)
        elif event.kind or not storable:
            what = f"{event.shown}: only plain values can be added to a list of upstream's"
            self._leave("unsupported", event, what)
        else:
            value = [v for _, v in known]
            self._add_hook(target, {"type": "extend", "value": value}, event)

    def _entry(self, target: str, event: Event) -> None:
        """An entry of a dict: a plain key, and what goes under it."""
        key_known, key = plain(event.values[0])
        known, value = plain(event.value)
        if key_known and isinstance(key, int) and self._is_list(target):
            self._leave("unsupported", event, f"{event.shown} = …: {target} is a list")
            return
        if not key_known or key is None or not isinstance(key, PLAIN):
            what = f"{event.shown} = …: the key is no plain value"
            self._leave("unsupported", event, what)
            return
        entry: Entry = {"type": "extend", "key": key}
        if known and value is not None and isinstance(value, PLAIN):
            entry["value"] = value
        else:
            self._with_implementation(entry, event)
        self._hooked.pop(self._key(target, "extend"), None)
        self._add_hook(target, entry, event)

    def _is_list(self, target: str) -> bool:
        symbol = self._resolver.resolve(target)
        node = self._resolver.statement(symbol) if isinstance(symbol, Symbol) else None
        return isinstance(getattr(node, "value", None), (ast.List, ast.ListComp, ast.Tuple))

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

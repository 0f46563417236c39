"""What the platform template shows: the platform class of one release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents.platform_map import Device, ServerArg
from kunlun_adapt.plan import (
    CAPABILITIES,
    PLATFORM,
    PLATFORM_KIND,
    Member,
    Plan,
    of_base,
    parse_subject,
    parse_test,
)
from kunlun_adapt.source.signatures import parameter_parts
from kunlun_adapt.source.text import (
    SourceError,
    dotted,
    identifier,
    literal,
    module_and_name,
    place,
    placed,
)
from kunlun_adapt.upstream import Signature, Symbol


@dataclass(frozen=True, slots=True)
class CaseText:
    """One value that a method hands out, under a condition on its arguments ("" for always)."""

    condition: str
    key: str
    at: str
    module: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ServerArgText:
    """One server argument that the platform sets where all `conditions` hold."""

    why: str
    at: str
    conditions: tuple[str, ...]
    place: str
    value: str


@dataclass(frozen=True, slots=True)
class FieldText:
    """One field of the platform class, or of its capabilities."""

    name: str
    value: str
    key: str
    at: str


@dataclass(frozen=True, slots=True)
class MethodText:
    """One generated method."""

    name: str
    parameters: tuple[str, ...]
    decorator: str
    cases: tuple[CaseText, ...]
    call: str
    fallthrough: str
    server_args: tuple[ServerArgText, ...]


@dataclass(frozen=True, slots=True)
class PlatformText:
    """Everything that the platform module contains."""

    class_name: str
    base: tuple[str, str]
    fields: tuple[FieldText, ...]
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    flags_class: str
    flags: tuple[FieldText, ...]
    methods: tuple[MethodText, ...]
    unset: bool


def class_name(plan: Plan) -> str:
    """Return the generated platform class's name."""
    name = identifier(plan.platform_map.model.name)
    return f"{name[:1].upper()}{name[1:]}Platform"


def platform_text(plan: Plan) -> PlatformText:
    """Return the texts of the platform class. Raises AdaptError without a platform interface."""
    base = _base(plan)
    kind = plan.names.get(PLATFORM_KIND)
    imports = {base}
    fields, flags = [], []
    methods: dict[str, list[Member]] = {}
    for member in plan.members:
        if member.spelling is None or not isinstance(member.symbol, Symbol):
            raise AdaptError(
                f"{member.binding.id}: no spelling that exists in sglang {plan.release}",
                "run kunlun-adapt validate",
            )
        if member.spelling.method is not None:
            methods.setdefault(member.spelling.method, []).append(member)
        elif member.name.startswith(f"{CAPABILITIES}."):
            name = identifier(member.name.partition(".")[2])
            flags.append(_field(member, name, literal(member.content)))
        else:
            fields.append(_field(member, identifier(member.name), _value(member, kind)))
            if member.value == "upstream" and isinstance(kind, Symbol):
                imports.add((kind.module, dotted(kind.qualname).split(".")[0]))
    flags_class = ""
    if flags:
        where = _object(plan, CAPABILITIES)
        imports.add(where)
        flags_class = where[1]
    texts = tuple(_method(plan, name, members) for name, members in methods.items())
    return PlatformText(
        class_name=class_name(plan),
        base=(base[0], base[1].rpartition(" ")[2]),
        fields=tuple(fields),
        imports=_by_module(imports),
        flags_class=flags_class,
        flags=tuple(flags),
        methods=texts,
        unset=any("UNSET" in p for t in texts for p in t.parameters),
    )


def _base(plan: Plan) -> tuple[str, str]:
    """Return (module, name) of the class that the platform derives from."""
    upstream = _object(plan, PLATFORM)
    own = plan.platform_map.model.device.base
    if own is None:
        return upstream
    module, name = module_and_name(own)
    return module, f"{name} as Handwritten" if name == class_name(plan) else name


def _by_module(imports: Iterable[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return each module once with the names that are taken from it, both in order."""
    found: dict[str, list[str]] = {}
    for module, name in sorted(imports):
        found.setdefault(module, []).append(name)
    return tuple((module, tuple(names)) for module, names in found.items())


def _field(member: Member, name: str, value: str) -> FieldText:
    return FieldText(name, value, member.key, place(member.binding.position))


def _object(plan: Plan, key: str) -> tuple[str, str]:
    """Return (module, name) of an upstream object that the map's interface names."""
    symbol = plan.names.get(key)
    if not isinstance(symbol, Symbol):
        raise AdaptError(
            f"sglang {plan.release} has no out-of-tree {key} interface",
            f"run kunlun-adapt validate --sglang {plan.release}",
        )
    module, _, name = symbol.path.rpartition(".")
    return dotted(module), identifier(name)


def _value(member: Member, kind: Any) -> str:
    if member.value == "upstream":
        if not isinstance(kind, Symbol):
            raise SourceError(f"{member.key}: interface names nothing for it")
        return dotted(kind.qualname)
    return literal(member.content)


def _method(plan: Plan, name: str, members: list[Member]) -> MethodText:
    symbol = members[0].symbol
    signature = symbol.signature if isinstance(symbol, Symbol) else None
    if signature is None:
        raise SourceError(f"{name}: its signature is not known")
    decorators = {"classmethod": "@classmethod", "staticmethod": "@staticmethod"}
    decorator = decorators.get(symbol.kind, "") if isinstance(symbol, Symbol) else ""
    own = signature if decorator == "@staticmethod" else signature.without_first()
    first = members[0]
    return MethodText(
        name=identifier(name),
        parameters=parameter_parts(signature),
        decorator=decorator,
        cases=tuple(
            _case(m, plan.platform_map.model.device, _call(own))
            for m in members
            if m.value != "server_args"
        ),
        call=_call(own) if first.value == "function" else "",
        fallthrough=(
            f"return super().{identifier(name)}({_call(own)})"
            if all(m.spelling and m.spelling.argument for m in members)
            else ""
        ),
        server_args=_server_args(plan) if any(m.value == "server_args" for m in members) else (),
    )


def _call(signature: Signature) -> str:
    parts = []
    for p in signature.parameters:
        name = identifier(p.name)
        stars = {"var_positional": f"*{name}", "var_keyword": f"**{name}"}
        parts.append(
            stars.get(p.kind) or (name if p.kind == "positional_only" else f"{name}={name}")
        )
    return ", ".join(parts)


def _case(member: Member, device: Device, call: str) -> CaseText:
    leaf = member.key.rpartition(".")[2]
    argument = member.spelling.argument if member.spelling else {}
    condition = " and ".join(
        f"{identifier(name)} == {literal(leaf if value == '$key' else value)}"
        for name, value in argument.items()
    )
    at = place(member.binding.position)
    if member.value == "function" and of_base(device, str(member.content)):
        method = identifier(str(member.content).rpartition(".")[2])
        return CaseText(condition, member.key, at, "", "", f"super().{method}({call})")
    if member.value in ("class", "function"):
        module, name = module_and_name(member.content)
        return CaseText(condition, member.key, at, module, name, "")
    return CaseText(condition, member.key, at, "", "", literal(member.content))


def _server_args(plan: Plan) -> tuple[ServerArgText, ...]:
    found = placed(plan.platform_map, "server_args", plan.server_args, "arg")
    return tuple(_server_arg(arg, at) for arg, at in found)


def _server_arg(arg: ServerArg, at: str) -> ServerArgText:
    attribute = f"server_args.{identifier(arg.arg)}"
    tests = []
    for name, value in arg.when.items():
        subject = parse_subject(name)
        test = parse_test(subject, value)
        # Of any type, and None where it is unset: what is asked of it must not raise.
        open_ = replace(subject, scope="server")
        tests.append(test.expression(open_, f"server_args.{subject.expression()}"))
    if arg.force is None:
        tests.append(f"{attribute} is None")
        return ServerArgText(arg.why, at, tuple(tests), attribute, literal(arg.default))
    # Reading it first makes an argument that upstream does not have an error, not a new attribute.
    tests.append(f"{attribute} != {literal(arg.force)}")
    return ServerArgText(arg.why, at, tuple(tests), attribute, literal(arg.force))

"""The keys of the map: which it gives, which of them are misspelt, and what spells a member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.documents.platform_map import Factories
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, SERVER_ARGS, spelled

SLIPS = 2
"""A name that is this many letters or fewer away from another may be a misspelling of it."""

GROUPS = ("capabilities", "kv_pool", "methods", "quantization")
"""The first names of keys whose second the map chooses."""

_MISSPELT: WeakKeyDictionary[Context, dict[str, str]] = WeakKeyDictionary()


def given_keys(context: Context) -> set[str]:
    """Return the keys that the map gives to the platform, bound in this release or not."""
    ids = [b.id for plan in context.plans for b in plan.bindings if b.family == PLATFORM]
    keys = {id.removeprefix("factory/").replace("method/", "methods.") for id in ids}
    own = {SERVER_ARGS} if context.map.server_args else set()
    return (keys - {f"methods.{SERVER_ARGS}"}) | own


def misspelt_keys(context: Context) -> dict[str, str]:
    """Return each key that nothing spells, with the one that differs from it by a slip.

    That is a key that `interface` spells, or a method of upstream's platform, and that the map does
    not give. `slip_tip` says which of the two is the slip.
    """
    if context not in _MISSPELT:
        _MISSPELT[context] = dict(_misspelt(context))
    return _MISSPELT[context]


def _misspelt(context: Context) -> Iterator[tuple[str, str]]:
    given = given_keys(context)
    unsound = [k for k in context.map.interface if k not in given and not _sound(k)]
    for key in sorted(given):
        head, dot, leaf = key.rpartition(".")
        if key in context.map.interface or _group(context, head):
            continue
        spelling = closest_slip(key, unsound)
        if spelling is not None and head != "methods":
            yield key, spelling
            continue
        if not dot:
            continue
        if head == "methods":
            choices = _methods(context, leaf)
        else:
            choices = [k for k in context.map.interface if k.rpartition(".")[0] == head]
        meant = closest_slip(leaf, [k.rpartition(".")[2] for k in choices if k not in given])
        if meant is not None:
            yield key, f"{head}.{meant}"


def _sound(key: str) -> bool:
    """Tell whether a key may be given: its group is one of the map's, or the key itself is."""
    first, dot, _ = key.partition(".")
    return (bool(dot) and first in GROUPS) or (not dot and first in Factories.model_fields)


def slip_tip(context: Context, key: str) -> str | None:
    """Return the question whether a slip is why nothing spells the key, or None."""
    other = misspelt_keys(context).get(key)
    if other is None or other.startswith("methods.") or _sound(other):
        return f"did you mean {other}?" if other else None
    return f"interface.{other}: did you mean {key}?"


def slip_in_interface(context: Context, key: str) -> str | None:
    """Return the key of the interface that is the slip, where it is there."""
    other = misspelt_keys(context).get(key)
    return other if other in context.map.interface and not _sound(str(other)) else None


def closest_slip(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that a slip or two of the keyboard would turn into `word`."""
    from rapidfuzz.distance import Levenshtein

    away = [(Levenshtein.distance(word, choice), choice) for choice in choices]
    near = [(count, choice) for count, choice in away if 0 < count <= min(SLIPS, len(choice) // 3)]
    return min(near)[1] if near else None


def _group(context: Context, head: str) -> bool:
    """Tell whether one entry of the interface spells all keys of a group."""
    return any(s.call is None for s in context.map.interface.get(head, ()))


def _methods(context: Context, name: str) -> list[str]:
    """The methods of upstream's platform, unless upstream has or had one of this name itself."""
    if context.platform_class is None or name in context.platform_members:
        return []
    lock, path = context.lock, f"{context.platform_class.path}.{name}"
    if lock is not None and any(lock.symbol(r, path) for r in lock.releases):
        return []
    return [f"methods.{n}" for n in context.platform_members if not n.startswith("_")]


def key_spelled(context: Context, name: str) -> str | None:
    """Return the key that the interface spells as this member of upstream's platform here."""
    for key in context.map.interface:
        spelling = spelled(context.map, key, context.release, context.beyond_claims)
        if spelling is not None and name in (spelling.method, spelling.field):
            return key
    return None


def give(key: str) -> str:
    """Return the YAML that gives a key of the map a value."""
    first, _, rest = key.partition(".")
    if first in ("kv_pool", "quantization"):
        return f"factories: {{{first}: {{{rest or '…'}: …}}}}"
    if first == CAPABILITIES:
        return f"{CAPABILITIES}: {{{rest}: …}}"
    if first == "methods":
        return f"methods: {{{rest}: …}}"
    if first == SERVER_ARGS:
        return f"{SERVER_ARGS}: [{{arg: …, default: …, why: …}}]"
    if first == "device":
        return f"device: {{{rest}: …}}"
    return f"factories: {{{key}: …}}"

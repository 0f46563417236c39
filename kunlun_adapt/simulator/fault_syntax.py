"""How `KUNLUN_ADAPT_SIMULATOR_FAULTS` says what shall go wrong in the simulated device.

The variable holds faults, separated by `;`, or the path of a YAML file (`*.yaml`, `*.yml`). One
fault is its kind, the op, and `key=value` words; the file says the same as a list::

    missing kunlun_ops.swiglu; wrong kunlun_ops.rmsnorm x.shape=[7,_] x.dtype=bfloat16 add=0.5

    faults:
      - {fault: missing, op: kunlun_ops.swiglu}
      - fault: wrong
        op: kunlun_ops.rmsnorm
        where: {x.shape: [7, _], x.dtype: bfloat16}
        add: 0.5

Kinds
    ``missing``       the op is not in the vendor's module, nor in torch.ops
    ``wrong``         ``add`` (default 1.0) is added to every floating output
    ``nan``           every floating output is NaN
    ``slow``          the call sleeps ``ms`` milliseconds first
    ``memory``        a call whose tensors hold more than ``bytes`` raises torch's OutOfMemoryError
    ``total_memory``  the simulated device reports ``bytes`` in all; takes no op

Which calls
    ``where``  ``ARG.shape`` (``_`` is any size), ``ARG.dtype``, or ``ARG`` for what is no tensor,
               by the contract's names; on one line each word that is no setting. Default: every
               call
    ``after``  how many such calls are left alone first; default none

``bytes`` is a number, or one with B, KiB, MiB or GiB. What is not understood is refused at start.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.simulator.contract import Contract, contracts

VARIABLE = "KUNLUN_ADAPT_SIMULATOR_FAULTS"
MAX_BYTES = 64 * 1024
_UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)\Z")
# kind → the settings that it takes; those without a default must be given.
_SETTINGS: dict[str, dict[str, float | None]] = {
    "missing": {},
    "wrong": {"add": 1.0, "after": 0},
    "nan": {"after": 0},
    "slow": {"ms": None, "after": 0},
    "memory": {"bytes": None, "after": 0},
    "total_memory": {"bytes": None},
}
SETTINGS = frozenset(name for taken in _SETTINGS.values() for name in taken)


@dataclass(slots=True)
class Fault:
    """One fault; `seen` and `fired` count the calls that it matches and those that it changed."""

    kind: str
    op: str = ""
    where: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, float] = field(default_factory=dict)
    seen: int = 0
    fired: int = 0

    def __str__(self) -> str:
        words = [self.kind, *([self.op] if self.op else [])]
        words += [f"{name}={_spell(value)}" for name, value in self.where.items()]
        words += [f"{name}={_spell(value)}" for name, value in self.settings.items() if value]
        return " ".join(words)


def parse(spec: str) -> tuple[Fault, ...]:
    """Read faults from one line, or from the YAML file that it names. Raises AdaptError."""
    spec = spec.strip()
    if spec.endswith((".yaml", ".yml")):
        entries = _from_file(Path(spec))
    else:
        entries = [_from_words(part) for part in spec.split(";") if part.strip()]
    faults = tuple(_read(entry) for entry in entries)
    _refuse_contradictions(faults)
    return faults


def _from_file(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise _refused(f"{path} is larger than {MAX_BYTES} bytes")
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(f"{path} is not readable as YAML: {error}") from error
    if not isinstance(document, dict) or list(document) != ["faults"]:
        raise _refused(f"{path} must be a mapping with the one key `faults`")
    listed = document["faults"]
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise _refused(f"{path}: `faults` must be a list of mappings such as {{fault: nan, op: …}}")
    return [{str(key): value for key, value in entry.items()} for entry in listed]


def _from_words(text: str) -> dict[str, Any]:
    kind, *words = text.split()
    entry: dict[str, Any] = {"fault": kind}
    where: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            if "op" in entry:
                raise _refused(f"{text.strip()!r}: {word!r} is neither the op nor key=value")
            entry["op"] = word
            continue
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise _refused(f"{text.strip()!r}: {value!r} is not a value") from error
        (entry if key in SETTINGS else where)[key] = read
    return {**entry, "where": where} if where else entry


def _read(entry: Mapping[str, Any]) -> Fault:
    kind = entry.get("fault")
    if not isinstance(kind, str) or kind not in _SETTINGS:
        raise _refused(f"there is no fault {kind!r}", kind, _SETTINGS)
    taken = _SETTINGS[kind]
    fault = Fault(kind)
    if kind != "total_memory":
        fault.op = _op(kind, entry.get("op"))
    allowed = {
        "fault",
        *taken,
        *({"op"} if fault.op else ()),
        *({"where"} if "after" in taken else ()),
    }
    for key in entry:
        if key not in allowed:
            raise _refused(f"the fault {kind} takes no {key!r}", key, allowed - {"fault"})
    for name, default in taken.items():
        fault.settings[name] = _setting(kind, name, entry.get(name, default))
    where = entry.get("where", {})
    if not isinstance(where, dict):
        raise _refused(f"{kind} {fault.op}: `where` must be a mapping such as {{x.shape: [7, _]}}")
    if fault.op:
        contract = contracts()[fault.op]
        fault.where = {str(k): _condition(contract, str(k), v) for k, v in where.items()}
        if kind in ("wrong", "nan") and not _may_write_floats(contract):
            raise _refused(f"{kind} {fault.op}: the op has no floating output to change")
    return fault


def _op(kind: str, op: Any) -> str:
    if not isinstance(op, str):
        raise _refused(f"the fault {kind} needs an op such as kunlun_ops.swiglu")
    if op not in contracts():
        raise _refused(f"there is no simulated op {op!r}", op, contracts())
    return op


def _setting(kind: str, name: str, value: Any) -> float:
    if value is None:
        raise _refused(f"the fault {kind} needs {name}=…")
    if name == "bytes":
        found = _SIZE.match(str(value))
        if found is None or found[2] not in _UNITS:
            raise _refused(f"{kind}: bytes={value!r} is no size such as 1048576, 512KiB or 2GiB")
        return float(found[1]) * _UNITS[found[2]]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(f"{kind}: {name}={value!r} is no number")
    if name != "add" and not 0 <= value < float("inf"):
        raise _refused(f"{kind}: {name}={value!r} is no number from 0 up")
    return value


def _condition(contract: Contract, key: str, value: Any) -> Any:
    name, _, part = key.partition(".")
    known = {arg.name: arg for arg in contract.args}
    if name not in known:
        raise _refused(f"{contract.op} has no argument {name!r}", name, known)
    if not known[name].is_tensor:
        if part:
            raise _refused(f"{contract.op}: {name} is no tensor; write {name}=VALUE")
        return value
    if part == "dtype":
        dtypes = known[name].dtypes
        if not isinstance(value, str) or (dtypes and value not in dtypes):
            takes = f"; the op takes {', '.join(dtypes)}" if dtypes else ""
            raise _refused(f"{contract.op}: {key}={value!r} can never be{takes}")
        return value
    if part == "shape":
        if not isinstance(value, list) or not all(v == "_" or type(v) is int for v in value):
            raise _refused(f"{contract.op}: {key}={value!r} is no shape such as [7,512] or [7,_]")
        return value
    raise _refused(f"{contract.op}: {name} is a tensor; write {name}.shape=… or {name}.dtype=…")


def _may_write_floats(contract: Contract) -> bool:
    written = [arg for arg in contract.args if arg.role in ("out", "inout")]
    floating = [a for a in written if not a.dtypes or any("float" in d for d in a.dtypes)]
    return bool(contract.returns or floating)


def _refuse_contradictions(faults: tuple[Fault, ...]) -> None:
    gone = {fault.op for fault in faults if fault.kind == "missing"}
    for fault in faults:
        if fault.op in gone and fault.kind != "missing":
            raise _refused(f"{fault} can never be: another fault says that the op is missing")
    if sum(fault.kind == "total_memory" for fault in faults) > 1:
        raise _refused("total_memory is given twice")


def _spell(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(map(str, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "null" if value is None else str(value)


def _refused(problem: str, name: object = None, known: Iterable[str] = ()) -> AdaptError:
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return AdaptError(
        f"{VARIABLE}: {problem}", f"did you mean {near[0]}?" if near else "see docs/simulator.md"
    )

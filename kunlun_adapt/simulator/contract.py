"""Contracts of vendor ops as data, and the decorator that puts a simulated op behind one.

A contract says what the public call sites of a vendor op show: argument names and order, dtypes,
shapes, contiguity, limits. It lives in ``contracts/<family>.yaml``, one file per operator family;
the simulated ops of the family live in ``kunlun_adapt/simulator/<family>.py``. ``install()``
imports the family module of every file in ``contracts/``, so a family takes just these two files::

    # contracts/activation.yaml
    family: activation
    ops:
      - op: kunlun_ops.swiglu            # or torch.ops.xspeedgate_ops.NAME, torch_xmlir.a.b.NAME
        does: silu(x[..., :d]) * x[..., d:]
        source: which public call site shows it
        args:                            # in positional order; all may be passed by keyword
          - {name: x, role: in, shape: "[*M, 2*d]", dtypes: [float16, bfloat16], contiguous: true}
          - {name: y, role: out, shape: "[*M, d]", dtypes: {same: x}}
          - {name: turn, role: param, type: bool, default: true}
        limits:
          - {that: "d % 8 == 0", why: "vector width"}
        returns: 0                       # number of tensors returned (needed for torch.ops only)

    # simulator/activation.py
    @simulated("kunlun_ops.swiglu")
    def swiglu(x, y, turn):              # all arguments, by the contract's names, already checked
        y.copy_(golden.silu_and_mul(x, None))

What an argument may say
    ``role``        ``in``, ``out``, ``inout`` (tensors) or ``param`` (anything else)
    ``shape``       a pattern or a list of alternatives; one symbol has one value across the call,
                    ``*M`` is any run of leading dimensions, ``_`` any size; ``2*d``, ``E+1`` work
    ``symbol``      for an integer param: the shape symbol that it states
    ``dtypes``      a list of torch dtype names, or ``{same: other_arg}``
    ``contiguous``  true: the tensor must be contiguous
    ``strides``     a pattern over the call's symbols, such as "[M, 1]", for what is told a pitch
    ``aligned``     the number of bytes that the tensor's first element must be aligned to
    ``zeroed``      true: the buffer must come in zero-filled
    ``optional``    true: may be None (its default is then None)
    ``type``        for a param: int, float, bool, str or list (a sequence of int); default any
    ``values``      the only values that public call sites pass
    ``default``     the value when the argument is left out; without it the argument is required

``simulated`` returns the checked op, so it can be called and tested without ``install()``.
A call that breaks the contract raises ContractError, which names the simulator and the op.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from kunlun_adapt.simulator.shapes import Shape, holds, match_shape, parse_shape

CONTRACTS = Path(__file__).resolve().parent / "contracts"
Role = Literal["in", "out", "inout", "param"]
ABSENT = inspect.Parameter.empty
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "list": (list, tuple),
}

calls: Counter[str] = Counter()
"""How often each simulated op was called in this process, by its full name."""


class ContractError(TypeError):
    """A call that the vendor op's contract does not allow."""

    def __init__(self, op: str, problem: str) -> None:
        super().__init__(f"kunlun_adapt simulator: {op}: {problem}")
        self.op = op
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a vendor op; the module's docstring explains the fields."""

    name: str
    role: Role
    shapes: tuple[Shape, ...] = ()
    symbol: str | None = None
    dtypes: tuple[str, ...] = ()
    dtype_of: str | None = None
    contiguous: bool = False
    strides: Shape | None = None
    aligned: int | None = None
    zeroed: bool = False
    optional: bool = False
    type: str | None = None
    values: tuple[Any, ...] | None = None
    default: Any = ABSENT

    @property
    def is_tensor(self) -> bool:
        """Whether the argument is a tensor."""
        return self.role != "param"


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition over shape symbols and scalar arguments that the op needs."""

    that: str
    why: str


@dataclass(frozen=True, slots=True)
class Contract:
    """What one vendor op accepts."""

    op: str
    family: str
    does: str
    source: str
    args: tuple[Argument, ...]
    limits: tuple[Limit, ...]
    returns: int

    @property
    def namespace(self) -> str:
        """Everything before the last dot: the module or torch.ops namespace."""
        return self.op.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The last part of the op's full name."""
        return self.op.rpartition(".")[2]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the call's arguments by name, defaults filled in.

        Unlike a Python signature, a required argument may follow one with a default, as in some
        of the vendor's keyword calls. Raises ContractError for a call that does not fit.
        """
        names = [arg.name for arg in self.args]
        if len(args) > len(names):
            raise self._misfit(f"{len(args)} positional arguments")
        bound = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise self._misfit(f"an unknown argument {name!r}")
            if name in bound:
                raise self._misfit(f"two values for {name!r}")
            bound[name] = value
        for arg in self.args:
            if arg.name in bound:
                continue
            if arg.default is ABSENT and not arg.optional:
                raise self._misfit(f"no value for {arg.name!r}")
            bound[arg.name] = None if arg.default is ABSENT else arg.default
        return bound

    def _misfit(self, what: str) -> ContractError:
        names = ", ".join(arg.name for arg in self.args)
        return ContractError(self.op, f"called with {what}; the op takes {names}")


_registry: dict[str, Callable[..., Any]] = {}


def simulated(op: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the stand-in of vendor op ``op`` behind its contract.

    The function receives every argument of the contract by name, defaults filled in. The decorated
    name is the checked op. Raises KeyError when no contract names ``op``, and TypeError when the
    function's parameters are not the contract's.
    """
    contract = contracts()[op]
    names = [arg.name for arg in contract.args]

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(function).parameters)
        if own != names:
            raise TypeError(f"simulated {op} takes {own}, its contract says {names}")

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            arguments = contract.bind(args, kwargs)
            check_call(contract, arguments)
            calls[op] += 1
            return function(**arguments)

        checked.__simulator__ = True  # type: ignore[attr-defined]  # the mark that reports read
        _registry[op] = checked
        return checked

    return register


def registered() -> dict[str, Callable[..., Any]]:
    """Return the checked ops that family modules have registered so far, by full name."""
    return dict(_registry)


def check_call(contract: Contract, arguments: Mapping[str, Any]) -> None:
    """Check one call's arguments, by name; raise ContractError at the first breach."""
    symbols: dict[str, int] = {}
    runs: dict[str, tuple[int, ...]] = {}
    scalars: dict[str, Any] = {}
    # Scalars that state a symbol come first, so that a tensor that contradicts them is blamed.
    for arg in contract.args:
        if not arg.is_tensor:
            scalars[arg.name] = value = arguments[arg.name]
            _check_scalar(contract, arg, value)
            if arg.symbol is not None and value is not None:
                symbols[arg.symbol] = int(value)
    tensors = [(arg, arguments[arg.name]) for arg in contract.args if arg.is_tensor]
    present: list[tuple[Argument, Any]] = []
    for arg, value in tensors:
        if value is None:
            if not arg.optional:
                raise ContractError(contract.op, f"{arg.name} is None, but it is required")
            continue
        _check_tensor(contract, arg, value, arguments)
        present.append((arg, value))
    # Twice, because an early dimension such as H*D may only be decided by a later argument.
    for _ in range(2):
        for arg, value in present:
            _check_shape(contract, arg, value, symbols, runs)
    for arg, value in present:
        _check_strides(contract, arg, value, symbols, runs)
    _check_devices(contract, present)
    for limit in contract.limits:
        if not holds(limit.that, {**scalars, **symbols}):
            values = ", ".join(f"{name}={value}" for name, value in symbols.items())
            raise ContractError(
                contract.op, f"limit {limit.that!r} does not hold ({limit.why}); {values}"
            )


def _check_scalar(contract: Contract, arg: Argument, value: Any) -> None:
    if value is None and arg.optional:
        return
    if arg.type is not None:
        wanted = _PYTHON_TYPES[arg.type]
        # bool is an int in Python, but a flag passed where a count belongs is a mistake.
        if not isinstance(value, wanted) or (isinstance(value, bool) and arg.type != "bool"):
            raise ContractError(contract.op, f"{arg.name} is {value!r}, expected {arg.type}")
    if arg.values is not None and value not in arg.values:
        raise ContractError(
            contract.op, f"{arg.name} is {value!r}, public callers pass only {list(arg.values)}"
        )


def _check_tensor(
    contract: Contract, arg: Argument, value: Any, arguments: Mapping[str, Any]
) -> None:
    if not hasattr(value, "dtype") or not hasattr(value, "is_contiguous"):
        raise ContractError(contract.op, f"{arg.name} is {value!r}, expected a tensor")
    dtype = dtype_name(value)
    if arg.dtypes and dtype not in arg.dtypes:
        raise ContractError(
            contract.op, f"{arg.name} is {dtype}, the op takes {', '.join(arg.dtypes)}"
        )
    if arg.dtype_of is not None and arguments[arg.dtype_of] is not None:
        other = dtype_name(arguments[arg.dtype_of])
        if dtype != other:
            raise ContractError(
                contract.op, f"{arg.name} is {dtype}, expected {other} as {arg.dtype_of}"
            )
    if arg.contiguous and not value.is_contiguous():
        raise ContractError(
            contract.op, f"{arg.name} is not contiguous (strides {tuple(value.stride())})"
        )
    if arg.aligned is not None and value.data_ptr() % arg.aligned:
        off = value.data_ptr() % arg.aligned
        raise ContractError(
            contract.op, f"{arg.name} must be aligned to {arg.aligned} bytes, and is {off} past it"
        )
    if arg.zeroed and bool(value.any()):
        raise ContractError(contract.op, f"{arg.name} must come in zero-filled")


def _check_shape(
    contract: Contract,
    arg: Argument,
    value: Any,
    symbols: dict[str, int],
    runs: dict[str, tuple[int, ...]],
) -> None:
    problems = []
    for shape in arg.shapes:
        trial, trial_runs = dict(symbols), dict(runs)
        problem = match_shape(shape, tuple(value.shape), trial, trial_runs)
        if problem is None:
            symbols.update(trial)
            runs.update(trial_runs)
            return
        problems.append(problem)
    if problems:
        raise ContractError(contract.op, f"{arg.name} {'; or '.join(problems)}")


def _check_strides(
    contract: Contract,
    arg: Argument,
    value: Any,
    symbols: dict[str, int],
    runs: dict[str, tuple[int, ...]],
) -> None:
    pattern = arg.strides
    if pattern is None or value.numel() == 0:
        return
    # The stride of a dimension of one element moves nothing.
    sizes = tuple(value.shape)[-len(pattern.dims) :]
    dims = ("_" if size == 1 else dim for dim, size in zip(pattern.dims, sizes, strict=False))
    wanted = replace(pattern, dims=tuple(dims))
    problem = match_shape(wanted, tuple(value.stride()), dict(symbols), dict(runs))
    if problem is not None:
        raise ContractError(contract.op, f"{arg.name}: the stride {problem}")


def _check_devices(contract: Contract, present: list[tuple[Argument, Any]]) -> None:
    devices = {arg.name: str(value.device) for arg, value in present}
    if len(set(devices.values())) > 1:
        raise ContractError(contract.op, f"tensors are on different devices: {devices}")


def dtype_name(tensor: Any) -> str:
    """Return a tensor's dtype without the torch prefix, as contracts and recipes write it."""
    return str(tensor.dtype).removeprefix("torch.")


@cache
def contracts() -> dict[str, Contract]:
    """Read every contract in ``contracts/``, by the op's full name."""
    found: dict[str, Contract] = {}
    for path in contract_files():
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        if document["family"] != path.stem:
            raise ValueError(f"{path.name} says family {document['family']!r}")
        for entry in document["ops"]:
            contract = _read(document["family"], entry)
            if contract.op in found:
                raise ValueError(f"{path.name}: second contract for {contract.op}")
            found[contract.op] = contract
    return found


def contract_files() -> list[Path]:
    """Return the contract files in name order; a file's stem is its family."""
    return sorted(CONTRACTS.glob("*.yaml"))


def _read(family: str, entry: Mapping[str, Any]) -> Contract:
    known = {"op", "does", "source", "args", "limits", "returns"}
    if unknown := entry.keys() - known:
        raise ValueError(f"contract {entry.get('op')}: unknown keys {sorted(unknown)}")
    return Contract(
        op=entry["op"],
        family=family,
        does=entry["does"],
        source=entry["source"],
        args=tuple(_read_argument(entry["op"], item) for item in entry["args"]),
        limits=tuple(Limit(item["that"], item["why"]) for item in entry.get("limits", ())),
        returns=entry.get("returns", 0),
    )


def _read_argument(op: str, item: Mapping[str, Any]) -> Argument:
    fields = dict(item)
    shape = fields.pop("shape", [])
    dtypes = fields.pop("dtypes", ())
    values = fields.pop("values", None)
    strides = fields.pop("strides", None)
    aligned = fields.get("aligned")
    if aligned is not None and (type(aligned) is not int or aligned < 1 or aligned & (aligned - 1)):
        raise ValueError(f"contract {op}, argument {item.get('name')}: aligned is no power of two")
    try:
        return Argument(
            shapes=tuple(
                parse_shape(text) for text in ([shape] if isinstance(shape, str) else shape)
            ),
            strides=None if strides is None else parse_shape(strides),
            dtypes=() if isinstance(dtypes, Mapping) else tuple(dtypes),
            dtype_of=dtypes["same"] if isinstance(dtypes, Mapping) else None,
            values=None if values is None else tuple(values),
            **fields,
        )
    except TypeError as error:
        raise ValueError(f"contract {op}, argument {item.get('name')}: {error}") from error

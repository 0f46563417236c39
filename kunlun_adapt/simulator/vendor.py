"""Put simulated vendor modules where adapters and probes look for the real ones."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from kunlun_adapt.simulator.contract import (
    ABSENT,
    Argument,
    Contract,
    contract_files,
    contracts,
    registered,
)
from kunlun_adapt.simulator.fault_syntax import VARIABLE
from kunlun_adapt.simulator.faults import active, inject, injected, is_missing

_FACTS = Path(__file__).resolve().with_suffix(".yaml")
VENDOR_MODULES: dict[str, str] = yaml.safe_load(_FACTS.read_bytes())["modules"]
"""The modules that can be simulated, each with the version that it stands for."""
_TORCH_OPS = "torch.ops."
logger = logging.getLogger("kunlun_adapt")
_libraries: list[Any] = []  # torch drops a library's ops when the object goes away


class VendorPresentError(RuntimeError):
    """Raised when a real vendor module is there: the simulator never hides one."""


@dataclass(frozen=True, slots=True)
class InstallReport:
    """What ``install`` put in place, without the ops that a fault takes away."""

    modules: tuple[str, ...]
    ops: tuple[str, ...]


class SimulatedModule(ModuleType):
    """A stand-in vendor module whose missing attributes name the simulator and the way out."""

    __simulator__ = True

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if is_missing(full):
            raise AttributeError(
                f"kunlun_adapt simulator: {full} is missing, as {VARIABLE} asks",
                name=name,
                obj=self,
            )
        raise AttributeError(
            f"kunlun_adapt simulator: {full} is not simulated. Add its contract to "
            "kunlun_adapt/simulator/contracts/<family>.yaml and its stand-in to "
            "kunlun_adapt/simulator/<family>.py, or give the recipe that needs it "
            "(operator_recipes/, kernels[].needs) a tier without it.",
            name=name,
            obj=self,
        )


def install(vendor: Iterable[str] = tuple(VENDOR_MODULES)) -> InstallReport:
    """Put stand-ins for the named vendor modules into ``sys.modules`` and register the torch ops.

    Needs torch. Safe to call again; the first call of a process says on the log, as a warning, that
    nothing here comes from a card, and which faults are injected. Raises VendorPresentError when a
    real module of one of these names is imported or importable, ValueError for a name that is no
    vendor module, and AdaptError for faults that cannot be understood.
    """
    names = tuple(vendor)
    injected()  # what cannot be understood is refused before anything is in place
    for name in names:
        if name not in VENDOR_MODULES:
            known = ", ".join(VENDOR_MODULES)
            raise ValueError(f"{name!r} is no vendor module that can be simulated ({known})")
        _refuse_real(name)
    for name in names:
        _module(name)
    _import_families()
    installed: list[str] = []
    by_namespace: dict[str, list[Contract]] = {}
    for full, function in registered().items():
        contract = contracts()[full]
        if is_missing(full):
            continue
        if contract.namespace.startswith(_TORCH_OPS):
            by_namespace.setdefault(contract.namespace, []).append(contract)
        elif contract.namespace.partition(".")[0] in names:
            setattr(_module(contract.namespace), contract.name, inject(contract, function))
            installed.append(full)
    for namespace, members in by_namespace.items():
        if namespace.removeprefix(_TORCH_OPS) in names:
            _register_torch_ops(namespace, members)
            installed.extend(contract.op for contract in members)
    _announce(len(installed))
    return InstallReport(names, tuple(sorted(installed)))


@cache
def _announce(ops: int) -> None:
    # A warning reaches stderr also where nobody has set up logging yet, as in SGLang's processes.
    logger.warning(
        "kunlun_adapt simulator: process %d has no card; %d vendor operators are stand-ins that "
        "compute on this CPU, and no figure of this run says anything about a card",
        os.getpid(),
        ops,
    )
    for fault in active():
        logger.warning("kunlun_adapt simulator: FAULT INJECTED by %s: %s", VARIABLE, fault["fault"])


def _refuse_real(name: str) -> None:
    present = sys.modules.get(name)
    if present is not None:
        if getattr(present, "__simulator__", False):
            return
        raise VendorPresentError(
            f"kunlun_adapt simulator: the real {name} is already imported "
            f"({getattr(present, '__file__', 'built in')}); use the card profile, "
            "or start without the simulator"
        )
    spec = importlib.util.find_spec(name)
    if spec is not None:
        raise VendorPresentError(
            f"kunlun_adapt simulator: the real {name} is installed ({spec.origin}); "
            "use the card profile, or start without the simulator"
        )


def _module(name: str) -> ModuleType:
    """Return the stand-in module ``name``, made with its parents when it is not there."""
    present = sys.modules.get(name)
    if present is not None:
        return present
    module = SimulatedModule(name, "kunlun_adapt simulator stand-in for the vendor's module.")
    # A spec without a loader keeps importlib.util.find_spec(name) working for probes.
    module.__spec__ = ModuleSpec(name, loader=None, origin="kunlun_adapt simulator")
    module.__path__ = []
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(_module(parent), leaf, module)
    else:
        module.__version__ = f"{VENDOR_MODULES[name]}+simulator"  # type: ignore[attr-defined]
    sys.modules[name] = module
    return module


def _import_families() -> None:
    for path in contract_files():
        importlib.import_module(f"kunlun_adapt.simulator.{path.stem}")


def _register_torch_ops(namespace: str, members: list[Contract]) -> None:
    import torch

    short = namespace.removeprefix(_TORCH_OPS)
    fresh = [contract for contract in members if not _torch_op_exists(short, contract.name)]
    if not fresh:
        return
    library = torch.library.Library(short, "FRAGMENT")
    for contract in fresh:
        library.define(torch_schema(contract))
        function = inject(contract, registered()[contract.op])
        library.impl(contract.name, _by_position(contract, function), "CompositeExplicitAutograd")
    _libraries.append(library)


def _torch_op_exists(namespace: str, name: str) -> bool:
    import torch

    return hasattr(getattr(torch.ops, namespace), name)


def _by_position(contract: Contract, function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand over by keyword: a contract may name an argument that follows a default."""
    names = [arg.name for arg in contract.args]

    def op(*args: Any, **kwargs: Any) -> Any:
        return function(**dict(zip(names, args, strict=False)), **kwargs)

    return op


def torch_schema(contract: Contract) -> str:
    """Return the torch.library schema that the contract amounts to."""
    written = 0
    parts = []
    # A schema allows no required argument after one with a default.
    required = [i for i, arg in enumerate(contract.args) if _is_required(arg)]
    last_required = required[-1] if required else -1
    for position, arg in enumerate(contract.args):
        text, written = _schema_argument(arg, written, position > last_required)
        parts.append(text)
    results = ["Tensor"] * contract.returns
    returns = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{contract.name}({', '.join(parts)}) -> {returns}"


def _is_required(arg: Argument) -> bool:
    return arg.default is ABSENT and not arg.optional


def _schema_argument(arg: Argument, written: int, with_default: bool) -> tuple[str, int]:
    optional = "?" if arg.optional else ""
    if arg.is_tensor:
        kind = "Tensor"
        if arg.role != "in":
            kind = f"Tensor({chr(ord('a') + written)}!)"
            written += 1
    else:
        kind = {"list": "int[]", None: "int"}.get(arg.type, arg.type or "int")
    text = f"{kind}{optional} {arg.name}"
    if with_default and arg.default is not ABSENT:
        value = f'"{arg.default}"' if isinstance(arg.default, str) else arg.default
        text += f"={value}"
    elif with_default and arg.optional:
        text += "=None"
    return text, written

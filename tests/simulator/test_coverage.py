"""Each vendor op that a bound kernel needs is simulated; each contract refuses a wrong call."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kunlun_adapt.check.implementations import Implementation, Implementations
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.simulator.contract import (
    Argument,
    Contract,
    ContractError,
    check_call,
    contracts,
)
from kunlun_adapt.upstream import Lock, LockFacts
from tests.simulator.test_contract import FakeTensor

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"int": 1, "float": 1.0, "bool": False, "str": "", "list": [1], None: None}


def active_operators():
    return [r for r in load_catalog(ROOT).operators if r.model.status == "active"]


def needed() -> set[str]:
    return {op for r in active_operators() for tier in r.model.kernels for op in tier.needs}


def test_every_op_that_a_bound_kernel_needs_has_a_contract():
    assert len(needed()) > 10
    assert needed() <= contracts().keys()


def test_every_op_that_an_adapter_calls_is_among_the_needs_of_its_tiers():
    """Otherwise a machine without the op would learn of it in the first call."""
    finder = Implementations(ROOT, LockFacts(Lock(), "0.5.19"))
    needs: dict[str, set[str]] = {}
    for recipe in active_operators():
        for tier in recipe.model.kernels:
            if tier.impl is not None:
                needs.setdefault(tier.impl, set()).update(tier.needs)
    called = {impl: called_ops(finder, impl) for impl in needs}
    assert sum(map(len, called.values())) > 10
    for impl, ops in called.items():
        assert ops <= needs[impl], (impl, sorted(ops - needs[impl]))


def called_ops(finder: Implementations, impl: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """The ops of ``kunlun_ops`` that an adapter calls, itself or in functions of its module."""
    function = finder.find(impl)
    if impl in seen or not isinstance(function, Implementation) or function.source is None:
        return set()
    found: set[str] = set()
    for node in ast.walk(function.source[1]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= called_ops(finder, f"{function.module}:{node.func.id}", seen | {impl})
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "kunlun_ops":
            found.add(ast.unparse(node))
    return found


@pytest.mark.torch
def test_every_contract_is_simulated():
    pytest.importorskip("torch")
    from kunlun_adapt.simulator.contract import contract_files, registered

    for path in contract_files():
        __import__(f"kunlun_adapt.simulator.{path.stem}")
    assert registered().keys() == contracts().keys()


def right(contract: Contract) -> dict[str, object]:
    """Arguments that are right in themselves; shapes and limits come after what is tested here."""
    dtypes: dict[str, str] = {}
    for arg in contract.args:
        dtypes[arg.name] = arg.dtypes[0] if arg.dtypes else "float32"
    for arg in contract.args:
        if arg.dtype_of is not None:
            dtypes[arg.name] = dtypes[arg.dtype_of]
    return {
        arg.name: FakeTensor(*[1] * len(arg.shapes[0].dims if arg.shapes else "x"),
                             dtype=dtypes[arg.name])
        if arg.is_tensor else scalar(arg)
        for arg in contract.args
    }  # fmt: skip


def scalar(arg: Argument) -> object:
    return arg.values[0] if arg.values is not None else TYPES[arg.type]


def refusal(contract: Contract, name: str, value: object) -> str:
    with pytest.raises(ContractError) as caught:
        check_call(contract, {**right(contract), name: value})
    assert caught.value.op == contract.op
    return caught.value.problem


EACH = pytest.mark.parametrize("op", sorted(contracts()))


@EACH
def test_a_wrong_dtype_is_refused_by_name(op):
    contract = contracts()[op]
    held = [arg for arg in contract.args if arg.dtypes or arg.dtype_of]
    assert held, "nothing is said of any dtype"
    for arg in held:
        said = refusal(contract, arg.name, FakeTensor(1, dtype="complex64"))
        # What another argument's dtype must equal is blamed on either of the two.
        tied = [other.name for other in held if other.dtype_of == arg.name]
        assert said.partition(" ")[0] in (arg.name, *tied) and "complex64" in said


@EACH
def test_what_is_not_contiguous_is_refused_by_name(op):
    contract = contracts()[op]
    held = [arg for arg in contract.args if arg.contiguous]
    assert held, "nothing has to be contiguous"
    for arg in held:
        given = right(contract)[arg.name]
        dtype = given.dtype.removeprefix("torch.")
        said = refusal(contract, arg.name, FakeTensor(1, dtype=dtype, contiguous=False))
        assert said.startswith(f"{arg.name} is not contiguous")


@EACH
def test_a_missing_and_an_unknown_argument_are_refused_by_name(op):
    contract = contracts()[op]
    arguments = right(contract)
    for arg in contract.args:
        if arg.is_tensor and not arg.optional:
            without = {name: value for name, value in arguments.items() if name != arg.name}
            with pytest.raises(ContractError, match=f"no value for '{arg.name}'"):
                contract.bind((), without)
            assert f"{arg.name} is None" in refusal(contract, arg.name, None)
    with pytest.raises(ContractError, match="unknown argument 'surplus'"):
        contract.bind((), {**arguments, "surplus": 1})


@EACH
def test_positional_arguments_are_held_to_their_order(op):
    contract = contracts()[op]
    values = tuple(right(contract).values())
    assert list(contract.bind(values, {}).values()) == list(values)
    with pytest.raises(ContractError, match="positional arguments"):
        contract.bind((*values, 1), {})

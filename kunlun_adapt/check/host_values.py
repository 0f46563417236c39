"""What the values of a function are to the host: on the device, on the host, or known anyway."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from enum import Enum, auto

from kunlun_adapt.check import host_reads as by_name

_LIST = re.compile(r"(list|tuple|sequence|iterable)\[tensor(, *(tensor|\.\.\.))*\]", re.IGNORECASE)


class Kind(Enum):
    """What an expression holds, as far as the text tells."""

    UNKNOWN = auto()
    KNOWN = auto()
    """A number, a shape, a dtype: the host has it without the device."""
    HOST = auto()
    """A tensor in host memory."""
    DEVICE = auto()
    MASK = auto()
    """A tensor of true and false on the device."""
    SEVERAL = auto()
    """A list or tuple with tensors on the device in it."""

    @property
    def on_device(self) -> bool:
        return self in (Kind.DEVICE, Kind.MASK)

    @property
    def has_tensors(self) -> bool:
        return self.on_device or self is Kind.SEVERAL

    @property
    def needs_no_device(self) -> bool:
        return self in (Kind.HOST, Kind.KNOWN)


ELEMENT = {Kind.SEVERAL: Kind.DEVICE}
"""What an element of each kind is, where that is not of the same kind."""


class Values:
    """What each name holds, and what that makes of an expression."""

    def __init__(self) -> None:
        self._names: dict[str, Kind] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def set(self, name: str, kind: Kind) -> None:
        """Take note of what a name holds; the name itself tells where nothing else does."""
        if kind is Kind.UNKNOWN and by_name.is_host_name(name):
            kind = Kind.HOST
        self._names[name] = kind

    def kind(self, node: ast.expr | None) -> Kind:
        """Return what an expression holds."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Constant):
            return Kind.KNOWN
        if isinstance(node, ast.NamedExpr | ast.Starred | ast.Await):
            return self.kind(node.value)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.UnaryOp):
            return Kind.KNOWN if isinstance(node.op, ast.Not) else self.kind(node.operand)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.IfExp):
            return _either([self.kind(node.body), self.kind(node.orelse)])
        if isinstance(node, ast.BoolOp):
            return _either([self.kind(value) for value in node.values])
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            inside = any(self.kind(e).has_tensors for e in node.elts)
            return Kind.SEVERAL if inside else Kind.UNKNOWN
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return Kind.SEVERAL if self.kind(node.elt).has_tensors else Kind.UNKNOWN
        if isinstance(node, ast.Call):
            return self._called(node)
        return Kind.UNKNOWN

    def has_tensors(self, nodes: Iterable[ast.expr]) -> bool:
        """Tell whether one of these is, or holds, a tensor on the device."""
        return any(self.kind(node).has_tensors for node in nodes)

    def _name(self, name: str) -> Kind:
        if name in self._names:
            return self._names[name]
        if by_name.is_settings_name(name):
            return Kind.KNOWN
        return Kind.HOST if by_name.is_host_name(name) else Kind.UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Kind:
        owner = self.kind(node.value)
        if owner in (Kind.DEVICE, Kind.MASK, Kind.HOST):
            return owner if node.attr in by_name.TENSOR_ATTRIBUTES else Kind.KNOWN
        if owner is Kind.SEVERAL:
            return Kind.DEVICE if node.attr in by_name.MEMBERS else Kind.UNKNOWN
        if owner is Kind.KNOWN or by_name.is_settings_name(node.attr):
            return Kind.KNOWN
        return Kind.HOST if by_name.is_host_name(node.attr) else Kind.UNKNOWN

    def _subscript(self, node: ast.Subscript) -> Kind:
        owner = self.kind(node.value)
        sliced = isinstance(node.slice, ast.Slice)
        return owner if sliced else ELEMENT.get(owner, owner)

    def _binary(self, node: ast.BinOp) -> Kind:
        sides = [self.kind(node.left), self.kind(node.right)]
        if is_text(node.left) and isinstance(node.op, ast.Mod):
            return Kind.KNOWN
        if all(side is Kind.MASK for side in sides):
            return Kind.MASK
        return Kind.DEVICE if Kind.MASK in sides else _either(sides)

    def _compared(self, node: ast.Compare) -> Kind:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return Kind.KNOWN
        sides = [self.kind(side) for side in (node.left, *node.comparators)]
        if any(side.on_device for side in sides):
            return Kind.MASK
        return Kind.HOST if Kind.HOST in sides else Kind.UNKNOWN

    def _called(self, call: ast.Call) -> Kind:
        if isinstance(call.func, ast.Name):
            return self._built_in(call.func.id, call)
        if not isinstance(call.func, ast.Attribute):
            return Kind.UNKNOWN
        owner, name = call.func.value, call.func.attr
        module = dotted(owner)
        given = [self.kind(a) for a in call.args]
        if module in by_name.TENSOR_MODULES:
            return Kind.DEVICE if any(k.has_tensors for k in given) else Kind.UNKNOWN
        if module == "torch":
            if by_name.is_known_torch(name):
                return Kind.KNOWN
            held = [k for k in given if k in (Kind.DEVICE, Kind.MASK, Kind.HOST, Kind.SEVERAL)]
            if name == "from_numpy" or made_on_the_host(call) or set(held) == {Kind.HOST}:
                return Kind.HOST
            return _result(name, held[0] if held else Kind.DEVICE, call)
        kind = self.kind(owner)
        if kind in (Kind.DEVICE, Kind.MASK, Kind.HOST):
            return self._method(name, kind, call)
        moved = name == "cpu" or (name == "to" and names_the_host(call))
        return Kind.HOST if moved else Kind.KNOWN if kind is Kind.KNOWN else Kind.UNKNOWN

    def _method(self, name: str, kind: Kind, call: ast.Call) -> Kind:
        bare = not call.args and not call.keywords
        if by_name.is_known_method(name, bare):
            return Kind.KNOWN
        if name in ("cpu", "pin_memory") or (name == "to" and names_the_host(call)):
            return Kind.HOST
        if kind is Kind.HOST:
            to_the_device = name == "cuda" or (name == "to" and not _names_a_dtype(call))
            return Kind.DEVICE if to_the_device else Kind.HOST
        return _result(name, kind, call)

    def _built_in(self, name: str, call: ast.Call) -> Kind:
        given = [self.kind(a) for a in call.args]
        if name == "cast" and len(given) == 2:
            return given[1]
        if not any(k.has_tensors for k in given):
            return Kind.UNKNOWN
        if name in by_name.ONE_OF:
            return Kind.DEVICE
        return Kind.SEVERAL if name in by_name.SEVERAL else Kind.UNKNOWN


def _either(kinds: list[Kind]) -> Kind:
    """Return what something is that is one of these, or computed with them."""
    for kind in (Kind.SEVERAL, Kind.DEVICE, Kind.MASK, Kind.HOST):
        if kind in kinds:
            return kind
    return Kind.KNOWN if all(k is Kind.KNOWN for k in kinds) else Kind.UNKNOWN


def _result(name: str, kind: Kind, call: ast.Call) -> Kind:
    """Return what a function or method gives that is called with a tensor on the device."""
    by_dim = any(k.arg == "dim" for k in call.keywords) or (call.args and is_number(call.args[-1]))
    if name in by_name.SPLITTING or (name in by_name.SPLITTING_BY_DIM and by_dim):
        return Kind.SEVERAL
    dtypes = [k.value for k in call.keywords if k.arg == "dtype"]
    dtypes += call.args if name in ("to", "type") else []
    if name in by_name.MASKING or any(dotted(d) == "torch.bool" for d in dtypes):
        return Kind.MASK
    return Kind.MASK if kind is Kind.MASK and name in by_name.RESHAPING else Kind.DEVICE


def annotated(annotation: ast.expr | None) -> Kind:
    """Return what an annotation says that a name holds."""
    if annotation is None:
        return Kind.UNKNOWN
    options = _options(annotation) - {"None"}
    if options == {"Tensor"}:
        return Kind.DEVICE
    lists = bool(options) and all(_LIST.fullmatch(option) for option in options)
    return Kind.SEVERAL if lists else Kind.UNKNOWN


def _options(annotation: ast.expr) -> set[str]:
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _options(annotation.left) | _options(annotation.right)
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    text = str(text).replace("torch.", "")
    if text.startswith("Optional[") and text.endswith("]"):
        text = text[len("Optional[") : -1]
    return {part.strip() for part in text.split("|")}


def is_text(node: ast.expr) -> bool:
    """Tell whether an expression is a text, as it is written."""
    literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return literal or isinstance(node, ast.JoinedStr)


def is_number(node: ast.expr) -> bool:
    """Tell whether an expression is a whole number, as it is written."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) is int


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` of an expression that is nothing else, or ""."""
    if isinstance(node, ast.Attribute):
        above = dotted(node.value)
        return f"{above}.{node.attr}" if above else ""
    return node.id if isinstance(node, ast.Name) else ""


def names_the_host(call: ast.Call) -> bool:
    """Tell whether `to(…)` names the CPU."""
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
    return any(_is_host(value) for value in given)


def made_on_the_host(call: ast.Call) -> bool:
    """Tell whether a call that makes a tensor makes it in host memory."""
    return any(
        (k.arg == "device" and _is_host(k.value))
        or (k.arg == "pin_memory" and isinstance(k.value, ast.Constant) and k.value.value is True)
        for k in call.keywords
    )


def _is_host(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == "cpu"
    return ast.unparse(node) in ("torch.device('cpu')", 'torch.device("cpu")')


def _names_a_dtype(call: ast.Call) -> bool:
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "dtype")]
    names = [dotted(value) for value in given]
    moved = any(k.arg == "device" for k in call.keywords)
    return not moved and any(n.startswith("torch.") or n.endswith("dtype") for n in names)

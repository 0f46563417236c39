"""What is known of torch, numpy and Python by name: who waits for the device, and who does not.

`host_syncs` reads these tables; what stands in none of them is taken to compute on the device.
"""

from __future__ import annotations

# Methods that wait, whatever they are called on.
WAITING = frozenset({"item", "cpu", "tolist", "synchronize", "is_nonzero", "nonzero"})
# What waits where it is called on a tensor: its values are wanted, or how many there are.
WAITING_OF_TENSORS = frozenset(
    {"numpy", "masked_select", "unique", "unique_consecutive", "argwhere", "bincount", "equal"}
    | {"allclose", "__bool__", "__int__", "__float__", "__index__", "__complex__"}
    | {"__contains__", "__format__", "__repr__", "__str__"}
)
# The same as functions of torch.
WAITING_TORCH = frozenset(
    {"equal", "allclose", "nonzero", "is_nonzero", "argwhere", "masked_select", "unique"}
    | {"unique_consecutive", "bincount"}
)
# They take numbers, and ask a tensor in such a place for its own.
NUMBERS_TORCH = frozenset({"arange", "range", "linspace", "zeros", "ones", "empty", "full", "eye"})
NUMBERS_METHODS = frozenset(
    {"view", "reshape", "expand", "repeat", "unflatten", "new_zeros", "new_ones", "new_empty"}
)
# They copy a list of tensors number by number.
ELEMENTS_TORCH = frozenset({"tensor", "as_tensor", "asarray"})

# Of Python: what decides by a value, what spells it, what compares one with another.
DECIDING = frozenset({"bool", "int", "float", "complex", "range", "slice", "chr", "hex"})
SPELLING = frozenset({"str", "repr", "print", "format", "ascii"})
COMPARING = frozenset({"max", "min", "sorted", "any", "all"})
READING_MODULES = frozenset({"np", "numpy", "math", "operator"})
LOGGING = frozenset(
    {"debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"}
)
# Of Python: what makes several of a tensor, without asking it for its values.
SEVERAL = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "enumerate", "zip"})
ONE_OF = frozenset({"sum", "max", "min", "next", "abs", "round", "pow"})

# What the host knows of a tensor without the device, besides all that begins with `is_`.
KNOWN_METHODS = frozenset(
    {"size", "stride", "dim", "numel", "element_size", "data_ptr", "get_device", "storage_offset"}
    | {"nelement", "ndimension", "untyped_storage", "storage", "dim_order", "has_names"}
    | {"dense_dim", "sparse_dim", "item", "tolist", "numpy", "__len__"}
)
TENSOR_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data", "grad", "real", "imag"})
# Of several, as `topk` and `sort` return them.
MEMBERS = frozenset({"values", "indices"})
KNOWN_TORCH = frozenset(
    {"device", "finfo", "iinfo", "Size", "Generator", "compile", "numel", "result_type"}
    | {"can_cast", "promote_types", "broadcast_shapes", "typename", "no_grad", "enable_grad"}
    | {"inference_mode", "manual_seed", "Stream", "Event", "equal", "allclose"}
)
KNOWN_PREFIXES = ("is_", "get_", "set_", "use_", "are_")
# Functions and methods that return several tensors; the second ones only with a dimension.
SPLITTING = frozenset(
    {"chunk", "split", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "topk", "sort"}
    | {"split_with_sizes", "kthvalue", "cummax", "cummin", "aminmax", "meshgrid", "frexp"}
    | {"std_mean", "var_mean", "broadcast_tensors"}
)
SPLITTING_BY_DIM = frozenset({"max", "min", "median", "mode", "nanmedian"})
# What gives true and false: as an index it takes as many as are true, which the device knows.
MASKING = frozenset(
    {"isnan", "isinf", "isfinite", "isin", "isclose", "isposinf", "isneginf", "signbit", "bool"}
    | {"gt", "lt", "ge", "le", "eq", "ne", "greater", "less", "greater_equal", "less_equal"}
    | {"not_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_not"}
)
# A mask stays one in these.
RESHAPING = frozenset(
    {"view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as", "contiguous"}
    | {"clone", "detach", "transpose", "permute", "t", "any", "all", "repeat", "roll", "flip"}
    | {"to", "cuda", "cpu", "view_as", "logical_not", "index_select", "gather"}
)
# Modules whose functions return tensors.
TENSOR_MODULES = frozenset(
    {"F", "nn.functional", "torch.nn.functional", "torch.special", "torch.linalg"}
)


def is_host_name(name: str) -> bool:
    """Tell whether a name says that what it holds lies on the host, as upstream names such."""
    return name.endswith(("_cpu", "_host")) or name.startswith(("cpu_", "host_"))


def is_settings_name(name: str) -> bool:
    """Tell whether a name holds settings: values that the host has had from the start."""
    return name in ("config", "cfg", "server_args") or name.endswith(("_config", "_cfg"))


def is_known_torch(name: str) -> bool:
    """Tell whether a function of torch returns what the host knows."""
    return name in KNOWN_TORCH or name.startswith(KNOWN_PREFIXES)


def is_known_method(name: str, bare: bool) -> bool:
    """Tell whether a tensor's method returns what the host knows; `bare`: without arguments."""
    return name in KNOWN_METHODS or name.startswith("is_") or (name == "type" and bare)

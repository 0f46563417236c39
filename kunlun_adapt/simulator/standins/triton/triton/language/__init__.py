"""kunlun_adapt simulator stand-in for triton.language: names that kernels mention."""

from __future__ import annotations

from triton._standin import Placeholder, missing
from triton.language import core, extra, math, standard
from triton.language.core import constexpr, dtype, pointer_type, tensor, view

void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("fp8e5")
float8e5b16 = dtype("fp8e5b16")
float8e4nv = dtype("fp8e4nv")
float8e4b8 = dtype("fp8e4b8")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")

# Names that upstream reads outside a kernel body (aliases at module scope). What is only mentioned
# inside a kernel body is never looked up.
exp = Placeholder("triton.language.exp")
exp2 = Placeholder("triton.language.exp2")
log = Placeholder("triton.language.log")
log2 = Placeholder("triton.language.log2")
gather = Placeholder("triton.language.gather")
make_tensor_descriptor = Placeholder("triton.language.make_tensor_descriptor")


def __getattr__(name: str) -> object:
    raise missing("triton.language", name)


__all__ = [
    "bfloat16",
    "constexpr",
    "core",
    "dtype",
    "exp",
    "exp2",
    "extra",
    "float8e4b8",
    "float8e4b15",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "gather",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "log",
    "log2",
    "make_tensor_descriptor",
    "math",
    "pointer_type",
    "standard",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "view",
    "void",
]

"""kunlun_adapt simulator stand-in for triton.language.core: the types that annotations name."""

from __future__ import annotations

from typing import Any

from triton._standin import refuse


class dtype:
    """A Triton element type, comparable by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dtype) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"triton.language.{self.name}"


class pointer_type(dtype):
    """A pointer to an element type."""

    def __init__(self, element_ty: dtype) -> None:
        super().__init__(f"pointer<{element_ty.name}>")
        self.element_ty = element_ty


class constexpr:
    """A compile-time constant, kept as data; also used as an annotation."""

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __class_getitem__(cls, item: Any) -> type[constexpr]:
        return cls

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __index__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


class tensor:
    """Only named in annotations and isinstance checks."""


def view(input: Any, *shape: Any, _semantic: Any = None) -> None:
    """Refuse; torch only reads this function's signature."""
    refuse("triton.language.view")

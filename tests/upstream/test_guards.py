"""Which guards hold where the platform reports as CUDA, and where it reports as CPU."""

from __future__ import annotations

import pytest

from kunlun_adapt.upstream.guards import holds

GUARDS = [
    (None, True, True),
    ("is_cuda()", True, False),
    ("_is_cuda", True, False),
    ("not _is_cuda", False, True),
    ("is_cuda_alike()", True, False),
    ("_is_hip", False, False),
    ("is_npu() or is_xpu()", False, False),
    ("(_is_cuda or _is_hip)", True, False),
    ("_is_cuda and _is_hip", False, False),
    ("_is_hip and version > 1", False, False),
    ("_is_cpu and _is_cpu_amx_available", False, False),
    ("not (_is_cpu and _is_cpu_amx_available)", True, True),
    ("not _is_cuda and _is_hip", False, False),
    ("version > 1", None, None),
    ("_is_cuda and version > 1", None, False),
    ("try", None, None),
    ("except ImportError", None, None),
    ("try and _is_hip", False, False),
    ("for name in names", None, None),
    ("match device case 'a and b'", None, None),
    ("current_platform.is_npu()", None, None),
    ("is_npu(0)", None, None),
    ("False", False, False),
    ("f('(') and _is_hip", False, False),
]


@pytest.mark.parametrize(("guard", "cuda", "cpu"), GUARDS)
def test_guards(guard: str | None, cuda: bool | None, cpu: bool | None) -> None:
    assert holds(guard, "cuda") is cuda
    assert holds(guard, "cpu") is cpu

"""The stand-in for sgl_kernel provides nothing and says so."""

from __future__ import annotations

import importlib

import pytest

from kunlun_adapt.shims import sgl_kernel


def test_a_missing_kernel_names_itself_and_the_remedy():
    assert not hasattr(sgl_kernel, "fused_moe")
    with pytest.raises(AttributeError, match=r"sgl_kernel\.fused_moe is not provided") as caught:
        _ = sgl_kernel.fused_moe
    assert "operator recipe" in str(caught.value)


def test_importing_a_kernel_by_name_fails():
    with pytest.raises(ImportError, match="silu_and_mul"):
        exec("from kunlun_adapt.shims.sgl_kernel import silu_and_mul")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("kunlun_adapt.shims.sgl_kernel.flash_attn")

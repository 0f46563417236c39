"""The stand-in for sgl_kernel provides nothing and says so."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kunlun_adapt.shims import sgl_kernel
from kunlun_adapt.simulator import standin_paths

ROOT = Path(__file__).resolve().parents[2]


def test_a_missing_kernel_names_itself_and_the_remedy():
    assert not hasattr(sgl_kernel, "fused_moe")
    with pytest.raises(AttributeError, match=r"^sgl_kernel\.fused_moe is not provided") as caught:
        _ = sgl_kernel.fused_moe
    assert "operator recipe" in str(caught.value)


CARD = """
import sglang.srt.platforms
print(type(sglang.srt.platforms.current_platform).__name__)
import sgl_kernel
print(sgl_kernel.__name__)
import sys
print([name for name in sys.modules if name.startswith("kunlun_adapt.simulator")])
from sgl_kernel.flash_attn import flash_attn_varlen_func
"""


@pytest.mark.upstream
@pytest.mark.torch
@pytest.mark.skipif(find_spec("sglang") is None, reason="SGLang is not installed")
def test_upstream_finds_it_in_a_process_that_has_a_card(tmp_path: Path) -> None:
    (tmp_path / "torch_xmlir.py").write_text("")  # what the probe looks for
    (tmp_path / "sgl_kernel.py").write_text("raise OSError('libcuda.so is missing')")
    done = subprocess.run(
        [sys.executable, "-c", CARD],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("KUNLUN_ADAPT_")},
            "PYTHONPATH": os.pathsep.join([str(ROOT), *standin_paths()]),
            "KUNLUN_ADAPT_CACHE": os.environ.get("KUNLUN_ADAPT_CACHE", ""),
        },
    )
    assert done.stdout.split("\n")[:3] == [
        "KunlunPlatform",
        "kunlun_adapt.shims.sgl_kernel",
        "[]",
    ], done.stderr
    assert "NotProvided: sgl_kernel.flash_attn is not provided on this platform" in done.stderr

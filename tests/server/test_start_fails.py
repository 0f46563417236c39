"""What is not in effect stops the start, with exit code 1 and a way out."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.simulator import standin_paths
from tests.server.golden_tokens import NEW_TOKENS, golden_completions
from tests.server.models import DEEPSEEK_V3, LLAMA, PROMPTS, TinyModel
from tests.server.server import plain_command, run_until_exit, running, serve_command
from tests.server.workspace import SABOTAGE, copy_workspace, replace_hook

pytestmark = [pytest.mark.server, pytest.mark.torch]

EARLY_IMPORT = Path(__file__).resolve().parent / "early_import"
# A hook that upstream calls while it loads a DeepSeek model.
HOOKED = "get_rope_wrapper"
REFUSED = ("the start is refused", "What to do:")
# What the checks would find first; without them the processes themselves have to refuse.
UNCHECKED = ("--no-validate",)


def test_a_hook_that_does_not_import(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    workspace = copy_workspace(tmp_path / "workspace")
    hook = replace_hook(workspace, HOOKED, "kunlun_broken:hook")
    code, output = run_until_exit(
        lambda port, runs: serve_command(
            model_folder(LLAMA), port, runs, (*UNCHECKED, "--workspace", str(workspace))
        ),
        tmp_path / "server",
        {"PYTHONPATH": str(SABOTAGE)},
    )
    assert code == 1, output
    _explains(
        output, *REFUSED, hook, "kunlun_broken:hook", "sabotaged implementation module was imported"
    )


@pytest.mark.full
def test_a_hook_that_raises(model_folder: Callable[[TinyModel], Path], tmp_path: Path) -> None:
    workspace = copy_workspace(tmp_path / "workspace")
    hook = replace_hook(workspace, HOOKED, "kunlun_sabotage:raises")
    code, output = run_until_exit(
        lambda port, runs: serve_command(
            model_folder(DEEPSEEK_V3), port, runs, (*UNCHECKED, "--workspace", str(workspace))
        ),
        tmp_path / "server",
        {"PYTHONPATH": str(SABOTAGE)},
    )
    # The scheduler is loading the model by then; SGLang ends what is left of itself with a kill.
    assert code != 0, output
    _explains(output, "sabotaged hook was called", f"kunlun-adapt explain {hook}")


def test_a_target_renamed_in_the_installed_sglang(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    patched = {"PYTHONPATH": str(_sglang_with(HOOKED, "make_rope_wrapper", tmp_path / "patched"))}
    code, output = run_until_exit(
        lambda port, runs: serve_command(model_folder(LLAMA), port, runs),
        tmp_path / "checked",
        patched,
    )
    assert code == 1, output
    _explains(output, "error KA10", HOOKED, "platform_map.yaml:", "make_rope_wrapper", "refused")
    code, output = run_until_exit(
        lambda port, runs: serve_command(model_folder(LLAMA), port, runs, UNCHECKED),
        tmp_path / "server",
        patched,
    )
    assert code == 1, output
    _explains(output, *REFUSED, HOOKED, "kunlun-adapt validate")


def test_a_kernel_module_imported_before_us(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    code, output = run_until_exit(
        lambda port, runs: serve_command(model_folder(LLAMA), port, runs, UNCHECKED),
        tmp_path / "server",
        {"PYTHONPATH": str(EARLY_IMPORT)},
    )
    assert code == 1, output
    _explains(output, *REFUSED, "silu_and_mul", "sglang.early_user.silu_and_mul")


def test_without_card_and_simulator_sglang_starts_as_if_we_were_not_installed(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    # GPT-2 has no rotary embedding; for that, unmodified SGLang needs a device or vllm.
    folder = model_folder(TinyModel("gpt2", _gpt2))
    golden = golden_completions(folder, PROMPTS)
    arguments = ("--device", "cpu", "--attention-backend", "torch_native", "--page-size", "1")
    # What SGLang imports before it looks for a platform, on a host that lacks it.
    environment = {"PYTHONPATH": os.pathsep.join(standin_paths())}
    with running(
        lambda port, runs: plain_command(folder, port, arguments), tmp_path / "server", environment
    ) as server:
        sampling = {"temperature": 0, "max_new_tokens": NEW_TOKENS, "ignore_eos": True}
        body = {"input_ids": [list(one.input_ids) for one in golden], "sampling_params": sampling}
        answers = server.post("/generate", body)
        ledger = server.ledger(lambda ledger: bool(ledger.bindings), seconds=3.0)
    assert [answer["output_ids"] for answer in answers] == [list(one.output_ids) for one in golden]
    assert not ledger.bindings
    assert not ledger.operators


def _gpt2() -> Any:
    from transformers import GPT2Config

    return GPT2Config(
        vocab_size=512,
        n_embd=128,
        n_layer=2,
        n_head=4,
        n_positions=1024,
        bos_token_id=0,
        eos_token_id=0,
        initializer_range=0.1,
    )


def _explains(output: str, *needles: str) -> None:
    for needle in needles:
        assert needle in output, f"the message does not mention {needle}:\n{output}"


def _sglang_with(old: str, new: str, folder: Path) -> Path:
    """A copy of the installed SGLang in which one name is spelled differently everywhere."""
    spec = find_spec("sglang")
    assert spec is not None and spec.submodule_search_locations
    source = Path(spec.submodule_search_locations[0])
    target = folder / "sglang"
    shutil.copytree(source, target, copy_function=_link)
    word = re.compile(rf"\b{re.escape(old)}\b")
    changed = 0
    for path in target.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if word.search(text):
            # Never written through the link: that would change the installed file.
            path.unlink()
            path.write_text(word.sub(new, text), encoding="utf-8")
            changed += 1
    assert changed, f"{old} is nowhere in {source}"
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)

"""The main job, start to end, on a machine without a card; `make demo` runs it.

Checks the documents against SGLang 0.5.19, shows a piece of the generated code, serves a tiny
model through an unmodified SGLang with simulated vendor kernels, asks it something and compares
the answer with Hugging Face transformers. Exit code 0 only if every step held.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.server.golden_tokens import golden_chats  # noqa: E402
from tests.server.models import LLAMA, make_model  # noqa: E402
from tests.server.server import Ledger, ServerFailed, running, serve_command  # noqa: E402

RELEASE = "0.5.19"
OPERATOR = "silu_and_mul"
PROMPT = "What is the capital of France?"
SHOWN_LINES = 32
PROGRESS_SECONDS = 5.0


class StepFailed(Exception):
    """A step did not hold; the message says which and why."""


def main() -> int:
    """Run the steps; 0 if all held, 1 with the reason otherwise."""
    started = time.monotonic()
    # Hugging Face and SGLang would otherwise use every core, for a model that needs none.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        validate()
        show_generated_code()
        with tempfile.TemporaryDirectory(prefix="kunlun-adapt-demo-") as folder:
            serve_and_compare(Path(folder))
    except (StepFailed, ServerFailed) as failure:
        say(f"\nfailed: {failure}")
        return 1
    say(f"\nAll steps held, in {time.monotonic() - started:.0f} s.")
    return 0


def validate() -> None:
    """Check every binding against the release, which is read and not imported."""
    title(f"1. validate: do the documents still hold for SGLang {RELEASE}?")
    say(_adapt("validate", "--sglang", RELEASE))


def show_generated_code() -> None:
    """Print what the plugin will execute for one operator."""
    title(f"2. render: the Python that serves {OPERATOR}; the plugin executes this same text")
    source = _adapt("render", OPERATOR, "--sglang", RELEASE, "--profile", "simulator")
    lines = source.splitlines()
    say("\n".join(lines[:SHOWN_LINES]))
    if len(lines) > SHOWN_LINES:
        say(f"… and {len(lines) - SHOWN_LINES} lines more")


def serve_and_compare(folder: Path) -> None:
    """Serve a model made on the spot, ask it, and compare with transformers."""
    title("3. serve: unmodified SGLang, the plugin, simulated vendor kernels")
    _quiet_libraries()
    model = make_model(LLAMA, folder)
    (golden,) = golden_chats(model, (PROMPT,))
    say(f"a Llama of two layers with random weights, made on the spot: {_weight(model)}")
    shown = 0.0

    def waiting(seconds: float) -> None:
        nonlocal shown
        if seconds - shown >= PROGRESS_SECONDS:
            shown = seconds
            say(f"  starting SGLang … {seconds:.0f} s")

    say("$ kunlun-adapt serve --simulator -- --model-path … --dtype float32 --page-size 16")
    begun = time.monotonic()
    with running(
        lambda port, runs: serve_command(model, port, runs), folder, waiting=waiting
    ) as server:
        say(f"  SGLang answers after {time.monotonic() - begun:.0f} s")
        title("4. chat: the same question to the server and to Hugging Face transformers")
        answer = server.post(
            "/v1/chat/completions",
            {
                "model": "default",
                "messages": [{"role": "user", "content": PROMPT}],
                "temperature": 0,
                "max_tokens": len(golden.output_ids),
                "ignore_eos": True,
                "skip_special_tokens": False,
            },
        )
        text = answer["choices"][0]["message"]["content"]
        tokens = server.post(
            "/generate",
            {
                "input_ids": list(golden.input_ids),
                "sampling_params": {
                    "temperature": 0,
                    "max_new_tokens": len(golden.output_ids),
                    "ignore_eos": True,
                },
            },
        )["output_ids"]
        say(f"user:      {PROMPT}")
        say(wrapped("assistant: ", text))
        say(wrapped("tokens:    ", " ".join(map(str, tokens))))
        say("(Random weights talk nonsense; what counts is that both talk the same.)")
        if text != golden.text or tokens != list(golden.output_ids):
            expected = " ".join(map(str, golden.output_ids))
            raise StepFailed(f"the server and transformers disagree; golden:\n{expected}")
        say(f"{len(tokens)} tokens, identical to the golden")
        ledger = server.ledger(lambda ledger: bool(ledger.operators))
    say("\nthe server has stopped, and nothing of it is left running")
    show_kernels(ledger)


def show_kernels(ledger: Ledger) -> None:
    """Print which kernel served which operator, as the server's processes recorded it."""
    title("5. who served")
    if not ledger.operators:
        raise StepFailed("no process recorded that a kernel served")
    states = [state for states in ledger.bindings.values() for state in states]
    say(f"processes: {', '.join(sorted(set(ledger.processes)))}")
    say(f"bindings:  {states.count('applied')} applied, {states.count('failed')} failed")
    if "failed" in states:
        raise StepFailed("a binding is not in effect")
    for operator, tiers in sorted(ledger.operators.items()):
        served = ", ".join(f"{tier} × {count}" for tier, count in tiers.items() if count)
        if served:
            say(f"  {operator:28}{served}")
    if ledger.fallbacks:
        raise StepFailed("a fallback served:\n" + "\n".join(ledger.fallbacks))
    say("fallbacks: none")


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def title(text: str) -> None:
    """Print the heading of a step."""
    say(f"\n{text}\n{'─' * min(len(text), 96)}")


def wrapped(label: str, text: str) -> str:
    """One labelled paragraph of at most 96 columns."""
    return textwrap.fill(label + text, 96, subsequent_indent=" " * len(label))


def _adapt(*arguments: str) -> str:
    """Run the command as a user would; its output, or StepFailed with it."""
    say(f"$ kunlun-adapt {' '.join(arguments)}")
    script = Path(sys.executable).with_name("kunlun-adapt")
    done = subprocess.run(
        [str(script), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        say(done.stdout)
        raise StepFailed(f"kunlun-adapt {arguments[0]} ended with exit code {done.returncode}")
    return done.stdout.rstrip()


def _quiet_libraries() -> None:
    """Leave the terminal to the steps: no progress bars for a model of a few hundred kilobytes."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _weight(model: Path) -> str:
    size = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    return f"{size / 1_000_000:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())

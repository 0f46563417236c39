"""A real SGLang server with the plugin says what transformers says, token for token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.server.deployments import DEPLOYMENTS, TIERS, Deployment
from tests.server.golden_tokens import NEW_TOKENS, Golden, golden_chats, golden_completions
from tests.server.models import LLAMA, PROMPTS, SHARED_PREFIX_PROMPTS, TinyModel
from tests.server.releases import release
from tests.server.requests import (
    chat,
    chat_streamed,
    complete,
    complete_streamed,
    generate,
    logprob_difference,
    streamed,
)
from tests.server.server import Ledger, Server, running, serve_command
from tests.server.workspace import SABOTAGE, copy_workspace, replace_kernels

pytestmark = [pytest.mark.server, pytest.mark.torch]

# Rounding differs by up to 2e-5 between two correct implementations; a choice as close as that
# would say nothing about the kernels.
LEAST_MARGIN = 1e-4
# In float32, with another order of summation in every matmul, norm and softmax: 1e-5 to 5e-5 is
# seen. A wrong scale, mask or routing weight moves log-probabilities by tenths.
MOST_LOGPROB_DIFFERENCE = 1e-3


@dataclass(frozen=True, slots=True)
class Served:
    """One running server with what it has to say."""

    deployment: Deployment
    server: Server
    completions: list[Golden]
    chats: list[Golden]
    shared: list[Golden]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(one, id=one.name, marks=[pytest.mark.full] if one.full else [])
        for one in DEPLOYMENTS
    ],
)
def served(
    request: pytest.FixtureRequest,
    model_folder: Callable[[TinyModel], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    deployment: Deployment = request.param
    if deployment.stops:
        pytest.skip(deployment.stops)
    folder = model_folder(deployment.model)
    completions = golden_completions(folder, PROMPTS)
    chats = golden_chats(folder, PROMPTS)
    shared = golden_completions(folder, SHARED_PREFIX_PROMPTS)
    with running(
        lambda port, runs: serve_command(
            folder, port, runs, deployment.options, deployment.arguments
        ),
        tmp_path_factory.mktemp(deployment.name),
        deployment.environment,
    ) as server:
        yield Served(deployment, server, completions, chats, shared)


def test_the_golden_choices_are_no_coin_tosses(served: Served) -> None:
    for golden in served.completions + served.chats + served.shared:
        assert golden.margin > LEAST_MARGIN, golden.prompt
        assert len(golden.output_ids) == NEW_TOKENS


def test_generate_one_by_one_with_its_log_probabilities(
    served: Served, record_property: Callable[[str, object], None]
) -> None:
    served.server.flush_cache()
    difference = logprob_difference(served.server, served.completions)
    record_property("largest log-probability difference", difference)
    print(f"{served.deployment.name}: largest log-probability difference {difference:.2e}")
    assert difference < MOST_LOGPROB_DIFFERENCE


def test_generate_batched(served: Served) -> None:
    served.server.flush_cache()
    batch = [list(golden.input_ids) for golden in served.completions]
    # The second time every prompt finds its pages in the prefix cache.
    for _ in range(2):
        answers = generate(served.server, batch)
        assert [answer["output_ids"] for answer in answers] == [
            list(golden.output_ids) for golden in served.completions
        ]


def test_a_shared_prefix_hits_the_radix_cache(served: Served) -> None:
    served.server.flush_cache()
    first, *rest = served.shared
    common = _common_tokens(served.shared)
    page = served.deployment.page_size
    ranks = served.deployment.data_parallel
    answer = generate(served.server, list(first.input_ids))
    assert answer["output_ids"] == list(first.output_ids)
    assert answer["meta_info"]["cached_tokens"] == 0
    # With data parallelism the next request goes to another rank, whose cache is empty.
    for golden in rest if ranks == 1 else ():
        answer = generate(served.server, list(golden.input_ids))
        assert answer["output_ids"] == list(golden.output_ids), golden.prompt
        # Whole pages of the common part, and at least one of them.
        assert answer["meta_info"]["cached_tokens"] >= common // page * page > 0
    # All at once, now over cached pages: requests of one batch share them.
    answers = generate(served.server, [list(golden.input_ids) for golden in served.shared])
    assert [answer["output_ids"] for answer in answers] == [
        list(golden.output_ids) for golden in served.shared
    ]
    assert any(answer["meta_info"]["cached_tokens"] > 0 for answer in answers)


def test_prompts_are_prefilled_in_chunks(served: Served) -> None:
    chunk = served.deployment.chunk
    longest = max(served.completions, key=lambda golden: len(golden.input_ids))
    if chunk is None or chunk >= len(longest.input_ids):
        pytest.skip("this deployment cuts no prompt")
    served.server.flush_cache()
    before = len(served.server.prefills())
    answer = generate(served.server, list(longest.input_ids))
    assert answer["output_ids"] == list(longest.output_ids)
    prefills = served.server.prefills()[before:]
    assert max(prefills) <= chunk
    assert len(prefills) >= -(-len(longest.input_ids) // chunk) > 1


def test_generate_streamed(served: Served) -> None:
    served.server.flush_cache()
    for golden in served.completions:
        tokens, events = streamed(served.server, golden.input_ids)
        assert tokens == list(golden.output_ids), golden.prompt
        assert events > 1


def test_chat_one_by_one(served: Served) -> None:
    served.server.flush_cache()
    for golden in served.chats:
        assert chat(served.server, golden.prompt) == golden.text


def test_chat_at_the_same_time(served: Served) -> None:
    served.server.flush_cache()
    with ThreadPoolExecutor(len(served.chats)) as pool:
        prompts = [golden.prompt for golden in served.chats]
        answers = list(pool.map(lambda prompt: chat(served.server, prompt), prompts))
    assert answers == [golden.text for golden in served.chats]


def test_chat_streamed_at_the_same_time(served: Served) -> None:
    served.server.flush_cache()
    with ThreadPoolExecutor(len(served.chats)) as pool:
        prompts = [golden.prompt for golden in served.chats]
        answers = list(pool.map(lambda prompt: chat_streamed(served.server, prompt), prompts))
    assert [text for text, _ in answers] == [golden.text for golden in served.chats]
    assert all(events > 1 for _, events in answers)


def test_openai_completions_whole_and_streamed_at_the_same_time(served: Served) -> None:
    served.server.flush_cache()
    prompts = [golden.input_ids for golden in served.completions]
    with ThreadPoolExecutor(2 * len(prompts)) as pool:
        whole = pool.map(lambda prompt: complete(served.server, prompt), prompts)
        parts = pool.map(lambda prompt: complete_streamed(served.server, prompt), prompts)
        texts, streams = list(whole), list(parts)
    assert texts == [golden.text for golden in served.completions]
    assert [text for text, _ in streams] == texts
    assert all(events > 1 for _, events in streams)


def test_each_operator_was_served_by_its_tier(served: Served) -> None:
    batch = [list(golden.input_ids) for golden in served.completions]
    served.server.flush_cache()
    generate(served.server, batch)
    generate(served.server, batch)
    expected = served.deployment.tiers

    def settled(ledger: Ledger) -> bool:
        return ledger.tiers() == expected

    ledger = served.server.ledger(settled)
    assert ledger.tiers() == expected
    fallbacks = {operator for operator, tiers in expected.items() if tiers == {"golden"}}
    assert {name.partition("/")[0] for name in ledger.fallbacks} == fallbacks


def test_every_process_has_its_bindings_in_effect(served: Served) -> None:
    generate(served.server, list(served.completions[0].input_ids))
    least = served.deployment.processes
    ledger = served.server.ledger(lambda ledger: len(ledger.processes) >= least)
    assert len(ledger.processes) >= least, ledger.processes
    failed = {name for name, states in ledger.bindings.items() if "failed" in states}
    assert not failed
    assert any("applied" in states for states in ledger.bindings.values())


def test_what_served_is_the_release_that_the_tests_are_for(served: Served) -> None:
    """A script of another environment would serve another SGLang, and say nothing."""
    assert served.server.ledger(lambda ledger: bool(ledger.releases)).releases == {release()}


@pytest.mark.full
def test_a_sabotaged_kernel_changes_the_tokens(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    workspace = copy_workspace(tmp_path / "workspace")
    replace_kernels(workspace, "silu_and_mul", "kunlun_sabotage:silu_and_mul")
    golden = golden_completions(folder, PROMPTS)
    options = ("--workspace", str(workspace))
    environment = {"PYTHONPATH": str(SABOTAGE)}
    with running(
        lambda port, runs: serve_command(folder, port, runs, options),
        tmp_path / "server",
        environment,
    ) as server:
        answers = generate(server, [list(one.input_ids) for one in golden])
        ledger = server.ledger(lambda ledger: "silu_and_mul" in ledger.operators)
    served = [answer["output_ids"] for answer in answers]
    assert all(len(ids) == NEW_TOKENS for ids in served)
    assert served != [list(one.output_ids) for one in golden]
    # The wrong kernel was the one that the ledger names, and no fallback hid it.
    assert ledger.tiers()["silu_and_mul"] == TIERS[LLAMA]["silu_and_mul"]


def _common_tokens(goldens: list[Golden]) -> int:
    """Tokens that all prompts start with."""
    columns = zip(*(golden.input_ids for golden in goldens), strict=False)
    return next(index for index, column in enumerate(columns) if len(set(column)) > 1)

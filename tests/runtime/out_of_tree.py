"""A model class out of tree, as a user would write one: upstream's, under a name of its own."""

from __future__ import annotations

from sglang.srt.models.llama import LlamaForCausalLM


class OurLlamaForCausalLM(LlamaForCausalLM):
    """Llama as it is; only who registers it differs."""

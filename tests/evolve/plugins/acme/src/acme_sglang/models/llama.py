from sglang.srt.models.llama import LlamaForCausalLM as Upstream


class LlamaForCausalLM(Upstream):
    pass


class AcmeForCausalLM(Upstream):
    pass


EntryClass = [LlamaForCausalLM, AcmeForCausalLM]

from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool


class AcmeKVPool(MHATokenToKVPool):
    pass

"""The platform class, half of it inherited from a base of the plugin's own."""

from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import SRTPlatform


class AcmeBase(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "acme"
    device_type = "acme"

    def get_dispatch_key_name(self):
        return "acme"

    def get_device_total_memory(self, device_id=0):
        return self._query(device_id)

    def _query(self, device_id):
        return 1 << 34


class AcmePlatform(AcmeBase):
    def get_torch_distributed_backend_str(self):
        return "accl"

    def get_default_attention_backend(self):
        return "acme"

    def get_mha_kv_pool_cls(self):
        from acme_sglang.pools import AcmeKVPool

        return AcmeKVPool

    def get_graph_runner_cls(self):
        from sglang.srt.model_executor.runner.decode_cuda_graph_runner import DecodeCudaGraphRunner

        return DecodeCudaGraphRunner

    def support_cuda_graph(self):
        return True

    def supports_fp8(self):
        return False

    def get_device_name(self, device_id=0):
        return f"acme-{device_id}"

    def init_backend(self):
        import acme_runtime

        acme_runtime.start()

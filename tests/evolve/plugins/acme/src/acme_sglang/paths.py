# ruff: noqa: UP031 -- written the way that plugins are
"""Where things are upstream."""

SRT = "sglang.srt"
UTILS = f"{SRT}.utils.common"
LAYERS = SRT + ".layers"
TABLE = {
    "memory": f"{UTILS}.get_available_gpu_memory",
    "flashinfer": "%s.%s" % (UTILS, "is_flashinfer_available"),
}

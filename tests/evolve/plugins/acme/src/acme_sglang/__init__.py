"""A made-up device's plugin, in every style that adopt reads."""

import importlib.util


def activate():
    if importlib.util.find_spec("acme_runtime") is None:
        return None
    return "acme_sglang.platform.AcmePlatform"

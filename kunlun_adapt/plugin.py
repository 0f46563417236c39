"""The two functions that SGLang calls, by our entry points."""

from __future__ import annotations

import sys
from types import ModuleType


def activate() -> str | None:
    """Return the platform class's path where a device (or the simulator, when asked) is present.

    Entry point `kunlun` of the group `sglang.srt.platforms`. Without a device: None, silently.
    Raises SystemExit(1) where a required binding cannot take effect.
    """
    opened = _doors()
    if opened is not None and opened.platform():
        return str(opened.platform())
    from kunlun_adapt.runtime.probe import profile

    found = profile()
    if found is None:
        return None
    from kunlun_adapt.runtime.doors import open_early_door

    return open_early_door(found)


def register() -> None:
    """Register the hooks of this process; does nothing on a machine without a device.

    Entry point `kunlun_hooks` of the group `sglang.srt.plugins`. Raises SystemExit(1) where a
    required binding is not in effect, or where SGLang chose its platform without asking us.
    """
    opened = _doors()
    if opened is None or not opened.platform():
        from kunlun_adapt.runtime.probe import profile

        if profile() is None:
            return
        from kunlun_adapt.runtime.selection import have_platform_resolved

        have_platform_resolved()
        opened = _doors()
    if opened is not None:
        opened.open_hook_door()


def _doors() -> ModuleType | None:
    return sys.modules.get("kunlun_adapt.runtime.doors")

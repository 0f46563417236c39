"""The two functions that SGLang calls, by our entry points."""

from __future__ import annotations


def activate() -> str | None:
    """Return the platform class's path where a device (or the simulator, when asked) is present.

    Entry point `kunlun` of the group `sglang.srt.platforms`. Without a device: None, silently.
    Raises SystemExit(1) where a required binding cannot take effect.
    """
    from kunlun_adapt.runtime.probe import profile

    found = profile()
    if found is None:
        return None
    from kunlun_adapt.runtime.doors import open_early_door

    return open_early_door(found)


def register() -> None:
    """Register the hooks of this process; does nothing where our platform is not active.

    Entry point `kunlun_hooks` of the group `sglang.srt.plugins`. Raises SystemExit(1) where a
    required binding is not in effect.
    """
    import sys

    doors = sys.modules.get("kunlun_adapt.runtime.doors")
    if doors is not None:
        doors.open_hook_door()

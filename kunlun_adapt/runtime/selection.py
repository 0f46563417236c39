"""SGLang's own choice of plugins, and the ways in which it can leave out half of us.

`SGLANG_PLUGINS` filters both groups of entry points (the platforms only while `SGLANG_PLATFORM` is
unset), and of two entry points with one name SGLang keeps the last.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys

from kunlun_adapt.diagnostics.finding import AdaptError

PLUGINS = "SGLANG_PLUGINS"
PLATFORM = "SGLANG_PLATFORM"
ENTRY_POINTS = {
    "sglang.srt.platforms": ("kunlun", "kunlun_adapt.plugin:activate"),
    "sglang.srt.plugins": ("kunlun_hooks", "kunlun_adapt.plugin:register"),
}


def check_selection() -> None:
    """Raise AdaptError where SGLang would load the platform without its hooks, or other code."""
    hooks = ENTRY_POINTS["sglang.srt.plugins"][0]
    given, listed = _listed()
    if given and hooks not in listed:  # also "," is a list, and an empty one
        raise AdaptError(
            f"{PLUGINS}={given} leaves out {hooks}, so that SGLang would run without our hooks",
            f"set {PLUGINS}={','.join(_with_ours(listed))}, or unset it",
        )
    namesakes = _namesakes()
    if namesakes:
        raise AdaptError(
            "two installed packages use one entry point name, and SGLang keeps only one of them:\n"
            + "\n".join(namesakes),
            "uninstall the one that is not wanted",
        )


def have_platform_resolved() -> None:
    """Let SGLang choose its platform if it has not; raise SystemExit if it chose without us."""
    platforms = importlib.import_module("sglang.srt.platforms")
    chosen = type(platforms.current_platform).__name__
    doors = sys.modules.get("kunlun_adapt.runtime.doors")
    if doors is not None and doors.platform():
        return
    from kunlun_adapt.runtime.stop import Failure, stop

    name = ENTRY_POINTS["sglang.srt.platforms"][0]
    given, listed = _listed()
    why = [f"SGLang's platform is {chosen}, and our entry point {name} was never called"]
    advice = f"set {PLATFORM}={name}"
    if given and name not in listed:
        why.append(f"{PLUGINS}={given} leaves it out")
        others = type(platforms.current_platform).__module__.split(".")[0] != "sglang"
        hooks = ENTRY_POINTS["sglang.srt.plugins"][0]
        advice += (
            f", or leave {hooks} out of {PLUGINS} to run on the other platform"
            if others
            else f", or {PLUGINS}={','.join(_with_ours(listed))}"
        )
    namesakes = _namesakes()
    if namesakes:
        why += namesakes
        advice = "uninstall the package that is not wanted"
    raise stop(
        "there is a device, but the platform was not activated",
        [Failure("kunlun-adapt", "\n".join(why))],
        advice,
    )


def _listed() -> tuple[str, list[str]]:
    """Return the list of plugins as it was given, and the names in it."""
    given = os.environ.get(PLUGINS, "")
    return given, [name.strip() for name in given.split(",") if name.strip()]


def _with_ours(listed: list[str]) -> list[str]:
    return [*listed, *(name for name, _ in ENTRY_POINTS.values() if name not in listed)]


def _namesakes() -> list[str]:
    """Return the entry points that carry our names and are not ours, with their packages."""
    found = []
    for group, (name, ours) in ENTRY_POINTS.items():
        for point in importlib.metadata.entry_points(group=group, name=name):
            if point.value.replace(" ", "") != ours:
                package = point.dist.name if point.dist else "an unknown package"
                found.append(f"{group}: {name} = {point.value} (from {package})")
    return found

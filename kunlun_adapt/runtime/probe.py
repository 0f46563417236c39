"""Is there a device here? Answered in well under 5 ms, importing neither torch nor sglang."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

SIMULATOR = "KUNLUN_ADAPT_SIMULATOR"
FAULTS = "KUNLUN_ADAPT_SIMULATOR_FAULTS"
DEVICE = "KUNLUN_ADAPT_SIMULATOR_DEVICE"
# The profiles without a card, by the device that the simulator is to report.
SIMULATED = {"cpu": "simulator", "cuda": "simulator_cuda"}

# The map is the only place that names the runtime's module. Reading this one line spares every
# process on every machine without a card the YAML parser.
_KEY = re.compile(rb"(?<![\w-])probe[\"']?[ \t]*:")
_PROBE = re.compile(
    rb"^[ \t]+probe:[ \t]*\{[ \t]*module:[ \t]*"
    rb"(?P<quote>[\"']?)(?P<module>[A-Za-z_][A-Za-z0-9_.]*)(?P=quote)[ \t]*\}",
    re.M,
)


def profile() -> str | None:
    """Return the profile that stands in for the device here, or None without one.

    Raises SystemExit(1) where the simulator is asked for and the real runtime is present, where
    faults are asked for and there is no simulator, where it cannot be told what is asked for, and
    where the map that says what to look for cannot be read.
    """
    try:
        asked = simulator_asked()
        simulated = simulated_profile()
        module = probe_module()
    except Exception as error:  # without the map nobody can say that there is no device
        from kunlun_adapt.diagnostics.finding import AdaptError
        from kunlun_adapt.runtime.stop import stop_for

        known = error if isinstance(error, AdaptError) else AdaptError(str(error))
        raise stop_for(known, "whether there is a device cannot be told") from error
    present = is_installed(module)
    if asked and present:
        from kunlun_adapt.runtime.stop import Failure, stop

        raise stop(
            "both a card and the simulator",
            [Failure("kunlun-adapt", f"{SIMULATOR}=1, and {module} is installed")],
            f"unset {SIMULATOR} to run on the card; the simulator is for machines without one",
        )
    if os.environ.get(FAULTS) and not asked:
        from kunlun_adapt.runtime.stop import Failure, stop

        raise stop(
            f"faults are asked for, and there is {'a card' if present else 'no simulator'}",
            [
                Failure(
                    "kunlun-adapt",
                    f"{FAULTS} is set, and "
                    + (f"{module} is installed" if present else f"{SIMULATOR}=1 is not"),
                )
            ],
            f"unset {FAULTS}; only the simulated device fails on request"
            + ("" if present else f", with {SIMULATOR}=1"),
        )
    if asked:
        return simulated
    return "card" if present else None


def simulator_asked() -> bool:
    """Tell whether the environment asks for the simulator. Raises AdaptError where it is unclear.

    A server that was meant to be simulated must not look for a card because of a spelling.
    """
    return switched_on(SIMULATOR, "asks for the simulator")


def simulated_profile() -> str:
    """Return the profile of the simulator that the environment asks for. Raises AdaptError."""
    device = os.environ.get(DEVICE) or "cpu"
    if device in SIMULATED:
        return SIMULATED[device]
    from kunlun_adapt.diagnostics.finding import AdaptError

    raise AdaptError(
        f"{DEVICE}={device!r}: the simulator can report no such device",
        f"one of {', '.join(SIMULATED)}",
    )


def switched_on(name: str, meaning: str) -> bool:
    """Read an environment variable that is on or off. Raises AdaptError for any other value.

    `meaning` completes "NAME=1 …" in the message.
    """
    value = os.environ.get(name, "")
    if value in ("", "0", "1"):
        return value == "1"
    from kunlun_adapt.diagnostics.finding import AdaptError

    raise AdaptError(
        f"{name}={value!r} says neither yes nor no",
        f"{name}=1 {meaning}; unset it, or set it to 0, for no",
    )


def probe_module(workspace: Path | None = None) -> str:
    """Return the module that the map's `device.probe` names. Raises AdaptError or OSError."""
    from kunlun_adapt.locate import MAP_FILE, find_workspace

    path: Path = find_workspace(workspace) / MAP_FILE
    text = path.read_bytes()
    found = _PROBE.search(text)
    # Where the word is a key more than once, only the parser can tell which one is meant.
    if found and len(_KEY.findall(text)) == 1:
        return found["module"].decode()
    from kunlun_adapt.diagnostics.finding import AdaptError
    from kunlun_adapt.documents import load_catalog

    catalog = load_catalog(path.parent)
    if catalog.platform_map is None:
        first = f": {catalog.findings[0].message}" if catalog.findings else ""
        raise AdaptError(f"no usable {path}{first}", "run kunlun-adapt validate")
    return catalog.platform_map.model.device.probe.module


def is_installed(module: str) -> bool:
    """Tell whether a module can be found, without importing it; a mere folder is none."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    # What Python makes of a folder without a package in it has places, and comes from nowhere.
    return spec is not None and (spec.origin is not None or spec.submodule_search_locations is None)

"""Is there a device here? Answered in well under 5 ms, importing neither torch nor sglang."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

SIMULATOR = "KUNLUN_ADAPT_SIMULATOR"

# The map is the only place that names the runtime's module. Reading this one line spares every
# process on every machine without a card the YAML parser.
_PROBE = re.compile(
    rb"^[ \t]*probe:[ \t]*\{[ \t]*module:[ \t]*[\"']?([A-Za-z_][A-Za-z0-9_.]*)", re.M
)


def profile() -> str | None:
    """Return the profile that stands in for the device here, or None without one.

    Raises SystemExit(1) where the simulator is asked for and the real runtime is present.
    """
    asked = os.environ.get(SIMULATOR) == "1"
    module = probe_module()
    present = module is not None and _present(module)
    if asked and present:
        from kunlun_adapt.runtime.stop import Failure, stop

        raise stop(
            "both a card and the simulator",
            [Failure("kunlun-adapt", f"{SIMULATOR}=1, and {module} is installed")],
            f"unset {SIMULATOR} to run on the card; the simulator is for machines without one",
        )
    if asked:
        return "simulator"
    return "card" if present else None


def probe_module() -> str | None:
    """Return the module that the map's `device.probe` names."""
    from kunlun_adapt.locate import MAP_FILE, find_workspace

    path: Path = find_workspace() / MAP_FILE
    found = _PROBE.search(path.read_bytes())
    if found:
        return found[1].decode()
    from kunlun_adapt.documents import load_catalog

    platform_map = load_catalog(path.parent).platform_map
    return platform_map.model.device.probe.module if platform_map else None


def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False

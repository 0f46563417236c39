"""What a process needs in its environment to run on the simulator."""

from __future__ import annotations

import os

from kunlun_adapt.cli.common import fail, remark
from kunlun_adapt.runtime.probe import (
    DEVICE,
    SIMULATED,
    SIMULATOR,
    is_installed,
    simulated_profile,
)


def check_device(module: str, simulator: bool) -> None:
    """End with exit code 2 where there is neither card nor simulator, or both."""
    if not simulator and not is_installed(module):
        fail(f"no card here ({module} is not installed)", "use --simulator")
    if simulator and is_installed(module):
        fail(
            f"both a card and the simulator: {module} is installed",
            f"drop --simulator (or unset {SIMULATOR}) to run on the card",
        )


def simulated_environment(profile: str | None = None, *, quiet: bool = False) -> dict[str, str]:
    """Return the variables to set, by default for the device that the environment asks for.

    The switch alone is not enough where triton or torchvision is absent: SGLang imports both before
    it looks for plugins, so that their stand-ins have to be on PYTHONPATH.
    """
    from kunlun_adapt import simulator

    profile = profile or simulated_profile()
    if not quiet:
        remark("kunlun-adapt: SIMULATOR: no Kunlun card is used; vendor operators are stand-ins")
    own = os.environ.get("PYTHONPATH", "")
    given = own.split(os.pathsep)
    paths = [p for p in simulator.standin_paths() if p not in given] + ([own] if own else [])
    return {
        SIMULATOR: "1",
        DEVICE: next(name for name, taken in SIMULATED.items() if taken == profile),
        **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {}),
    }

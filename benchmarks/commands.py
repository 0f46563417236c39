"""Seconds and peak memory of `validate`, and of importing the plugin where there is no device."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

from arguments import parser

VALIDATE = "from kunlun_adapt.cli import main; main()"
PLUGIN = "import kunlun_adapt.plugin; print(kunlun_adapt.plugin.activate())"
ROUNDS = 5


def measured(program: str, *arguments: str) -> tuple[float, float]:
    """Return (seconds, peak megabytes) of the fastest of several runs in fresh processes."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", program, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if k != "KUNLUN_ADAPT_SIMULATOR"},
        )
        times.append(time.perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return min(times), peak


def main() -> int:
    parser(__doc__).parse_args()
    arguments = ("validate", "--sglang", "0.5.19", "--offline")
    seconds, _ = measured(PLUGIN)
    print(f"importing the plugin and finding no device, interpreter included: {seconds:.3f} s")
    seconds, peak = measured(VALIDATE, *arguments)
    print(f"validate of all bindings, wheel cached: {seconds:.2f} s, peak {peak:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

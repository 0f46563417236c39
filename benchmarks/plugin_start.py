"""What the plugin adds to the start of a process of SGLang.

Each process imports what resolves the platform and then loads plugins, as upstream's launcher does,
with the plugin (and the simulator) and without, in turns. Needs SGLang in this environment.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from arguments import at_least, parser

from kunlun_adapt.simulator import standin_paths

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
PROCESS = """
import sglang.srt.utils.common
from sglang.srt.plugins import load_plugins
load_plugins()
from sglang.srt.platforms import current_platform
print(type(current_platform).__name__)
"""


@dataclass(frozen=True)
class Start:
    """Wall and CPU seconds of one process."""

    wall: float
    cpu: float


def start(cache: Path, plugin: bool) -> Start:
    """Run one process to its end."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SGLANG_", "KUNLUN_ADAPT_"))}
    ours = {"SGLANG_PLATFORM": "kunlun", "KUNLUN_ADAPT_SIMULATOR": "1"} if plugin else {}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS],
        env={
            **kept,
            **ours,
            "KUNLUN_ADAPT_CACHE": str(cache),
            "KUNLUN_ADAPT_WORKSPACE": str(ROOT),
            "PYTHONPATH": os.pathsep.join([*standin_paths(), str(ROOT)]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    platform = process.stdout.read().strip()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or (platform == "KunlunPlatform") is not plugin:
        raise SystemExit(f"the process ended with {process.returncode}, platform {platform!r}")
    return Start(wall, usage.ru_utime + usage.ru_stime)


def main() -> int:
    taken = parser(__doc__)
    taken.add_argument(
        "rounds", nargs="?", type=at_least(1), default=ROUNDS, help="default: %(default)s"
    )
    rounds = taken.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        start(scratch / "warm", plugin=True)  # compiles, and fills the system's file cache
        without, warm, first = [], [], []
        for turn in range(rounds):
            without.append(start(scratch / "warm", plugin=False))
            warm.append(start(scratch / "warm", plugin=True))
            first.append(start(scratch / f"first{turn}", plugin=True))
    base = statistics.median(s.cpu for s in without)
    print(f"{rounds} rounds; without the plugin a process takes {base:.2f} s of CPU")
    for title, runs in (("text in the cache", warm), ("first start of a release", first)):
        for unit in ("cpu", "wall"):
            pairs = [
                (getattr(a, unit), getattr(b, unit)) for a, b in zip(runs, without, strict=True)
            ]
            ratios = sorted(a / b for a, b in pairs)
            added = statistics.median(a - b for a, b in pairs)
            print(
                f"{title}, {unit}: with / without = {statistics.median(ratios):.3f} "
                f"({ratios[0]:.3f} to {ratios[-1]:.3f}), {added * 1000:+.0f} ms"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

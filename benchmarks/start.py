"""What the plugin costs each process at its start, against the interpreter's own start.

Without a device; with one and nothing cached; with one and the generated text cached. The device
is an empty module by the name that the map probes for, so that no driver's own start is counted.
SGLang and torch are not imported: what they take is theirs. All figures are of processor time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from arguments import parser

from kunlun_adapt.runtime.probe import probe_module

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 9
COLD_ROUNDS = 3
NOTHING = "import sys, time; begun = time.process_time()\n"
# What every process of SGLang has imported, whether or not there is a plugin.
LOADED = "import asyncio, pathlib, multiprocessing, re, typing\n"
ACTIVATE = f"""{NOTHING}
from kunlun_adapt.plugin import activate
found = activate()
"""
TELL = """
spent = time.process_time() - begun
import json
heavy = [m for m in ("torch", "sglang", "pydantic", "jinja2", "yaml") if m in sys.modules]
print(json.dumps([spent, found, heavy]))
"""


def run(program: str, environment: Mapping[str, str]) -> tuple[float, float, str | None, list[str]]:
    """Return the seconds of the process, those in it, what was activated and what imported."""
    code = (
        "import resource, subprocess, sys; "
        "python = [sys.executable, '-c', sys.argv[1]]; "
        "done = subprocess.run(python, capture_output=True, text=True); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime); print(done.stdout); sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    whole, said = done.stdout.split("\n", 1)
    spent, found, heavy = json.loads(said)
    return float(whole), float(spent), found, heavy


def main() -> int:
    parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        device = Path(folder, "device")
        place = device.joinpath(*probe_module().split(".")).with_suffix(".py")
        place.parent.mkdir(parents=True)
        place.write_text("")
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        plain = {"PYTHONPATH": path, "KUNLUN_ADAPT_SIMULATOR": ""}
        there = {**plain, "PYTHONPATH": os.pathsep.join([str(device), path])}
        warm = {**there, "KUNLUN_ADAPT_CACHE": str(Path(folder, "warm"))}
        run(LOADED + ACTIVATE + TELL, warm)
        rows: dict[str, list[tuple[float, float, str | None, list[str]]]] = {}
        for round in range(ROUNDS):
            # One after another in each round, so that a busy machine is busy for all of them.
            rows.setdefault("python alone", []).append(run(f"{NOTHING}found = None{TELL}", plain))
            rows.setdefault("no device", []).append(run(ACTIVATE + TELL, plain))
            within = LOADED + ACTIVATE + TELL
            rows.setdefault("no device, in SGLang", []).append(run(within, plain))
            rows.setdefault("device, cached", []).append(run(within, warm))
            if round < COLD_ROUNDS:
                cold = {**there, "KUNLUN_ADAPT_CACHE": str(Path(folder, f"cold{round}"))}
                rows.setdefault("device, not cached", []).append(run(within, cold))
        alone = min(whole for whole, *_ in rows["python alone"])
        assert all(taken[0][2] is None for taken in (rows["python alone"], rows["no device"]))
        assert all(found for _, _, found, _ in rows["device, cached"])
        print(f"{'':<24}{'in the process':>16}{'whole process':>16}{'against python':>16}  imports")
        for name, taken in rows.items():
            whole, spent = min(t[0] for t in taken), min(t[1] for t in taken)
            heavy = ", ".join(taken[0][3]) or "-"
            print(
                f"{name:<24}{spent * 1000:>13.1f} ms{whole * 1000:>13.1f} ms"
                f"{whole / alone:>16.2f}  {heavy}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

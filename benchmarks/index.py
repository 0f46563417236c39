"""`validate` and the index of a release, cold and warm, beside griffe on the same release.

griffe is not a dependency of ours: `pip install griffe` for its rows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from arguments import parser

from kunlun_adapt.upstream import default_cache_dir, open_release

RELEASE = "0.5.23"
WARM_ROUNDS = 3
SRT = "sglang.srt"

VALIDATE = "import sys; from kunlun_adapt.cli import main; sys.argv[0] = 'kunlun-adapt'; main()"
INDEX = f"""
import sys
from kunlun_adapt.upstream import open_index, open_release
index = open_index(open_release(sys.argv[1], offline=True))
print(len(index.modules), sum(m.startswith('{SRT}') for m in index.modules))
"""
LOOK_UPS = """
import sys
from kunlun_adapt.upstream import open_index, open_release
index = open_index(open_release(sys.argv[1], offline=True))
names = index.names()
for name in names[:: max(1, len(names) // 900)]:
    index.definitions(name)
"""
GRIFFE = f"""
import sys
import griffe
package = griffe.load("sglang", search_paths=[sys.argv[2]], allow_inspection=False)
def modules(module):
    yield module.path
    for member in module.members.values():
        if not member.is_alias and member.is_module:
            yield from modules(member)
seen = list(modules(package))
print(len(seen), sum(path.startswith("{SRT}") for path in seen))
"""


@dataclass(frozen=True)
class Run:
    """One program's seconds, its peak megabytes (its own and its children's), and its output."""

    seconds: float
    megabytes: float
    output: str


def run(program: str, *arguments: str, cache: Path) -> Run:
    """Run a program in a fresh process, with a cache folder of its own."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "KUNLUN_ADAPT_CACHE": str(cache)},
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"it failed: {program}")
    return Run(seconds, usage.ru_maxrss / 1024, output)


def best(program: str, *arguments: str, cache: Path) -> Run:
    """The fastest of several runs."""
    runs = [run(program, *arguments, cache=cache) for _ in range(WARM_ROUNDS)]
    return min(runs, key=lambda item: item.seconds)


def wheel_in(folder: Path, release: str) -> Path:
    """A cache folder with nothing in it but the wheel."""
    open_release(release)
    (folder / "releases").mkdir(parents=True)
    for file in (default_cache_dir() / "releases").glob(f"sglang-{release}-*"):
        shutil.copy2(file, folder / "releases" / file.name)
    return folder


def unpacked(cache: Path, target: Path) -> Path:
    """The wheel's files, since griffe reads folders."""
    (wheel,) = (cache / "releases").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def main() -> int:
    taken = parser(__doc__)
    taken.add_argument("release", nargs="?", default=RELEASE, help="default: %(default)s")
    release = taken.parse_args().release
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        cache = wheel_in(scratch / "cache", release)
        check = ("validate", "--sglang", release, "--offline", "--quiet", "--fail-on", "never")
        rows = [("validate, only the wheel cached", run(VALIDATE, *check, cache=cache))]
        index = cache / "indexes"
        shutil.rmtree(index, ignore_errors=True)
        cold = run(INDEX, release, cache=cache)
        rows.append(("index, built", cold))
        rows.append(("index, loaded, 900 look-ups", best(LOOK_UPS, release, cache=cache)))
        rows.append(("validate again, all caches warm", best(VALIDATE, *check, cache=cache)))
        seen = {"index": cold.output.split()}
        try:
            import griffe  # noqa: F401
        except ImportError:
            print("griffe is not installed: pip install griffe")
        else:
            tree = unpacked(cache, scratch / "tree")
            loaded = run(GRIFFE, release, str(tree), cache=cache)
            rows.append(("griffe", loaded))
            seen["griffe"] = loaded.output.split()
    print(f"SGLang {release}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"{'':34}{'seconds':>9}{'MB':>7}{'ratio':>8}")
    for title, item in rows:
        ratio = item.seconds / cold.seconds
        print(f"{title:34}{item.seconds:9.2f}{item.megabytes:7.0f}{ratio:8.2f}")
    print("(ratio: to the built index; the MB of a build are of its first process)")
    for title, (modules, srt) in seen.items():
        print(f"{title}: {modules} modules, {srt} of them under {SRT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

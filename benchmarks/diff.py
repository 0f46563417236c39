"""`diff` of two releases, cold and warm, and the whole index beside griffe's breaking changes.

    benchmarks/diff.py [OLD NEW]

griffe is not a dependency of ours: `pip install griffe` for its rows. A record is one thing that a
tool reports; griffe has one for each parameter, ours has one for each symbol, with all that changed
about it. `real` counts definitions, as the two releases' indexes have them under a path: those that
are gone from it, and those whose parameters or base classes differ.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from index import SRT, VALIDATE, best, run

from kunlun_adapt.upstream import default_cache_dir, open_release

PAIR = ("0.5.19", "0.5.23")

INDEXES = """
import sys
from kunlun_adapt.upstream import open_index, open_release
for release in sys.argv[1:]:
    open_index(open_release(release, offline=True))
"""
WHOLE = f"""
import sys
from kunlun_adapt.upstream import open_index, open_release
old, new = (open_index(open_release(release, offline=True)) for release in sys.argv[1:])
def shapes(index):
    return {{
        item.path: (item.signature, item.bases)
        for module in index.modules if "test" not in module.split(".")
        for item in index.defined_in(module)
        if not any(part.startswith("_") and part != "__init__" for part in item.path.split("."))
    }}
before, after = shapes(old), shapes(new)
gone = before.keys() - after.keys()
other = [path for path in before.keys() & after.keys() if before[path] != after[path]]
found = [*gone, *other]
print(len(found), sum(path.startswith("{SRT}.") for path in found))
"""
GRIFFE = f"""
import sys
import griffe
old, new = (griffe.load("sglang", search_paths=[p], allow_inspection=False) for p in sys.argv[1:])
def modules(module):
    yield module.path
    for member in module.members.values():
        if not member.is_alias and member.is_module:
            yield from modules(member)
seen = list(modules(new))
found, failed = [], 0
changes = griffe.find_breaking_changes(old, new)
while True:
    try:
        found.append(next(changes).obj.path)
    except StopIteration:
        break
    except Exception as error:
        failed = type(error).__name__
        break
# An object is told by the function that a parameter is of.
objects = {{path.partition("(")[0] for path in found}}
print(len(seen), sum(path.startswith("{SRT}.") for path in seen), len(found), len(objects),
      sum(path.startswith("{SRT}.") for path in found), failed)
"""


def wheels_in(folder: Path, releases: tuple[str, ...]) -> Path:
    """A cache folder with nothing in it but the wheels."""
    (folder / "releases").mkdir(parents=True)
    for release in releases:
        open_release(release)
        for file in (default_cache_dir() / "releases").glob(f"sglang-{release}-*"):
            shutil.copy2(file, folder / "releases" / file.name)
    return folder


def unpacked(cache: Path, release: str, target: Path) -> Path:
    """A wheel's files, since griffe reads folders."""
    (wheel,) = (cache / "releases").glob(f"sglang-{release}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def main() -> int:
    pair = tuple(sys.argv[1:3]) if len(sys.argv) > 2 else PAIR
    griffe_said: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        cache = wheels_in(scratch / "cache", pair)
        command = ("diff", *pair, "--offline", "--quiet", "--output", str(scratch / "diff.json"))
        rows = [("both indexes, built", run(INDEXES, *pair, cache=cache))]
        rows.append(("diff, only the indexes held", run(VALIDATE, *command, cache=cache)))
        warm = best(VALIDATE, *command, cache=cache)
        rows.append(("diff again, all held", warm))
        page = (*command[:-1], str(scratch / "diff.html"))
        rows.append(("the same as HTML", best(VALIDATE, *page, cache=cache)))
        whole = best(WHOLE, *pair, cache=cache)
        rows.append(("all definitions, from the indexes", whole))
        try:
            import griffe  # noqa: F401
        except ImportError:
            print("griffe is not installed: pip install griffe")
        else:
            trees = [str(unpacked(cache, release, scratch / release)) for release in pair]
            found = run(GRIFFE, *trees, cache=cache)
            rows.append(("griffe, both loaded and compared", found))
            griffe_said = found.output.split()
    print(f"SGLang {pair[0]} to {pair[1]}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"{'':34}{'seconds':>9}{'MB':>7}{'ratio':>8}")
    for title, item in rows:
        ratio = item.seconds / warm.seconds
        print(f"{title:34}{item.seconds:9.2f}{item.megabytes:7.0f}{ratio:8.2f}")
    print("(ratio: to a warm diff; the MB of a build are of its first process)")
    real, srt = whole.output.split()
    print(f"real: {real} public definitions gone or of another shape, {srt} of them under {SRT}")
    if griffe_said:
        modules, of_srt, records, objects, records_srt, failed = griffe_said
        print(
            f"griffe: {modules} modules, {of_srt} under {SRT}; {records} records about {objects} "
            f"objects, {records_srt} of them under {SRT}"
            + (f"; it stopped with {failed}" if failed != "0" else "")
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

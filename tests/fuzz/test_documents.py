"""Damaged documents end in findings, never in a traceback or a hang.

Every mutant is loaded and typed. One that is still a document goes through the plan, the checks and
the generated source, in a workspace that has little beside it; some go through the command line.
In the long run only a share of them does, since that takes most of the time.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from kunlun_adapt.check import check_release
from kunlun_adapt.cli import app
from kunlun_adapt.diagnostics import AdaptError, render_json, render_text
from kunlun_adapt.documents import Catalog, Document, load_bytes, load_catalog, parse
from kunlun_adapt.locate import LOCK_FILE, MAP_FILE, OPERATORS, RECIPES
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import Facts, Lock, LockFacts, read_lock
from tests.check.bench import Bench
from tests.fuzz.mutants import ROOT, Mutant, mutant, seeds

SOON = 2_000
ALL = 100_000
RUNS = 20
LONGEST = 5.0
"""Seconds of processor time after which a mutant counts as hanging."""

KINDS = {MAP_FILE: "PlatformMap", OPERATORS: "OperatorRecipe", RECIPES: "AdaptationRecipe"}
BASE = ("apiVersion", "kind", "name", "sglang", "device", "factories", "interface")
REPEAT = "KUNLUN_ADAPT_FUZZ"
"""Set to a mutant's number: only that one is run, and all the way."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Raise in the middle of whatever takes too long."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {LONGEST} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Bed:
    """What mutants are tried with: a small map, a lock, a small release, and a folder."""

    root: Path
    map: Document[Any]
    map_text: str
    lock: Lock
    locked: Facts
    small: Facts
    release: Path
    reached: dict[str, int] = field(default_factory=lambda: {"loaded": 0, "typed": 0, "checked": 0})

    def facts(self, chooser: random.Random) -> Facts:
        return self.small if chooser.random() < 0.3 else self.locked


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    root = tmp_path_factory.mktemp("fuzz")
    small = Bench(root).resolver()
    (seed,) = (s for s in seeds() if s.file == MAP_FILE)
    text = "".join("".join(blocks) for key, blocks in seed.sections if key in BASE)
    (raw,), findings = load_bytes(text.encode(), MAP_FILE)
    document, faults = parse(raw)
    assert findings == [] and faults == [] and document is not None
    lock = read_lock(ROOT / LOCK_FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUNLUN_ADAPT_CACHE", str(root / "cache"))
        yield Bed(root, document, text, lock, LockFacts(lock, "0.5.19"), small, root / "release")


def workspace(bed: Bed, tried: Mutant, documents: list[Document[Any]], faults: Any) -> Catalog:
    """A catalog that has the mutant's documents in it, and a map that is sound where it is none."""
    place = tried.file.split("/", 1)[0]
    maps = documents if place == MAP_FILE else [bed.map]
    return Catalog(
        root=ROOT,
        platform_map=maps[0] if maps else None,
        operators=tuple(documents) if place == OPERATORS else (),
        recipes=tuple(documents) if place == RECIPES else (),
        findings=tuple(faults),
    )


def run(tried: Mutant, bed: Bed, share: float) -> None:
    """Take a mutant as far as it gets; a `share` of those that are documents goes all the way."""
    chooser = random.Random(tried.number)
    raws, faults = load_bytes(tried.raw, tried.file, broken=True)
    assert raws or faults
    documents = []
    for raw in raws:
        document, found = parse(raw, KINDS[tried.file.split("/", 1)[0]])
        assert (document is None) == bool(found)
        faults += found
        if document is not None and not raw.broken:
            documents.append(document)
    bed.reached["loaded"] += bool(raws)
    bed.reached["typed"] += bool(documents)
    for finding in faults:
        assert finding.position.line >= 1 and finding.position.column >= 1 and finding.message
    if documents and chooser.random() < share:
        check(tried, bed, workspace(bed, tried, documents, faults), chooser)
        if chooser.random() < 0.2:
            command(tried, bed, chooser)


def check(tried: Mutant, bed: Bed, catalog: Catalog, chooser: random.Random) -> None:
    """Plan, check, print and generate; only an AdaptError with a message may be raised."""
    bed.reached["checked"] += 1
    facts = bed.facts(chooser)
    beyond = chooser.random() < 0.2
    report = check_release(catalog, facts, lock=bed.lock, beyond_claims=beyond)
    assert render_text([report]) and render_json([report])
    for profile in ("card", "simulator"):
        try:
            plan = make_plan(catalog, facts, profile, beyond_claims=beyond)
            compile_plan(plan, template_folder(ROOT))
        except AdaptError as error:
            # Text that is not Python would mean that a string got into it unchecked.
            assert error.message and "is not Python" not in error.message


COMMANDS = (
    ("validate", "--format", "text"), ("validate", "--format", "json", "--beyond-claims"),
    ("render",), ("list", "bindings"), ("explain", "worker-affinity"),
)  # fmt: skip


def command(tried: Mutant, bed: Bed, chooser: random.Random) -> None:
    """Run a command on a workspace on disk: its exit code is one of three."""
    root = bed.root / "workspace"
    path = root / tried.file
    path.parent.mkdir(parents=True, exist_ok=True)
    (root / MAP_FILE).write_text(bed.map_text, encoding="utf-8")
    path.write_bytes(tried.raw)
    try:
        given = ["--workspace", str(root), "--sglang", str(bed.release), "--offline"]
        result = CliRunner().invoke(app, [*chooser.choice(COMMANDS), *given])
    finally:
        path.unlink()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), result.output
    assert "internal" not in result.stderr


def try_all(numbers: Any, bed: Bed, share: float) -> None:
    asked = os.environ.get(REPEAT)
    for number in [int(asked)] if asked else numbers:
        tried = mutant(number)
        try:
            with watched():
                run(tried, bed, 1.0 if asked else share)
        except BaseException as error:
            shown = tried.raw.decode("utf-8", errors="backslashreplace")
            error.args = (
                f"mutant {number} of {tried.file} ({REPEAT}={number} repeats it): "
                f"{type(error).__name__}: {error}\n{shown}",
            )
            raise


@pytest.mark.parametrize("part", range(4))
def test_mutants(part: int, bed: Bed) -> None:
    try_all(range(part, SOON, 4), bed, 0.25)


@pytest.mark.full
@pytest.mark.parametrize("part", range(RUNS))
def test_many_more_mutants(part: int, bed: Bed) -> None:
    try_all(range(SOON + part, ALL, RUNS), bed, 0.12)


def test_mutants_get_far_enough(bed: Bed) -> None:
    """A mutator that breaks every document at its first line would test the loader alone."""
    reached = dict.fromkeys(bed.reached, 0)
    for number in range(150):
        bed.reached.update(dict.fromkeys(reached, 0))
        with watched():
            run(mutant(number), bed, 0.0)
        reached = {key: reached[key] + count for key, count in bed.reached.items()}
    assert reached["loaded"] > 75
    assert reached["typed"] > 30


def test_a_mutant_is_its_number_alone() -> None:
    assert [mutant(n) for n in range(40)] == [mutant(n) for n in range(40)]
    assert len({mutant(n).raw for n in range(40)}) == 40


def test_a_failure_names_the_mutant(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("tests.fuzz.test_documents.load_bytes", broken)
    with pytest.raises(KeyError) as caught:
        try_all([7], bed, 0.0)
    said = str(caught.value)
    assert f"{REPEAT}=7 repeats it" in said and "lost" in said and mutant(7).file in said


def test_the_watch_stops_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.test_documents.LONGEST", 0.05)
    with pytest.raises(TimeoutError, match="processor time"), watched():
        while True:
            pass


def test_the_seeds_are_the_shipped_documents() -> None:
    assert {s.file for s in seeds()} >= {MAP_FILE}
    catalog = load_catalog(ROOT)
    assert len(seeds()) == 1 + len(catalog.operators) + len(catalog.recipes)

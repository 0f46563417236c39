"""Check several releases at a time, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from kunlun_adapt.documents import Catalog, load_catalog
from kunlun_adapt.evolve.matrix.standing import Standings, standings
from kunlun_adapt.upstream import Lock, open_release
from kunlun_adapt.upstream.fetch import Progress
from kunlun_adapt.upstream.following import FollowingResolver


@dataclass(frozen=True, slots=True)
class Job:
    """What is the same for all releases; `workspace` is how the user named it."""

    root: Path
    lock: Lock
    beyond_claims: bool = False
    workspace: str | None = None


def check_all(
    job: Job,
    catalog: Catalog,
    sources: Sequence[str],
    *,
    processes: int | None = None,
    progress: Progress | None = None,
) -> list[Standings]:
    """Check releases that are at hand, in the order given. `progress` hears of each that is done.

    The processes are as many as the cores that this one may use, or `processes`. Raises
    ReleaseError where a release cannot be read.
    """
    tasks = _Tasks(job, catalog, sources, progress)
    count = min(processes or cores(), len(sources))
    if count > 1:
        tasks.share(count)
    for source in sources:
        tasks.do_here(source)
    return [tasks.done[source] for source in sources]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Tasks:
    """The releases, and what is known of those that are done."""

    def __init__(
        self, job: Job, catalog: Catalog, sources: Sequence[str], progress: Progress | None
    ) -> None:
        self.done: dict[str, Standings] = {}
        self._job = job
        self._catalog = catalog
        self._sources = sources
        self._say = progress or (lambda message, fraction: None)

    def share(self, count: int) -> None:
        """Let processes take one release after the other; what is left when they die stays open."""
        # Not forked: a progress bar is a thread, and its locks would stay as they were.
        method = multiprocessing.get_context("spawn")
        self._tell()
        pool = ProcessPoolExecutor(count, method, _begin, (self._job,))
        try:
            running = self._submitted(pool)
            for future in as_completed(running):
                self._take(running[future], future.result())
        except (BrokenProcessPool, OSError):
            return  # killed for want of memory, say: one after the other it may do
        finally:
            pool.shutdown(cancel_futures=True)

    def _submitted(self, pool: Executor) -> dict[Future[Standings], str]:
        return {pool.submit(_check, source): source for source in self._sources}

    def do_here(self, source: str) -> None:
        if source not in self.done:
            self._tell(source)
            self._take(source, _standings(self._job, self._catalog, source))

    def _take(self, source: str, found: Standings) -> None:
        self.done[source] = found
        self._tell(found.release)

    def _tell(self, what: str = "") -> None:
        count = len(self.done)
        self._say(
            f"{count} of {len(self._sources)}{f', {what}' if what else ''}",
            count / len(self._sources),
        )


_given: tuple[Job, Catalog] | None = None


def _begin(job: Job) -> None:
    """Read the documents once in a process that is to check several releases."""
    global _given
    # Ctrl-C reaches all processes, and the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _given = (job, load_catalog(job.root))


def _check(source: str) -> Standings:
    assert _given is not None, "_begin comes first"
    job, catalog = _given
    return _standings(job, catalog, source)


def _standings(job: Job, catalog: Catalog, source: str) -> Standings:
    # Whoever called us has fetched it.
    resolver = FollowingResolver(open_release(source, offline=True))
    return standings(
        catalog,
        job.lock,
        resolver,
        beyond_claims=job.beyond_claims,
        source=source,
        workspace=job.workspace,
    )

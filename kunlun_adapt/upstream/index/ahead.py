"""Indexes that one process makes while another has begun to work with those that are there."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from kunlun_adapt.upstream.index import held_index, open_index
from kunlun_adapt.upstream.release import open_release
from kunlun_adapt.upstream.resolve import Resolver


@contextmanager
def made_ahead(versions: Sequence[str]) -> Iterator[None]:
    """Make the indexes that the cache lacks of these releases beside what is done inside.

    Whoever asks for one that is being made waits for it, and one that could not be made here is
    made, and complained of, by whoever asks.
    """
    waiting = [version for version in versions if not _is_held(version)]
    if len(waiting) < 2:
        yield
        return
    # Not forked: a progress bar is a thread, and its locks would stay as they were.
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    try:
        for version in waiting:
            pool.submit(_make, version)
        yield
    finally:
        # Not left to the interpreter's end, which would find its pipes closed.
        pool.shutdown(cancel_futures=True)


def _is_held(version: str) -> bool:
    return held_index(Resolver(open_release(version, offline=True))) is not None


def _make(version: str) -> None:
    open_index(open_release(version, offline=True))

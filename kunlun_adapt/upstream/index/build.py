"""Scan a whole release, in two processes where there are two cores."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgpack

from kunlun_adapt.upstream.fetch import Progress
from kunlun_adapt.upstream.index.scan import KEY_NAMES, Scanned, scan_module
from kunlun_adapt.upstream.index.worker import receive, send
from kunlun_adapt.upstream.release import Release, module_of
from kunlun_adapt.upstream.syntax import collector_paused

_PROCESSES = 2
"""More would wait for the one that reads the files and collects the results."""

FEW_MODULES = 200
"""A release with fewer modules is read sooner than a process starts."""


@dataclass(slots=True)
class Built:
    """A built index: the packed rows in file order, the tables that lead back, the real hashes."""

    modules: list[tuple[str, str]] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    tables: dict[str, bytes] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)


def scan_release(release: Release, progress: Progress | None = None) -> Built:
    """Scan every module of a release."""
    files = [(module, path) for path in release.files() if (module := module_of(path)) is not None]
    done = _Collected(files)
    hashes: dict[str, str] = {}
    pending = deque(files)

    def read(path: str) -> bytes:
        source = release.read(path) or b""
        hashes[path] = hashlib.sha256(source).hexdigest()
        return source

    def tell() -> None:
        if progress is not None and files:
            progress(f"indexing SGLang {release.version}", done.count / len(files))

    with collector_paused():
        processes = min(_PROCESSES, os.cpu_count() or 1) if len(files) >= FEW_MODULES else 1
        helpers = [_Helper(pending, read, done) for _ in range(processes - 1)]
        while pending:
            try:
                module, path = pending.popleft()
            except IndexError:
                break
            done.add(path, scan_module(module, path, read(path)))
            if done.count % 50 == 0:
                tell()
        for helper in helpers:
            for module, path in helper.finish():
                # What a process that died had been given.
                done.add(path, scan_module(module, path, read(path)))
        tell()
        return done.built(hashes)


class _Helper:
    """A process that takes files from the far end of the queue, fed and read by two threads."""

    def __init__(
        self,
        pending: deque[tuple[str, str]],
        read: Callable[[str], bytes],
        done: _Collected,
    ) -> None:
        self._pending = pending
        self._read = read
        self._done = done
        self._given: deque[tuple[str, str]] = deque()
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._process: subprocess.Popen[bytes] | None = None
        paths = [str(Path(__file__).resolve().parents[3]), *sys.path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kunlun_adapt.upstream.index.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError:
            return  # one process builds it as well
        self._threads = [
            threading.Thread(target=self._feed, daemon=True),
            threading.Thread(target=self._collect, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _feed(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        stream = self._process.stdin
        try:
            while self._pending:
                module, path = self._pending.pop()
                self._given.append((module, path))
                send(stream, module.encode(), path.encode(), self._read(path))
        except (IndexError, OSError):
            pass  # nothing is left, or the process is gone; `finish` sees what it still owed
        except BaseException as error:
            self._failure = error
        finally:
            with contextlib.suppress(OSError):
                stream.close()

    def _collect(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for scanned in _scans(self._process.stdout):
            _, path = self._given.popleft()
            self._done.add(path, scanned)

    def finish(self) -> Iterator[tuple[str, str]]:
        """Wait for the process and yield the files that it was given and did not scan."""
        for thread in self._threads:
            thread.join()
        if self._process is not None:
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process.wait()
        if self._failure is not None:
            raise self._failure
        yield from self._given


def _scans(stream: IO[bytes]) -> Iterator[Scanned]:
    while (block := receive(stream)) is not None:
        yield Scanned.unpacked(block)


class _Collected:
    """What the scans of a release add up to; two threads hand them in, in any order."""

    def __init__(self, files: list[tuple[str, str]]) -> None:
        self.count = 0
        self._files = files
        self._numbers = {path: number for number, (_, path) in enumerate(files)}
        self._rows = [b""] * len(files)
        self._tables: dict[str, dict[str | bytes, list[int]]] = {name: {} for name in KEY_NAMES}
        self._guard = threading.Lock()

    def add(self, path: str, scanned: Scanned) -> None:
        """Take a module's row, and let its keys lead to it."""
        number = self._numbers[path]
        with self._guard:
            self.count += 1
            self._rows[number] = scanned.row
            for name, table in self._tables.items():
                for key in getattr(scanned.keys, name):
                    table.setdefault(key, []).append(number)

    def built(self, hashes: dict[str, str]) -> Built:
        """The index, the same whatever the order in which the scans came."""
        built = Built(self._files, self._rows, hashes=hashes)
        for name, table in self._tables.items():
            # Packed one by one and let go: together they are larger than what they become.
            keys = sorted(table)
            built.tables[name] = msgpack.packb({key: sorted(table.pop(key)) for key in keys})
        return built

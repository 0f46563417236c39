"""Starts a real SGLang server, talks to it and stops it with everything that it started."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_SECONDS = 300.0
# With several ranks upstream itself waits up to 15 s for its children.
STOP_SECONDS = 60.0
REQUEST_SECONDS = 180.0
LOG_TAIL_LINES = 60
LOG_WIDTH = 400
# Small enough that the pool is made at once; SGLang would otherwise take most of the memory.
SERVER_ARGUMENTS = ("--dtype", "float32", "--max-total-tokens", "4096")
PAGE_SIZE = ("--page-size", "16")
# The code under test is the checkout that holds the tests, whatever is installed beside SGLang.
ROOT = Path(__file__).resolve().parent.parent.parent

_PREFILL = re.compile(r"Prefill batch.*?#new-token: (\d+)")
Waiting = Callable[[float], None]
# Makes the command line from a free port and the folder for the ledger.
Command = Callable[[int, Path], list[str]]


class ServerFailed(Exception):
    """The server ended or stayed silent; the message ends with the tail of its log."""


@dataclass(slots=True)
class Ledger:
    """What every process of a server wrote down: bindings by state, operators by tier."""

    processes: list[str] = field(default_factory=list)
    # Those of them that had not ended when it was read.
    living: list[str] = field(default_factory=list)
    bindings: dict[str, set[str]] = field(default_factory=dict)
    operators: dict[str, dict[str, int]] = field(default_factory=dict)
    # "operator/tier: reason" of every fallback.
    fallbacks: list[str] = field(default_factory=list)
    releases: set[str] = field(default_factory=set)

    def tiers(self) -> dict[str, set[str]]:
        """The tiers that served, by operator; operators that nobody called are left out."""
        return {
            name: {tier for tier, count in tiers.items() if count}
            for name, tiers in self.operators.items()
            if any(tiers.values())
        }


def read_ledger(folder: Path) -> Ledger:
    """Add up the `<pid>.json` of every process."""
    ledger = Ledger()
    for path in sorted(folder.glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        ledger.processes.append(entry["process"])
        ledger.releases.add(entry["release"])
        if Path("/proc", path.stem).exists():
            ledger.living.append(entry["process"])
        for binding in entry["bindings"]:
            ledger.bindings.setdefault(binding["id"], set()).add(binding["state"])
        for fallback in entry["fallbacks"]:
            ledger.fallbacks.append(
                f"{fallback['operator']}/{fallback['tier']}: {fallback['reason']}"
            )
        for name, tiers in entry["operators"].items():
            total = ledger.operators.setdefault(name, {})
            for tier, count in tiers.items():
                total[tier] = total.get(tier, 0) + count
    return ledger


@dataclass(slots=True)
class Server:
    """A server that answers."""

    url: str
    log: Path
    run_dir: Path
    process: subprocess.Popen[bytes]

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a JSON request and return the JSON answer; an error carries the server's text."""
        return json.loads(self.send(path, body))

    def send(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send a JSON request and return whatever comes back, if it is no error."""
        try:
            with urllib.request.urlopen(self._request(path, body), timeout=REQUEST_SECONDS) as got:
                return bytes(got.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise ServerFailed(f"{path}: HTTP {error.code}: {text}\n{tail(self.log)}") from error
        except OSError as error:
            raise ServerFailed(f"{path}: {error}\n{tail(self.log)}") from error

    def stream(
        self, path: str, body: Mapping[str, Any], leave_after: int | None = None
    ) -> list[Any]:
        """Send a JSON request and return the events of its streamed answer.

        With `leave_after` the connection is closed after so many, as by a user who goes away.
        """
        request = self._request(path, {**body, "stream": True})
        events: list[Any] = []
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
            for line in answer:
                name, _, data = line.decode().partition(": ")
                if name != "data":
                    continue
                if data.strip() == "[DONE]":
                    return events
                events.append(json.loads(data))
                if len(events) == leave_after:
                    return events
        raise ServerFailed(f"{path}: the stream ended without [DONE]\n{tail(self.log)}")

    def prefills(self) -> list[int]:
        """New tokens of each prefill so far, by the log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return [int(count) for count in _PREFILL.findall(text)]

    def _request(self, path: str, body: Mapping[str, Any]) -> urllib.request.Request:
        return urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )

    def resident_bytes(self) -> dict[int, int]:
        """Memory of each process of the server, by process id; shared pages count in each."""
        resident = {}
        for member in _session(self.process.pid):
            try:
                pages = Path(f"/proc/{member}/statm").read_text(encoding="utf-8").split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            resident[member] = int(pages) * os.sysconf("SC_PAGE_SIZE")
        return resident

    def flush_cache(self) -> None:
        """Forget all cached prefixes; waits a moment for requests that have just ended."""
        deadline = time.monotonic() + 10.0
        while True:
            request = urllib.request.Request(f"{self.url}/flush_cache", method="POST")
            try:
                with urllib.request.urlopen(request, timeout=REQUEST_SECONDS):
                    return
            except urllib.error.HTTPError as error:
                if time.monotonic() > deadline:
                    raise ServerFailed(f"flush_cache: {error}\n{tail(self.log)}") from error
                time.sleep(0.2)

    def ledger(self, complete: Callable[[Ledger], bool], seconds: float = 15.0) -> Ledger:
        """The ledger once it is `complete`, or as it stands after some seconds.

        Processes write it a moment after they have served, not while.
        """
        deadline = time.monotonic() + seconds
        while True:
            ledger = read_ledger(self.run_dir)
            if complete(ledger) or time.monotonic() > deadline:
                return ledger
            time.sleep(0.25)


def serve_command(
    model: Path,
    port: int,
    run_dir: Path,
    options: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> list[str]:
    """`kunlun-adapt serve --simulator`, as a user types it; `options` are its own."""
    script = Path(sys.executable).with_name("kunlun-adapt")
    if not script.exists():
        raise ServerFailed(f"kunlun-adapt is not installed beside {sys.executable}")
    own = ["--simulator", "--run-dir", str(run_dir), *options]
    command = [str(script), "serve", *own, "--"]
    return [*command, *_sglang_arguments(model, port), *arguments]


def plain_command(model: Path, port: int, arguments: Sequence[str] = ()) -> list[str]:
    """SGLang's own launcher, without us."""
    command = [sys.executable, "-m", "sglang.launch_server"]
    return [*command, *_sglang_arguments(model, port), *arguments]


def _sglang_arguments(model: Path, port: int) -> list[str]:
    address = ["--host", "127.0.0.1", "--port", str(port)]
    # An argument given again by a test replaces the first.
    return ["--model-path", str(model), *SERVER_ARGUMENTS, *PAGE_SIZE, *address]


def server_environment(run_dir: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a server: one thread per process, no network, its ledger in `run_dir`.

    What the surrounding shell says about SGLang or about us does not reach the server.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SGLANG_", "KUNLUN_ADAPT_", "PYTHONPATH"))
    }
    kept.update(
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
        PYTHONUNBUFFERED="1",
        KUNLUN_ADAPT_RUN_DIR=str(run_dir),
    )
    kept.update(extra or {})
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return kept


@contextmanager
def running(
    command: Command,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    waiting: Waiting | None = None,
    cwd: Path | None = None,
) -> Iterator[Server]:
    """Start `command(port, run_dir)`, wait until it answers, and stop all of it at the end.

    `folder` receives the log and the ledger. `waiting` is called with the seconds since the start
    about once a second. Raises ServerFailed if the process ends first or does not answer in time,
    or if a process of it outlives the stop.
    """
    port = free_port()
    process, log, run_dir = _start(command, port, folder, environment, cwd)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_healthy(url, process, log, waiting)
        yield Server(url, log, run_dir, process)
    except BaseException:
        _kill(_session(process.pid))
        raise
    stop(process)


def run_until_exit(
    command: Command,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    seconds: float = START_SECONDS,
    cwd: Path | None = None,
) -> tuple[int, str]:
    """Start a server that is expected to refuse; return its exit code and everything it printed."""
    port = free_port()
    process, log, _ = _start(command, port, folder, environment, cwd)
    deadline = time.monotonic() + seconds
    try:
        while process.poll() is None:
            if _healthy(f"http://127.0.0.1:{port}"):
                raise ServerFailed(f"the server started, though it should not\n{tail(log)}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"no end within {seconds:.0f} s\n{tail(log)}")
            time.sleep(0.5)
    except BaseException:
        _kill(_session(process.pid))
        raise
    stop(process)
    return process.returncode, log.read_text(encoding="utf-8", errors="replace")


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tail(log: Path) -> str:
    """The end of a log, for an error message."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
    # SGLang logs all its arguments in one line of many thousand characters.
    return "\n".join([f"--- end of {log.name}", *(line[:LOG_WIDTH] for line in lines)])


def _start(
    command: Command,
    port: int,
    folder: Path,
    environment: Mapping[str, str] | None,
    cwd: Path | None,
) -> tuple[subprocess.Popen[bytes], Path, Path]:
    run_dir = folder / "run"
    run_dir.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    with log.open("wb") as sink:
        # A session of its own: what the server starts can be found and ended with it.
        process = subprocess.Popen(
            command(port, run_dir),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=server_environment(run_dir, environment),
            cwd=cwd or folder,
            start_new_session=True,
        )
    return process, log, run_dir


def _wait_until_healthy(
    url: str, process: subprocess.Popen[bytes], log: Path, waiting: Waiting | None
) -> None:
    started = time.monotonic()
    while not _healthy(url):
        code = process.poll()
        if code is not None:
            raise ServerFailed(f"the server ended with exit code {code}\n{tail(log)}")
        seconds = time.monotonic() - started
        if seconds > START_SECONDS:
            raise ServerFailed(f"no answer within {START_SECONDS:.0f} s\n{tail(log)}")
        if waiting is not None:
            waiting(seconds)
        time.sleep(1.0)


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the first process to end, as a service manager would; nothing may outlive it.

    Raises ServerFailed if something does, after ending it.
    """
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    left = _wait_until_gone(process)
    if not left:
        return
    _kill(left)
    raise ServerFailed(f"processes outlived the server and were killed: {left}")


def _kill(members: list[int]) -> None:
    for member in members:
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _wait_until_gone(process: subprocess.Popen[bytes]) -> list[int]:
    """Wait for the session to empty; return who is still there after `STOP_SECONDS`."""
    deadline = time.monotonic() + STOP_SECONDS
    while True:
        process.poll()
        left = _session(process.pid)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _session(leader: int) -> list[int]:
    """The living processes of the session that `leader` started."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name in parentheses may hold anything; the fields follow its last parenthesis.
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, session = fields[0], int(fields[3])
        if session == leader and state not in "ZX":
            members.append(int(entry.name))
    return members

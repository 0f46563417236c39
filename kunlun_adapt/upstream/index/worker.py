"""The second process of a build: files come in, scanned modules go out, each with its length."""

from __future__ import annotations

import gc
import struct
import sys
from typing import IO

from kunlun_adapt.upstream.index.scan import scan_module

_LENGTH = struct.Struct(">I")
MAX_BLOCK = 1 << 30


def send(stream: IO[bytes], *blocks: bytes) -> None:
    """Write blocks of bytes, each after its length."""
    for block in blocks:
        stream.write(_LENGTH.pack(len(block)))
        stream.write(block)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one block; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MAX_BLOCK:
        return None
    block = stream.read(length)
    return block if len(block) == length else None


def main() -> None:
    """Scan what comes in on stdin until it ends."""
    gc.disable()
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    # Whatever else prints must not get between the answers.
    sys.stdout = sys.stderr
    while True:
        blocks = [receive(given) for _ in range(3)]
        module, file, source = blocks
        if module is None or file is None or source is None:
            return
        scanned = scan_module(module.decode(), file.decode(), source)
        send(answers, scanned.packed())


if __name__ == "__main__":
    main()

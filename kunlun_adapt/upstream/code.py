"""The hash of our own code, on which what is kept of a release depends beside the release."""

from __future__ import annotations

import hashlib
from pathlib import Path


def code_digest(*files: str) -> str:
    """The digest of source files of ours, which a result that they compute depends on."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()

"""Examples of findings about the documents as a whole."""

from __future__ import annotations

from tests.check.examples import Example

EXAMPLES: dict[str, Example] = {}

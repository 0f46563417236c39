"""Examples of findings about combinations of bindings."""

from __future__ import annotations

from tests.check.examples import Example

EXAMPLES: dict[str, Example] = {}

"""Examples of findings about operators and tiers."""

from __future__ import annotations

from tests.check.examples import Example

EXAMPLES: dict[str, Example] = {}

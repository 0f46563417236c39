"""Examples of findings about upstream's symbols, by their use."""

from __future__ import annotations

from tests.check.examples import Example

EXAMPLES: dict[str, Example] = {}

"""Examples of findings about the platform interface and the stack."""

from __future__ import annotations

from tests.check.examples import Example

EXAMPLES: dict[str, Example] = {}

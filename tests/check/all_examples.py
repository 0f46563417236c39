"""Every example, by its code."""

from __future__ import annotations

from tests.check import (
    examples,
    examples_combinations,
    examples_documents,
    examples_operators,
    examples_platform,
    examples_targets,
    examples_usage,
)

_TABLES = (
    examples.EXAMPLES,
    examples_documents.EXAMPLES,
    examples_targets.EXAMPLES,
    examples_usage.EXAMPLES,
    examples_platform.EXAMPLES,
    examples_operators.EXAMPLES,
    examples_combinations.EXAMPLES,
)

EXAMPLES = {code: example for table in _TABLES for code, example in table.items()}

"""Adapters that put vendor ops behind an operator's own, release-independent parameters."""

"""Modules that must exist before upstream imports them, each refusing what it does not provide."""

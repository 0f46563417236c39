"""Operator references in plain PyTorch: the yardstick and the last resort."""

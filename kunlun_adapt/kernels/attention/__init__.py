"""Attention on the device: vendor kernels, and the backend class that calls them."""

from __future__ import annotations

BACKEND = "kunlun"
"""The name under which upstream knows our attention backend."""

"""kunlun_adapt simulator stand-in for triton.backends: no backend is there."""

from __future__ import annotations

backends: dict[str, object] = {}

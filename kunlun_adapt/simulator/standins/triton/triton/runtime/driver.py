"""kunlun_adapt simulator stand-in for triton.runtime.driver: there is no active device."""

from __future__ import annotations

from typing import NoReturn

from triton._standin import STANDIN


class _NoDriver:
    def __getattr__(self, name: str) -> NoReturn:
        # The real driver raises RuntimeError without a device; upstream expects just that.
        raise RuntimeError(f"{STANDIN}: there is no active Triton driver (asked for {name!r})")


active = _NoDriver()

"""Following upstream: the lock."""

from kunlun_adapt.evolve.lock import lock_for, usage_for

__all__ = ["lock_for", "usage_for"]

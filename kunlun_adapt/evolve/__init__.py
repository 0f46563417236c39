"""Following upstream: the lock."""

from kunlun_adapt.evolve.lock import lock_for, usage_for
from kunlun_adapt.evolve.lock_changes import lock_changes

__all__ = ["lock_changes", "lock_for", "usage_for"]

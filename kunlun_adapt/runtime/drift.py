"""What is replaced, compared with what it was when it was locked.

A replaced function is upstream's own no longer: what upstream changes in it reaches nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from packaging.version import Version

from kunlun_adapt.plan import Binding, Plan
from kunlun_adapt.runtime.prepare import STRICT
from kunlun_adapt.runtime.stop import Failure, command, stop
from kunlun_adapt.upstream import Lock, Symbol

logger = logging.getLogger("kunlun_adapt")


def judge_drift(plan: Plan, lock: Lock, *, strict: bool) -> None:
    """Say which replaced symbols are not as locked. Raises SystemExit where that is strict.

    `plan` was made from the installed tree. What the lock does not hold of its release is compared
    with the newest release before it.
    """
    failures = list(_drifted(plan, lock))
    if not failures:
        return
    title = f"{len(failures)} replaced symbol(s) of sglang {plan.release} are not as locked"
    logger.warning("%s:\n%s", title, "\n".join(f"  {f.id}: {f.why}" for f in failures))
    if strict:
        raise stop(
            f"{title}, and {STRICT}=1",
            failures,
            f"look at what upstream changed, then run `{command('lock')}`; or unset {STRICT}",
        )


def _drifted(plan: Plan, lock: Lock) -> Iterator[Failure]:
    for binding, symbol in _replaced(plan):
        seen = _locked(lock, symbol.path, plan.release)
        if seen is None:
            yield Failure(binding.id, f"{symbol.path} is replaced, and the lock does not hold it")
            continue
        release, held = seen
        if held.fingerprint != symbol.fingerprint:
            yield Failure(
                binding.id,
                f"{symbol.path} is replaced, and its body is not what was locked of sglang "
                f"{release} ({symbol.location})",
            )


def _replaced(plan: Plan) -> Iterator[tuple[Binding, Symbol]]:
    for hook in plan.hooks:
        if hook.hook.type == "replace" and isinstance(hook.symbol, Symbol):
            yield hook.binding, hook.symbol
    for kernel in plan.kernels:
        if isinstance(kernel.call, Symbol):
            yield kernel.binding, kernel.call


def _locked(lock: Lock, path: str, release: str) -> tuple[str, Symbol] | None:
    """Return the release that is to be compared with, and the symbol there."""
    for name in reversed(lock.releases):
        symbol = lock.symbol(name, path)
        if symbol is not None and Version(name) <= Version(release):
            return name, symbol
    return None

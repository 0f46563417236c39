"""The two doors that SGLang opens: the early one for shims and kernels, the late one for hooks."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.runtime import ledger, roles
from kunlun_adapt.runtime.binder import Binder
from kunlun_adapt.runtime.generated import PACKAGE, publish
from kunlun_adapt.runtime.hooks import HookInstaller, read_back_after_apply
from kunlun_adapt.runtime.prepare import installed_sglang, prepare
from kunlun_adapt.runtime.stop import Failure, refuse_failures, stop, stop_for

logger = logging.getLogger("kunlun_adapt")

_binder: Binder | None = None
_hooked = False


def open_early_door(profile: str) -> str:
    """Bind what must be bound before upstream imports it; return the platform class's path.

    Raises SystemExit(1), with the reason on stderr, where that cannot be done.
    """
    global _binder
    try:
        if profile == "simulator":
            from kunlun_adapt import simulator

            simulator.install()
        bindings = _publish(profile)
        _binder = Binder(bindings.DISPATCH_KEY)
        bindings.install(_binder)
        _binder.check_references()
    except AdaptError as error:
        raise stop_for(error, "the platform cannot be activated") from error
    except Exception as error:  # upstream would log an exception and go on without us
        logger.exception("the early door failed")
        raise stop(
            "the platform cannot be activated",
            [Failure("kunlun-adapt", f"{type(error).__name__}: {error}")],
            "see the traceback above",
        ) from error
    refuse_failures()
    ledger.settle_with(_binder.settle)
    ledger.start_writer()
    _say_hello(bindings)
    return str(bindings.PLATFORM)


def _publish(profile: str) -> Any:
    from kunlun_adapt.locate import find_workspace

    root = find_workspace()
    installed = installed_sglang()
    ledger.LEDGER.release = installed.version
    ledger.LEDGER.profile = profile
    ledger.LEDGER.workspace = str(root)
    made = prepare(root, installed, profile)
    publish(made.modules, f"sglang {installed.version} {profile}")
    bindings = importlib.import_module(f"{PACKAGE}.bindings")
    roles.know(bindings.PROCESSES)
    return bindings


def _say_hello(bindings: Any) -> None:
    bound, planned, excluded = bindings.COUNTS
    note = " (simulator: vendor operators are stand-ins that compute on the CPU)"
    logger.info(
        "kunlun-adapt in the %s process: sglang %s, profile %s%s, %d bound, %d planned, %d excluded",
        roles.current(),
        bindings.RELEASE,
        bindings.PROFILE,
        note if bindings.PROFILE == "simulator" else "",
        bound,
        planned,
        excluded,
    )


def open_hook_door() -> None:
    """Register the hooks of this process, and have them read back once upstream applied them.

    Does nothing where the platform is not ours. Raises SystemExit(1) for a required binding that
    is not in effect.
    """
    global _hooked
    if _binder is None or _hooked:
        return
    _hooked = True
    try:
        registry = importlib.import_module("sglang.srt.plugins.hook_registry")
        installer = HookInstaller(roles.current(), registry.HookRegistry, registry.HookType)
        read_back_after_apply(registry.HookRegistry, installer)
        importlib.import_module(f"{PACKAGE}.hooks").install(installer)
        _binder.check_references()
    except Exception as error:  # upstream would log an exception and go on without our hooks
        logger.exception("the hook door failed")
        raise stop(
            "the hooks cannot be registered",
            [Failure("kunlun-adapt", f"{type(error).__name__}: {error}")],
            "see the traceback above",
        ) from error
    refuse_failures()

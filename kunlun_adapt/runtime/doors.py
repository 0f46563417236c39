"""The two doors that SGLang opens: the early one for shims and kernels, the late one for hooks."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.runtime import ledger, report, roles
from kunlun_adapt.runtime.binder import Binder
from kunlun_adapt.runtime.disabled import Without, disabled
from kunlun_adapt.runtime.entries import watch_entries
from kunlun_adapt.runtime.first_calls import watch_members
from kunlun_adapt.runtime.generated import PACKAGE, publish
from kunlun_adapt.runtime.hooks import HookInstaller, read_back_after_apply
from kunlun_adapt.runtime.imports import keep
from kunlun_adapt.runtime.owed import Owed
from kunlun_adapt.runtime.prepare import (
    documents_digest,
    installed_sglang,
    map_revision,
    prepare,
)
from kunlun_adapt.runtime.probe import SIMULATED
from kunlun_adapt.runtime.selection import check_selection
from kunlun_adapt.runtime.stop import Failure, refuse_failures, stop, stop_for, stop_unexpected
from kunlun_adapt.runtime.switches import check_switches

WORKER = "scheduler"
"""The process that asks the platform for its classes; the others never import them."""

_binder: Binder | None = None
_owed = Owed()
_platform: str | None = None
_hooked: str | None = None
"""The process whose hooks were registered, once they are."""
_disabled: frozenset[str] = frozenset()


def platform() -> str | None:
    """Return the path of our platform class once the early door is open."""
    return _platform


def open_early_door(profile: str) -> str:
    """Bind what must be bound before upstream imports it; return the platform class's path.

    Opens once per process. Raises SystemExit(1), with the reason on stderr, where it cannot.
    """
    global _binder, _platform, _disabled
    if _platform is not None:
        return _platform
    title = "the platform cannot be activated"
    try:
        check_selection()
        check_switches()
        if profile in SIMULATED.values():
            from kunlun_adapt import simulator

            simulator.install()
            if profile == SIMULATED["cuda"]:
                importlib.import_module("kunlun_adapt.simulator.masquerade").put_on()
        bindings = _publish(profile)
        _binder = Binder(bindings.DISPATCH_KEY)
        _disabled = disabled(bindings)
        watch_entries(bindings.WITHOUT_PLUGINS, _begin)
        bindings.install(Without(_binder, _disabled))
        hooks = importlib.import_module(f"{PACKAGE}.hooks")
        hooks.install(Without(_owed, _disabled))
        watch_members(str(bindings.PLATFORM))
        _binder.judge()
        ledger.settle_with(_binder.settle)
        ledger.start_writer()
        report.expect(_owed.overdue)
        _owed.watch_births(bindings.WITHOUT_PLUGINS)
    except AdaptError as error:
        raise stop_for(error, title) from error
    except Exception as error:  # upstream would log an exception and go on without us
        raise stop_unexpected(error, title) from error
    _platform = str(bindings.PLATFORM)
    return _platform


def _publish(profile: str) -> Any:
    from kunlun_adapt.locate import find_workspace

    root = find_workspace()
    installed = installed_sglang()
    record = ledger.LEDGER
    record.release, record.profile = installed.version, profile
    documents = documents_digest(root)
    record.workspace, record.map_revision = str(root), map_revision(documents)
    made = prepare(root, installed, profile, documents)
    publish(made.modules, f"sglang {installed.version} {profile}")
    bindings = importlib.import_module(f"{PACKAGE}.bindings")
    record.map = bindings.MAP
    _, record.planned, record.excluded = bindings.COUNTS
    roles.know(bindings.PROCESSES)
    return bindings


def open_hook_door() -> None:
    """Register the hooks of this process, and have them read back once upstream applied them.

    Does nothing where the platform is not ours. Raises SystemExit(1) for a required binding that
    is not in effect.
    """
    global _hooked
    if _binder is None or _hooked is not None:
        return
    _hooked = roles.current()
    try:
        registry = importlib.import_module("sglang.srt.plugins.hook_registry")
        installer = HookInstaller(registry.HookRegistry, registry.HookType)
        hooks = importlib.import_module(f"{PACKAGE}.hooks")
        hooks.install(Without(installer, _disabled))
        read_back_after_apply(
            registry.HookRegistry, installer, _binder.read_kernels, lambda: _applied(installer)
        )
        if roles.current() == WORKER:
            _binder.load_members()
        _binder.read_members()
        _binder.judge()
    except Exception as error:  # upstream would log an exception and go on without our hooks
        raise stop_unexpected(error, "the hooks cannot be registered") from error
    refuse_failures()


def _applied(installer: HookInstaller) -> None:
    """Keep the modules that have been hooked as they are, and say what is in effect."""
    for hook in installer.registered:
        owner = hook.target
        while owner not in sys.modules and "." in owner:
            owner = owner.rpartition(".")[0]
        keep(owner)
    _owed.paid()
    report.tell()


def _begin() -> None:
    """Register and apply our hooks in a process in which SGLang loads no plugins.

    Those of other plugins stay out of it, as SGLang has it.
    """
    role = roles.current()
    if _hooked not in (None, role, *roles.UNNAMED):
        raise stop(
            f"the hooks of the {role} process cannot be applied",
            [Failure("kunlun-adapt", f"this process has those of the {_hooked} process already")],
            f"start the {role} by spawn, as SGLang does; it must not be forked from the {_hooked}",
        )
    open_hook_door()
    importlib.import_module("sglang.srt.plugins.hook_registry").HookRegistry.apply_hooks()

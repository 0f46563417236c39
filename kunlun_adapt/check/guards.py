"""Which of a symbol's definitions can be there in the profiles of a binding."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.plan import HookBinding, KernelBinding
from kunlun_adapt.upstream import Symbol, Variant
from kunlun_adapt.upstream.guards import holds


def can_hold(guard: str | None, devices: Iterable[str]) -> bool:
    """Tell whether a guard may hold on any of the devices that platforms report as."""
    return any(holds(guard, device) is not False for device in devices)


def devices(context: Context, item: HookBinding | KernelBinding) -> dict[str, str]:
    """Return what the platform reports as in each profile that a binding is for."""
    profiles: dict[str, str] = {
        name: profile.reports_as for name, profile in context.map.device.profiles.items()
    }
    if isinstance(item, HookBinding):
        return {n: device for n, device in profiles.items() if n in item.hook.profiles}
    return profiles


def definitions(symbol: Symbol) -> tuple[Symbol | Variant, ...]:
    """Return a symbol and its variants; the None that stands in for a function is none."""
    value = symbol.kind in ("constant", "attribute")
    return (
        symbol,
        *(v for v in symbol.variants if value or v.kind not in ("constant", "attribute")),
    )

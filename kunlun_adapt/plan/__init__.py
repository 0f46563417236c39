"""Documents × release → plan; conditions and tiers."""

from kunlun_adapt.plan.binding import (
    WRAPPING,
    Binding,
    HookBinding,
    KernelBinding,
    Member,
    ModelBinding,
    ShimBinding,
    WarmUp,
    bind_groups,
)
from kunlun_adapt.plan.conditions import (
    DTYPES,
    Condition,
    ConditionError,
    Subject,
    parse_subject,
    parse_test,
    parse_when,
)
from kunlun_adapt.plan.derive import Derived, parse_derive
from kunlun_adapt.plan.guarded import present, unguarded
from kunlun_adapt.plan.members import (
    CAPABILITIES,
    PLATFORM,
    PLATFORM_KIND,
    SERVER_ARGS,
    SERVER_ARGS_ACCESSOR,
    binding_of,
    of_base,
    spelled,
)
from kunlun_adapt.plan.params import Param, parse_param
from kunlun_adapt.plan.plan import MAIN, PROCESS, Plan, forward_called, make_plan
from kunlun_adapt.plan.tiers import TierAnalysis, TierTable, analyse, call_values, tier_table

__all__ = [
    "CAPABILITIES",
    "DTYPES",
    "MAIN",
    "PLATFORM",
    "PLATFORM_KIND",
    "PROCESS",
    "SERVER_ARGS",
    "SERVER_ARGS_ACCESSOR",
    "WRAPPING",
    "Binding",
    "Condition",
    "ConditionError",
    "Derived",
    "HookBinding",
    "KernelBinding",
    "Member",
    "ModelBinding",
    "Param",
    "Plan",
    "ShimBinding",
    "Subject",
    "TierAnalysis",
    "TierTable",
    "WarmUp",
    "analyse",
    "bind_groups",
    "binding_of",
    "call_values",
    "forward_called",
    "make_plan",
    "of_base",
    "parse_derive",
    "parse_param",
    "parse_subject",
    "parse_test",
    "parse_when",
    "present",
    "spelled",
    "tier_table",
    "unguarded",
]

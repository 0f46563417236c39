"""Documents × release → plan; conditions and tiers."""

from .binding import Binding, HookBinding, KernelBinding, Member, ShimBinding
from .conditions import Condition, ConditionError, Subject, parse_subject, parse_test, parse_when
from .derive import Derived, parse_derive
from .members import CAPABILITIES, PLATFORM, PLATFORM_KIND, SERVER_ARGS, spelled
from .params import Param, parse_param
from .plan import Plan, make_plan
from .tiers import TierAnalysis, TierTable, analyse, call_values, tier_table

__all__ = [
    "CAPABILITIES",
    "PLATFORM",
    "PLATFORM_KIND",
    "SERVER_ARGS",
    "Binding",
    "Condition",
    "ConditionError",
    "Derived",
    "HookBinding",
    "KernelBinding",
    "Member",
    "Param",
    "Plan",
    "ShimBinding",
    "Subject",
    "TierAnalysis",
    "TierTable",
    "analyse",
    "call_values",
    "make_plan",
    "parse_derive",
    "parse_param",
    "parse_subject",
    "parse_test",
    "parse_when",
    "spelled",
    "tier_table",
]

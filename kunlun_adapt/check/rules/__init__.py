"""The rules, one module each, and the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.rules import (
    bound_twice,
    capability_at_default,
    capability_ignored,
    claim_beyond_lock,
    condition,
    conflict_active,
    custom_op_key,
    dangling_reexport,
    drift_since_lock,
    group_split,
    guard_off,
    hook_breaks_kind,
    hook_on_replaced_class,
    hook_on_value,
    implementation_not_found,
    implementation_signature,
    inherited_only,
    kernel_and_hook,
    kind_changed,
    left_and_given,
    member_signature,
    missing_why,
    name_collision,
    named_by_reexport,
    no_golden,
    no_golden_tier,
    no_platform_interface,
    no_stack_row,
    not_callable,
    not_locked,
    order_unstated,
    orphaned_member,
    parameter_inserted,
    planned,
    process_without_plugins,
    range_gap,
    range_overlap,
    reads_values,
    release_not_claimed,
    server_argument,
    signature_not_served,
    target_missing,
    target_moved,
    tier_gap,
    tier_overlap,
    tier_unreachable,
    tiers_sampled,
    unknown_vendor_op,
    unresolved_reference,
    unserved_member,
    unspelled_key,
    variants_differ,
    watched_changed,
    weight_layout,
)
from kunlun_adapt.diagnostics import Finding

Rule = Callable[[Context], Iterable[Finding]]

DOCUMENT_RULES: tuple[Rule, ...] = (
    unresolved_reference.rule,
    range_overlap.rule,
    missing_why.rule,
    implementation_not_found.rule,
    implementation_signature.rule,
    tier_gap.rule,
    condition.rule,
    reads_values.rule,
    tier_unreachable.rule,
    no_golden_tier.rule,
    unknown_vendor_op.rule,
    tiers_sampled.rule,
    no_golden.rule,
    tier_overlap.rule,
    weight_layout.rule,
    claim_beyond_lock.rule,
)
"""What a workspace owes to itself, whatever the release."""

CLAIM_RULES: tuple[Rule, ...] = (
    release_not_claimed.rule,
    no_platform_interface.rule,
)
"""Whether the map speaks of the release at all."""

RELEASE_RULES: tuple[Rule, ...] = (
    range_gap.rule,
    target_missing.rule,
    target_moved.rule,
    dangling_reexport.rule,
    kind_changed.rule,
    not_callable.rule,
    hook_breaks_kind.rule,
    hook_on_value.rule,
    named_by_reexport.rule,
    inherited_only.rule,
    guard_off.rule,
    variants_differ.rule,
    signature_not_served.rule,
    parameter_inserted.rule,
    drift_since_lock.rule,
    not_locked.rule,
    watched_changed.rule,
    orphaned_member.rule,
    unspelled_key.rule,
    capability_at_default.rule,
    unserved_member.rule,
    left_and_given.rule,
    bound_twice.rule,
    planned.rule,
    member_signature.rule,
    capability_ignored.rule,
    server_argument.rule,
    name_collision.rule,
    custom_op_key.rule,
    hook_on_replaced_class.rule,
    order_unstated.rule,
    group_split.rule,
    kernel_and_hook.rule,
    conflict_active.rule,
    process_without_plugins.rule,
    no_stack_row.rule,
)
"""What the map claims of the release: nothing to check where it claims nothing."""

RULES: tuple[Rule, ...] = (*DOCUMENT_RULES, *CLAIM_RULES, *RELEASE_RULES)

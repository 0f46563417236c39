"""KA206: a key that the map gives and, in `left_at_default`, does not give."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.left import given_all_the_same
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import binding_of


def rule(context: Context) -> Iterable[Finding]:
    """Report entries of `left_at_default` for a key that is given and spelled in this release."""
    for index, key in given_all_the_same(context):
        yield Finding.of(
            "KA206",
            f"the map gives {key}, which sglang {context.release} has, and says here that it stays "
            "as upstream has it",
            context.document.at("left_at_default", index, "member"),
            binding=binding_of(key),
            suggestion="remove this entry or the key, or let its `sglang` hold only for releases "
            "without such a member",
        )

"""KA304: a condition that reads or says what conditions cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.server_args import nearest_server_arg, unknown_server_arg
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import ConditionError, parse_subject, parse_test


def rule(context: Context) -> Iterable[Finding]:
    """Report faulty declarations, formulas and conditions of operators and server arguments."""
    for item in analysed(context):
        for fault in item.faults:
            yield Finding.of(
                "KA304",
                fault.message,
                fault.position,
                binding=binding_of(context, item.recipe),
                suggestion=fault.suggestion,
            )
    yield from _server_args(context)


def _server_args(context: Context) -> Iterator[Finding]:
    document = context.document
    for i, arg in enumerate(context.map.server_args):
        for text, value in arg.when.items():
            path = ("server_args", i, "when", text)
            try:
                subject = parse_subject(text)
            except ConditionError:
                subject = None
            if subject is None or subject.scope != "call" or subject.prop is not None:
                yield Finding.of(
                    "KA304",
                    f"{text!r} is not a server argument",
                    document.key_at(*path),
                    suggestion="name another argument, such as `attention_backend`",
                )
                continue
            if unknown_server_arg(context, arg, subject.root):
                yield Finding.of(
                    "KA304",
                    f"sglang {context.release} has no server argument {text!r}",
                    document.key_at(*path),
                    suggestion=nearest_server_arg(context, subject.root),
                )
                continue
            try:
                parse_test(subject, value)
            except ConditionError as error:
                yield Finding.of("KA304", f"{text}: {error}", document.at(*path))

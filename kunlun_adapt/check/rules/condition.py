"""KA304: a condition that reads or says what conditions cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.server_args import (
    lacks_server_arg,
    nearest_server_arg,
    unknown_server_arg,
)
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.plan import (
    SERVER_ARGS_ACCESSOR,
    ConditionError,
    parse_subject,
    parse_test,
    spelled,
)


def rule(context: Context) -> Iterable[Finding]:
    """Report faulty declarations, formulas and conditions of operators and server arguments."""
    for item in analysed(context):
        for fault in (f for f in item.faults if not f.values):
            yield Finding.of(
                "KA304",
                fault.message,
                fault.position,
                binding=binding_of(context, item.recipe),
                suggestion=fault.suggestion,
            )
        yield from _server_reads(context, item.recipe)
    yield from _server_args(context)


def _server_reads(context: Context, recipe: Document[OperatorRecipe]) -> Iterator[Finding]:
    """Report `server.` conditions on what the release does not have, or does not hand out."""
    spelling = spelled(context.map, SERVER_ARGS_ACCESSOR, context.release, context.beyond_claims)
    needed = recipe.model.status == "active" and (context.claimed or context.beyond_claims)
    for i, tier in enumerate(recipe.model.kernels):
        for text in tier.when:
            try:
                subject = parse_subject(text)
            except ConditionError:
                continue  # said above
            if subject.scope != "server":
                continue
            name = subject.root
            if lacks_server_arg(context, name):
                message = f"sglang {context.release} has no server argument {name!r}"
                tip = nearest_server_arg(context, name)
            elif needed and (spelling is None or spelling.call is None):
                message = (
                    f"{text}: nothing says how sglang {context.release} hands out its server "
                    "arguments"
                )
                tip = f"interface: {{{SERVER_ARGS_ACCESSOR}: [{{call: …}}]}}"
            else:
                continue
            place = recipe.key_at("kernels", i, "when", text)
            binding = binding_of(context, recipe)
            yield Finding.of("KA304", message, place, binding=binding, suggestion=tip)


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

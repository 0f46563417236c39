"""The pages of `docs/` that are made from the code: documents, command line, table of codes.

mkdocs calls `on_files` on each build, so these pages are never committed and never stale. The table
of codes is committed, since it ships with the package: `python tools/docs_pages.py` writes it anew.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kunlun_adapt.cli import app
from kunlun_adapt.diagnostics import CODES
from kunlun_adapt.documents import AdaptationRecipe, OperatorRecipe, PlatformMap, fields
from kunlun_adapt.documents.descriptions import described

ROOT = Path(__file__).resolve().parent.parent
CODES_INDEX = ROOT / "docs" / "codes" / "README.md"
DOCUMENTS, COMMANDS = "reference/documents.md", "reference/cli.md"

KINDS: dict[type[BaseModel], str] = {
    PlatformMap: "`platform_map.yaml`, one per workspace.",
    OperatorRecipe: "`operator_recipes/`, any number per file, separated by `---`.",
    AdaptationRecipe: "`recipes/`, one per model or feature.",
}
TYPES = {
    "Range": "a PEP 440 version range, such as `>=0.5.17,<0.5.24`; post-releases count",
    "Target": "a dotted path, such as `package.module.Class.method`",
    "Impl": "an implementation, `package.module:name`; it is read, and never imported to check",
    "Given": "an `Impl`, or a list of them by releases",
    "ByProfile": "a mapping from `card`, `simulator` or `simulator_cuda` to a `Given`",
    "Identifier": "a Python identifier",
    "ArgPath": "an upstream parameter or a path into one (`layer.weight`), `$grid` for a launch",
    "Slug": "a name of letters, digits, `_`, `-` and `.`",
    "Folder": "a folder, as seen from the workspace",
    "Why": "the reason, in a sentence; never empty",
    "Date": "a date, `YYYY-MM-DD`",
    "Scalar": "true, false, a number, a text, or none",
    "When": "conditions: see [Conditions](../conditions.md)",
    "Case": "a scalar, or a shape such as `[7, 512]`",
}
"""Field types that have a name of their own and are no models."""

SECTIONS = {
    "0": "The documents",
    "1": "Upstream's symbols",
    "2": "The platform interface",
    "3": "Implementations, operators and tiers",
    "4": "Combinations",
    "5": "The stack",
}
_CODES_HEAD = """\
# Finding codes

Each finding of `kunlun-adapt validate` carries a code. A code stands for one rule and keeps its
meaning; `kunlun-adapt explain CODE` prints its page. Errors give exit code 1, warnings do not
unless `--fail-on warning` is given; `--select` and `--ignore` choose codes.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to a build; mkdocs calls this."""
    from mkdocs.structure.files import File

    for name, text in ((DOCUMENTS, documents_page()), (COMMANDS, commands_page())):
        files.append(File.generated(config, name, content=text))
    return files


def codes_index() -> str:
    """Return the table of codes, by section."""
    parts = [_CODES_HEAD]
    for digit, title in SECTIONS.items():
        rows = [
            f"| [{c.code}]({c.code}.md) | {c.name} | {c.severity.value} | {c.meaning} |\n"
            for c in CODES.values()
            if c.code[2] == digit
        ]
        parts.append(f"\n## {title}\n\n| code | name | severity | meaning |\n|---|---|---|---|\n")
        parts += rows
    return "".join(parts)


def documents_page() -> str:
    """Return the reference of all documents: each model, each key."""
    lines = [
        "# Documents",
        "",
        "Every document is YAML 1.2 with `apiVersion: kunlun-adapt/v1` and its `kind`. Unknown and "
        "duplicate keys, tags and values of another type are findings. `kunlun-adapt schema KIND` "
        "prints the JSON Schema for your editor. Bold keys must be given.",
        "",
    ]
    done: set[type[BaseModel]] = set()
    for kind, where in KINDS.items():
        lines += [f"## {kind.__name__}", "", f"{_about(kind)}", "", f"In {where}", ""]
        lines += _keys(kind)
        for model in _below(kind, done):
            lines += [f"### {model.__name__}", "", _about(model), "", *_keys(model)]
        done.add(kind)
    lines += ["## Types", "", "| type | stands for |", "|---|---|"]
    names = {**TYPES, **_choices()}
    lines += [f"| `{name}` | {meaning} |" for name, meaning in names.items()]
    return "\n".join(lines) + "\n"


def _about(thing: object) -> str:
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def _keys(model: type[BaseModel]) -> list[str]:
    lines = ["| key | type | default | |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        key = field.alias or name
        shown = f"**`{key}`**" if field.is_required() else f"`{key}`"
        text = (described(model, key) or "").replace("|", "\\|").replace("\n", " ")
        written = _written(model, name)
        lines.append(f"| {shown} | {_linked(written)} | {_default(field)} | {text} |")
    return [*lines, ""]


def _written(model: type[BaseModel], name: str) -> str:
    """Return a field's type as the source has it, without what pydantic adds to it."""
    for base in model.__mro__:
        text = inspect.get_annotations(base).get(name)
        if text is not None:
            text = text if isinstance(text, str) else getattr(text, "__name__", str(text))
            return re.sub(r"Annotated\[(.+?), .+\]$", r"\1", text)
    raise LookupError(f"{model.__name__}.{name}")


def _linked(written: str) -> str:
    """Return a type with links to the models and types that it names."""
    models = {m.__name__ for kind in KINDS for m in (kind, *_below(kind, set()))}
    named = {**TYPES, **_choices()}
    readable = written.replace("list[", "list of [").replace("dict[", "mapping [")

    def link(found: re.Match[str]) -> str:
        word = found[0]
        if word in models:
            return f"[{word}](#{word.lower()})"
        return f"[{word}](#types)" if word in named else word

    literal = re.match(r"Literal\[(.*)\]$", readable)
    if literal:
        return ", ".join(f"`{value.strip(chr(34))}`" for value in literal[1].split(", "))
    readable = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(chr(34), "`"), readable)
    readable = readable.replace("[", "\\[").replace("|", "\\|")
    return re.sub(r"[A-Z]\w+", link, readable)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    if value is None or value in ([], {}) or isinstance(value, BaseModel):
        return ""
    shown = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
    return f"`{', '.join(shown) if isinstance(shown, list) else shown}`"


def _below(model: type[BaseModel], done: set[type[BaseModel]]) -> list[type[BaseModel]]:
    """Return the models that a model is made of, in the order in which they are met."""
    found: list[type[BaseModel]] = []
    for field in model.model_fields.values():
        for inner in _models(field.annotation):
            if inner not in done:
                done.add(inner)
                found += [inner, *_below(inner, done)]
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _choices() -> dict[str, str]:
    """Return the types that are one of a few words, with the words."""
    spaces = [vars(fields)] + [vars(sys.modules[kind.__module__]) for kind in KINDS]
    return {
        name: " or ".join(f"`{word}`" for word in get_args(value))
        for space in spaces
        for name, value in space.items()
        if get_origin(value) is Literal
    }


def commands_page() -> str:
    """Return the reference of the command line: each command, each option."""
    lines = [
        "# Command line",
        "",
        "Exit codes: 0 fine, 1 findings, 2 the job could not be done. Results go to stdout, all "
        "else to stderr. A reader that leaves early, such as `head`, changes no exit code; a "
        "closed stdout is an error. The [JSON output](../json.md) is versioned.",
        "",
    ]
    for command in app.registered_commands:
        function = command.callback
        assert function is not None
        name = command.name or function.__name__
        about, _, examples = inspect.cleandoc(function.__doc__ or "").partition("Examples:")
        lines += [f"## `kunlun-adapt {name}`", "", about.strip(), ""]
        lines += _parameters(function)
        shown = [line.strip() for line in examples.splitlines() if line.strip()]
        if shown:
            lines += ["```console", *(f"$ {line}" for line in shown), "```", ""]
    return "\n".join(lines)


def _parameters(function: Any) -> list[str]:
    hints = get_type_hints(function, include_extras=True)
    lines = ["| | | default | |", "|---|---|---|---|"]
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if get_origin(hint) is not Annotated:
            continue
        inner, info = get_args(hint)[:2]
        # typer keeps the first name where a default would stand.
        spelled = [str(getattr(info, "default", "")), *(getattr(info, "param_decls", None) or ())]
        kind = type(info).__name__
        flags = " ".join(f"`{flag}`" for flag in spelled if flag.startswith("-"))
        if not flags:
            flags = (
                f"`{name.upper()}`" if kind == "ArgumentInfo" else f"`--{name.replace('_', '-')}`"
            )
        text = (getattr(info, "help", "") or "").replace("|", "\\|")
        value = getattr(info, "metavar", None) or _values(inner)
        lines.append(f"| {flags} | {value} | {_shown(parameter.default)} | {text} |")
    return [*lines, ""] if len(lines) > 2 else []


def _values(hint: Any) -> str:
    """Return the words that an option takes, where there are few of them."""
    for part in (hint, *get_args(hint)):
        if isinstance(part, type) and issubclass(part, Enum):
            return ", ".join(f"`{member.value}`" for member in part)
        if get_origin(part) is Literal:
            return ", ".join(f"`{word}`" for word in get_args(part))
        if isinstance(part, type) and issubclass(part, Path):
            return "PATH"
    return "" if hint is bool else "TEXT"


def _shown(default: Any) -> str:
    if isinstance(default, Enum):
        return f"`{default.value}`"
    return "" if default in (None, False, inspect.Parameter.empty) else f"`{default}`"


if __name__ == "__main__":
    CODES_INDEX.write_text(codes_index(), encoding="utf-8")

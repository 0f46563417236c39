"""The JSON Schemas of the documents, made from the models that read them.

What a schema cannot say (that a range is not empty, that a hook of some type needs a value) the
models still check. The form is our own where pydantic's differs between its releases: a committed
schema must not change because a dependency did.
"""

from __future__ import annotations

import json
import re
from typing import Any, get_args

from pydantic import BaseModel

from kunlun_adapt.documents.descriptions import described
from kunlun_adapt.documents.parse import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = ("boolean", "integer", "number", "string", "null")


def kind_named(text: str) -> str | None:
    """Return the kind that a user names, in any case and with any hyphens, or None."""
    wanted = re.sub(r"[-_ ]", "", text).lower()
    return next((kind for kind in KINDS if kind.lower() == wanted), None)


def schema_file(kind: str) -> str:
    """Return the name of a kind's schema file: `platform-map.schema.json`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower() + ".schema.json"


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document."""
    model = KINDS[kind]
    made = model.model_json_schema(by_alias=True)
    definitions = made.pop("$defs", {})
    for part in models(model):
        body = made if part is model else definitions[part.__name__]
        for key, field in body["properties"].items():
            text = described(part, key)
            if text is not None:
                field["description"] = text
    root = _tidy(made)
    tidied = {name: _tidy(body) for name, body in sorted(definitions.items())}
    return {"$schema": DIALECT, "title": kind, **root, "$defs": tidied}


def schema_text(kind: str) -> str:
    """Return the text of a kind's schema file."""
    return json.dumps(json_schema(kind), indent=2, ensure_ascii=False) + "\n"


def models(root: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """Return a model and those that it is made of, each once, in the order of their keys."""
    found: dict[type[BaseModel], None] = {}
    pending: list[Any] = [root]
    while pending:
        part = pending.pop(0)
        if isinstance(part, type) and issubclass(part, BaseModel):
            if part not in found:
                found[part] = None
                pending = [f.annotation for f in part.model_fields.values()] + pending
        else:
            pending = [*get_args(part), *pending]
    return tuple(found)


def _tidy(node: Any) -> Any:
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidied = {
        key: _named(value) if key in ("properties", "patternProperties") else _tidy(value)
        for key, value in node.items()
        # Its own name says no more of a field than its key.
        if key != "title"
    }
    choices = tidied.get("enum")
    if isinstance(choices, list) and len(choices) == 1:
        tidied["const"] = choices[0]
        del tidied["enum"]
    if "const" in tidied or "enum" in tidied:
        tidied.pop("type", None)
    if len(tidied.get("patternProperties", ())) == 1:
        # As pydantic has it any other key would be let through.
        ((pattern, value),) = tidied.pop("patternProperties").items()
        tidied |= {"propertyNames": {"pattern": pattern}, "additionalProperties": value}
    if "anyOf" in tidied:
        tidied = _merged(tidied)
    return dict(sorted(tidied.items(), key=_rank))


def _named(properties: dict[str, Any]) -> dict[str, Any]:
    return {key: _tidy(value) for key, value in properties.items()}


def _merged(node: dict[str, Any]) -> dict[str, Any]:
    """Write the members of a union that are bare types as one list of types."""
    bare = [m["type"] for m in node["anyOf"] if list(m) == ["type"] and isinstance(m["type"], str)]
    others = [m for m in node["anyOf"] if list(m) != ["type"] or not isinstance(m["type"], str)]
    names = sorted({*bare} - ({"integer"} if "number" in bare else set()), key=_PLAIN.index)
    if not names:
        return node
    member = {"type": names if len(names) > 1 else names[0]}
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**rest, "anyOf": [*others, member]} if others else {**rest, **member}


def _rank(item: tuple[str, Any]) -> int:
    order = ("description", "type", "const", "enum", "pattern", "anyOf", "properties", "required")
    return order.index(item[0]) if item[0] in order else len(order)

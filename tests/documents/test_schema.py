"""The published JSON Schemas: fresh, described, and in agreement with the models."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kunlun_adapt.documents import KINDS, RawDocument, load_bytes, load_file, parse
from kunlun_adapt.documents.schema import (
    json_schema,
    kind_named,
    models,
    schema_file,
    schema_text,
)
from kunlun_adapt.locate import MAP_FILE, OPERATORS, RECIPES
from tests.documents.test_parse import MAP, RECIPE

ROOT = Path(__file__).resolve().parents[2]
PLACES = {MAP_FILE: "PlatformMap", OPERATORS: "OperatorRecipe", RECIPES: "AdaptationRecipe"}
FILES = [
    ROOT / MAP_FILE,
    *sorted((ROOT / OPERATORS).rglob("*.yaml")),
    *sorted((ROOT / RECIPES).rglob("*.yaml")),
]


def kind_of(path: Path) -> str:
    return PLACES[path.relative_to(ROOT).parts[0]]


def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(kind))


def documents(text: str) -> list[RawDocument]:
    found, findings = load_bytes(text.encode(), "f.yaml")
    assert findings == []
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_schema_is_what_the_models_say(kind: str) -> None:
    committed = (ROOT / "schemas" / schema_file(kind)).read_text(encoding="utf-8")
    assert committed == schema_text(kind), f"run kunlun-adapt schema {kind} --out schemas"


def test_no_other_schema_is_committed() -> None:
    found = {path.name for path in (ROOT / "schemas").iterdir()}
    assert found == {schema_file(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one(kind: str) -> None:
    schema = json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    for body in (schema, *schema["$defs"].values()):
        assert body["additionalProperties"] is False
        assert body["description"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_names_keys_as_documents_do(kind: str) -> None:
    schema = json_schema(kind)
    for model in models(KINDS[kind]):
        body = schema if model is KINDS[kind] else schema["$defs"][model.__name__]
        wanted = {info.alias or name for name, info in model.model_fields.items()}
        assert set(body["properties"]) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described(kind: str) -> None:
    schema = json_schema(kind)
    for name, body in (("", schema), *schema["$defs"].items()):
        silent = [key for key, field in body["properties"].items() if not field.get("description")]
        assert silent == [], f"{kind} {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_shipped_document_keeps_to_its_schema(path: Path) -> None:
    found, findings = load_file(path, path.name)
    assert findings == [] and found
    check = validator(kind_of(path))
    for document in found:
        assert [e.message for e in check.iter_errors(document.data)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_shipped_document_points_its_editor_to_the_schema(path: Path) -> None:
    schema = os.path.relpath(ROOT / "schemas" / schema_file(kind_of(path)), path.parent)
    place = schema if schema.startswith(".") else f"./{schema}"
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"# yaml-language-server: $schema={place}"


WRONG: list[tuple[str, str, str, str]] = [
    ("PlatformMap", MAP, "name: kunlun", "nam: kunlun"),
    ("PlatformMap", MAP, "name: kunlun", "name: 'no name'"),
    ("PlatformMap", MAP, "kind: PlatformMap", "kind: Map"),
    ("OperatorRecipe", RECIPE, "capture: safe", "capture: maybe"),
    ("OperatorRecipe", RECIPE, "capture: safe", "capture: safe\ncases: 3"),
    ("OperatorRecipe", RECIPE, "capture: safe", "capture: safe\nreads: {a b: x.y}"),
    ("OperatorRecipe", RECIPE, "capture: safe", "capture: safe\nreads: {mode: 'x y'}"),
    ("OperatorRecipe", RECIPE, "capture: safe", "capture: safe\nserved: {simulator: 1}"),
    ("OperatorRecipe", RECIPE, "{name: golden,", "{name: golden, impl: no_colon,"),
    ("OperatorRecipe", RECIPE, "capture: safe", "capture: safe\nprecision: {float16: {cosine: 2}}"),
]


@pytest.mark.parametrize(("kind", "text", "old", "new"), WRONG)
def test_what_the_models_refuse_an_editor_shows(kind: str, text: str, old: str, new: str) -> None:
    (sound,) = documents(text)
    assert list(validator(kind).iter_errors(sound.data)) == []
    assert parse(sound, kind)[1] == []
    assert old in text
    (wrong,) = documents(text.replace(old, new, 1))
    assert list(validator(kind).iter_errors(wrong.data)) != []
    assert parse(wrong, kind)[1] != []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("PlatformMap", "PlatformMap"), ("platform-map", "PlatformMap"),
        ("operator_recipe", "OperatorRecipe"), ("ADAPTATIONRECIPE", "AdaptationRecipe"),
        ("Adaptation Recipe", "AdaptationRecipe"), ("map", None), ("", None),
    ],
)  # fmt: skip
def test_a_kind_may_be_spelled_in_many_ways(text: str, kind: str | None) -> None:
    assert kind_named(text) == kind


def test_a_schema_has_no_trace_of_the_models_own_names() -> None:
    def titles(node: Any) -> int:
        if isinstance(node, dict):
            return ("title" in node) + sum(titles(v) for v in node.values())
        return sum(map(titles, node)) if isinstance(node, list) else 0

    for kind in KINDS:
        assert titles(json_schema(kind)) == 1
        assert json.loads(schema_text(kind)) == json_schema(kind)

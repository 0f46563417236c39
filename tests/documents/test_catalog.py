from __future__ import annotations

from pathlib import Path

from kunlun_adapt.documents import Catalog, load_catalog
from tests.documents.test_parse import MAP, RECIPE


def workspace(root: Path, files: dict[str, str]) -> Catalog:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return load_catalog(root)


def said(catalog: Catalog) -> list[tuple[str, str]]:
    return [(f.code, f"{f.position}: {f.message}") for f in catalog.findings]


def test_a_workspace_is_read_in_a_stable_order(tmp_path: Path) -> None:
    other = RECIPE.replace("silu_and_mul", "other")
    third = RECIPE.replace("silu_and_mul", "third")
    files = {
        "platform_map.yaml": MAP,
        "operator_recipes/z.yaml": RECIPE,
        "operator_recipes/a/b.yaml": f"{other}---\n{third}",
    }
    catalog = workspace(tmp_path, files)
    assert said(catalog) == []
    assert [d.model.name for d in catalog.operators] == ["other", "third", "silu_and_mul"]
    assert catalog.operators[1].at("name").line == 1 + RECIPE.count("\n") + 3
    found = catalog.operator("third")
    assert found is catalog.operators[1]
    assert catalog.operator("none") is None


def test_a_missing_or_empty_map_is_a_finding(tmp_path: Path) -> None:
    catalog = workspace(tmp_path, {})
    assert catalog.platform_map is None
    assert [code for code, _ in said(catalog)] == ["KA001"]
    catalog = workspace(tmp_path, {"platform_map.yaml": "# later\n"})
    assert catalog.platform_map is None
    assert "holds no document" in said(catalog)[0][1]


def test_a_second_map_is_a_finding_at_its_place(tmp_path: Path) -> None:
    catalog = workspace(tmp_path, {"platform_map.yaml": f"{MAP}---\n{MAP}"})
    line = MAP.count("\n") + 2
    assert len(said(catalog)) == 1
    code, text = said(catalog)[0]
    assert code == "KA002"
    assert text.startswith(f"platform_map.yaml:{line}:1: platform_map.yaml holds 2 documents")


def test_a_document_in_the_wrong_place_is_a_finding(tmp_path: Path) -> None:
    files = {"platform_map.yaml": MAP, "recipes/x.yaml": RECIPE}
    catalog = workspace(tmp_path, files)
    assert catalog.recipes == ()
    assert "must be AdaptationRecipe in this place" in said(catalog)[0][1]


def test_a_file_that_would_be_passed_over_is_a_finding(tmp_path: Path) -> None:
    files = {"platform_map.yaml": MAP, "operator_recipes/x.yml": RECIPE}
    catalog = workspace(tmp_path, files)
    assert catalog.operators == ()
    assert "operator_recipes/x.yml:1:1: only files named *.yaml" in said(catalog)[0][1]
    assert catalog.findings[0].suggestion == "rename it to x.yaml"


def test_names_are_given_once(tmp_path: Path) -> None:
    hook = "{id: h, why: w, type: after, impl: 'a:b', at: [{target: t}]}"
    twice = RECIPE.replace("true}\n", "true}\n  - {name: golden}\n")
    files = {
        "platform_map.yaml": f"{MAP}hooks:\n  - {hook}\n  - {hook}\n",
        "operator_recipes/a.yaml": twice,
        "operator_recipes/b.yaml": RECIPE,
    }
    catalog = workspace(tmp_path, files)
    assert [code for code, _ in said(catalog)] == ["KA004"] * 3
    texts = [text for _, text in said(catalog)]
    assert "hook 'h' is already defined at platform_map.yaml:11:10" in texts[0]
    assert texts[0].startswith("platform_map.yaml:12:10")
    assert "tier 'golden' is already defined at operator_recipes/a.yaml:12" in texts[1]
    assert texts[2].startswith("operator_recipes/b.yaml:3:7: operator 'silu_and_mul'")


def test_an_alias_does_not_hide_a_name_given_twice(tmp_path: Path) -> None:
    hook = "{id: h, why: w, type: after, impl: 'a:b', at: [{target: t}]}"
    files = {"platform_map.yaml": f"{MAP}hooks:\n  - &h {hook}\n  - *h\n"}
    assert [code for code, _ in said(workspace(tmp_path, files))] == ["KA004"]


def test_what_else_is_wrong_with_a_broken_document_is_said(tmp_path: Path) -> None:
    recipe = RECIPE.replace("capture: safe", "captre: safe\nfamily: twice")
    catalog = workspace(tmp_path, {"platform_map.yaml": MAP, "operator_recipes/a.yaml": recipe})
    assert [code for code, _ in said(catalog)] == ["KA001", "KA002", "KA003"]
    assert catalog.operators == ()


def test_a_document_that_is_broken_only_for_the_reader_is_not_taken(tmp_path: Path) -> None:
    recipe = RECIPE.replace("capture: safe", "capture: safe\nfamily: twice")
    catalog = workspace(tmp_path, {"platform_map.yaml": MAP, "operator_recipes/a.yaml": recipe})
    assert [code for code, _ in said(catalog)] == ["KA001"]
    assert catalog.operators == ()


def test_all_faults_of_several_documents_are_said(tmp_path: Path) -> None:
    faults = ("capture: maybe", "capture: safe\nextra: 1", "capture: safe\nname: twice")
    text = "---\n".join(RECIPE.replace("capture: safe", fault) for fault in faults)
    catalog = workspace(tmp_path, {"platform_map.yaml": MAP, "operator_recipes/a.yaml": text})
    assert sorted(code for code, _ in said(catalog)) == ["KA001", "KA002", "KA003"]


def test_names_in_documents_that_could_not_be_read_are_kept(tmp_path: Path) -> None:
    files = {
        "platform_map.yaml": MAP,
        "operator_recipes/a.yaml": RECIPE.replace("capture: safe", "capture: @safe"),
        "operator_recipes/b.yaml": RECIPE.replace("silu_and_mul", "other"),
        "recipes/c.yaml": "hooks:\n  - {id: 'own-hook', why: w}\n",
    }
    catalog = workspace(tmp_path, files)
    assert {"silu_and_mul", "own-hook"} <= catalog.unread
    assert "other" not in catalog.unread
    assert workspace(tmp_path / "sound", {"platform_map.yaml": MAP}).unread == frozenset()

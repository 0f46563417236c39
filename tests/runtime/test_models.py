"""Model classes out of tree: upstream's table answers with ours, or the start is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime.installed import models_but, run_installed
from tests.runtime.stage import MAP, ROOT, SHOW, Stage, fine, refused

REGISTRY = """\
    class Theirs:
        pass

    class _ModelRegistry:
        def __init__(self):
            self.models = {"TheirsForCausalLM": Theirs}

        def get_supported_archs(self):
            return self.models.keys()

        def resolve_model_cls(self, architectures):
            for name in architectures:
                if name in self.models:
                    return self.models[name], name
            raise ValueError(name)

    ModelRegistry = _ModelRegistry()
    """
ASK = """
import sglang.srt.utils.common
from sglang.srt.models.registry import ModelRegistry
cls, name = ModelRegistry.resolve_model_cls(["{0}"])
print(cls.__module__, cls.__qualname__, name)
"""
SPELLING = "interface:\n  models: [{call: sglang.srt.models.registry.ModelRegistry}]\n"


def with_model(stage: Stage, entry: str) -> Stage:
    models = f"models:\n  - {{{entry}, why: a test}}\nhooks:\n"
    stage = stage.add("sglang/srt/models/registry.py", REGISTRY)
    return stage.edit(MAP, "interface:\n", SPELLING).edit(MAP, "hooks:\n", models)


OURS = 'architecture: OursForCausalLM, class: "ours:Thing"'
TAKEN = 'architecture: TheirsForCausalLM, class: "ours:Thing"'


def test_upstream_answers_with_our_class(stage: Stage) -> None:
    done = with_model(stage, OURS).run(ASK.format("OursForCausalLM") + SHOW)
    out = fine(done)
    assert "ours Thing OursForCausalLM" in out
    assert "'factory/models.OursForCausalLM': 'applied'" in out


def test_a_process_that_loads_no_model_does_not_import_it(stage: Stage) -> None:
    code = "import sglang.srt.utils.common, sys\n" + SHOW + "print('ours' in sys.modules)\n"
    entry = OURS.replace("ours:Thing", "no_one_imports_this:Thing")
    stage = with_model(stage, entry)
    out = fine(stage.run(code))
    assert "'factory/models.OursForCausalLM': 'pending'" in out


def test_a_registry_that_was_imported_before_is_changed_at_once(stage: Stage) -> None:
    code = "import sglang.srt.models.registry\n" + ASK.format("OursForCausalLM")
    assert "ours Thing OursForCausalLM" in fine(with_model(stage, OURS).run(code))


def test_the_place_of_upstream_s_class_is_not_taken_unsaid(stage: Stage) -> None:
    done = with_model(stage, TAKEN).run(ASK.format("TheirsForCausalLM"))
    refused(done, "sglang.srt.models.registry.Theirs already", "replaces: true")


def test_upstream_s_class_is_replaced_where_the_map_says_so(stage: Stage) -> None:
    done = with_model(stage, f"{TAKEN}, replaces: true").run(ASK.format("TheirsForCausalLM"))
    assert "ours Thing TheirsForCausalLM" in fine(done)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("ours:Nothing", "'ours' has no attribute 'Nothing'"),
        ("no_such_module:Thing", "No module named 'no_such_module'"),
        ("ours:golden", "ours:golden is no class"),
    ],
)
def test_a_class_that_is_not_there_ends_the_process(stage: Stage, path: str, says: str) -> None:
    entry = OURS.replace("ours:Thing", path)
    done = with_model(stage, entry).run(ASK.format("OursForCausalLM"))
    refused(done, "factory/models.OursForCausalLM", says)


def test_one_that_is_not_required_is_only_left_out(stage: Stage) -> None:
    entry = OURS.replace("ours:Thing", "ours:Nothing") + ", required: false"
    done = with_model(stage, entry).run(
        "import sglang.srt.utils.common, sglang.srt.models.registry\n" + SHOW
    )
    assert "'factory/models.OursForCausalLM': 'failed'" in fine(done)


REAL = """
import json, sys
from sglang.srt.platforms import current_platform
import sglang.srt.models.registry as registry
cls, name = registry.ModelRegistry.resolve_model_cls(["OurLlamaForCausalLM"])
from sglang.srt.models.llama import LlamaForCausalLM
from kunlun_adapt.runtime import ledger
entry = ledger.LEDGER.entries["factory/models.OurLlamaForCausalLM"]
print(json.dumps([cls.__module__, issubclass(cls, LlamaForCausalLM), name, entry.state]))
"""


@pytest.mark.server
def test_the_installed_release_answers_with_our_class(tmp_path: Path) -> None:
    """The real registry; every in-tree model but one is left out, for what importing them costs."""
    text = (ROOT / MAP).read_text(encoding="utf-8")
    spelled = text if SPELLING in text else text.replace("interface:\n", SPELLING, 1)
    models = (
        "\nmodels:\n  - architecture: OurLlamaForCausalLM\n"
        '    class: "tests.runtime.out_of_tree:OurLlamaForCausalLM"\n    why: a test\n\nhooks:\n'
    )
    assert spelled.count("\nhooks:\n") == 1
    (tmp_path / MAP).write_text(spelled.replace("\nhooks:\n", models), encoding="utf-8")
    (tmp_path / "operator_recipes").symlink_to(ROOT / "operator_recipes")
    done = run_installed(
        REAL,
        tmp_path,
        tmp_path / "cache",
        SGLANG_DISABLED_MODEL_ARCHS=models_but("llama"),
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == ["tests.runtime.out_of_tree", True, "OurLlamaForCausalLM", "applied"]

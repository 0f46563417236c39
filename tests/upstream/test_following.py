# ruff: noqa: E501 -- texts stay whole
"""What following a symbol asks of a release, and that it is kept for the next run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.upstream import CallForm, Missing, open_release
from kunlun_adapt.upstream.following import FollowingResolver

FILES: Mapping[str, str] = {
    "sglang/srt/a.py": '''\
    import functools

    @functools.cache
    def near(x):
        """Why."""
        return x

    def _hidden(x):
        return near(x)

    class K:
        def run(self, a, *rest):
            return self.step(a, *rest, b=1)

        @classmethod
        def make(cls):
            return cls.step(1, 2)

        def step(self, *args, **kwargs):
            return other.step(3)
    ''',
    "sglang/srt/b.py": "from sglang.srt.a import near\n\ndef user():\n    return near(1) + near(x=2)\n",
}


@pytest.fixture
def facts(make_tree: Callable[[Mapping[str, str]], Path]) -> FollowingResolver:
    return FollowingResolver(open_release(str(make_tree(FILES))))


def test_text_has_the_decorators_and_the_docstring(facts: FollowingResolver) -> None:
    text = facts.text("sglang.srt.a.near")
    assert text is not None
    assert text.startswith("@functools.cache\ndef near(x):") and '"""Why."""' in text
    assert facts.text("sglang.srt.a.nothing") is None
    assert facts.text("sglang.srt.a") is None


def test_callers_of_a_function(facts: FollowingResolver) -> None:
    facts.expect_callers(["sglang.srt.a.near"])
    found = {(c.module, c.scope, c.call) for c in facts.callers("sglang.srt.a.near")}
    assert found == {
        ("sglang.srt.a", "_hidden", CallForm(1)),
        ("sglang.srt.b", "user", CallForm(1)),
        ("sglang.srt.b", "user", CallForm(0, ("x",))),
    }


def test_callers_of_a_method_are_those_of_its_own_class(facts: FollowingResolver) -> None:
    found = {(c.scope, c.call, c.location.line) for c in facts.callers("sglang.srt.a.K.step")}
    assert found == {
        ("K.run", CallForm(1, ("b",), star=True), 13),
        ("K.make", CallForm(2), 17),
    }
    assert facts.callers("sglang.srt.a.K.nothing") == ()


def test_public_functions_and_names(facts: FollowingResolver) -> None:
    assert [(n, k) for n, k, _ in facts.functions("sglang.srt.a")] == [("near", "cached_function")]
    assert facts.has_name("step") and not facts.has_name("steps")


def test_all_of_it_is_kept_with_the_wheel(
    make_wheel: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(FILES)

    def asked() -> list[object]:
        facts = FollowingResolver(open_release(str(wheel)))
        facts.use_cache(tmp_path / "cache")
        missing = facts.resolve("sglang.srt.c.near")
        assert isinstance(missing, Missing)
        answers: list[object] = [
            facts.text("sglang.srt.a.near"),
            facts.callers("sglang.srt.a.near"),
            facts.callers("sglang.srt.a.K.step"),
            facts.functions("sglang.srt.a"),
            facts.has_name("step"),
            facts.suggest(missing),
        ]
        facts.keep_answers()
        return answers

    before = asked()
    suggested = before[-1]
    assert isinstance(suggested, Missing)
    assert suggested.suggestions[0].path == "sglang.srt.a.near"
    # The second time nothing is read but what was kept.
    for name in ("_source", "_calls", "_functions"):
        monkeypatch.delattr(FollowingResolver, name)
    monkeypatch.delattr("kunlun_adapt.upstream.resolve.Resolver.suggest")
    assert asked() == before

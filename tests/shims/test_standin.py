"""Stand-ins: each thing that one does not provide is refused by the name of the real package."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from kunlun_adapt.shims.standin import NotProvided

Make = Callable[[str, dict[str, str]], ModuleType]
HEAD = "from kunlun_adapt.shims.standin import stand_in\n"


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Write a stand-in to disk and put it where the map would."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def put(package: str, files: dict[str, str]) -> ModuleType:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        module = importlib.import_module(f"our_{package}")
        sys.modules[package] = module
        return module

    yield put
    for name in set(sys.modules) - before:
        if "cuda_only" in name:
            del sys.modules[name]


def plain(make: Make) -> ModuleType:
    text = HEAD + '__getattr__ = stand_in("cuda_only", __name__)\nknown = 3\n'
    return make("cuda_only", {"our_cuda_only.py": text})


def test_what_it_defines_is_there(make: Make) -> None:
    plain(make)
    from cuda_only import known

    assert known == 3


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("from cuda_only import foo", "cuda_only.foo"),
        ("from cuda_only.ops import foo", "cuda_only.ops"),
        ("import cuda_only.ops.deep", "cuda_only.ops"),
        ("from our_cuda_only import foo", "cuda_only.foo"),
    ],
)
def test_an_import_is_refused_by_name(make: Make, code: str, named: str) -> None:
    plain(make)
    with pytest.raises(NotProvided) as caught:
        exec(code)
    assert str(caught.value).startswith(f"{named} is not provided on this platform (our_cuda_only ")
    assert "operator_recipes/" in str(caught.value) and caught.value.name == "cuda_only"


def test_probes_stay_ordinary_misses(make: Make) -> None:
    module = plain(make)
    assert not hasattr(module, "foo") and getattr(module, "foo", None) is None
    with pytest.raises(AttributeError, match=r"^cuda_only\.foo is not provided"):
        _ = module.foo
    with pytest.raises(AttributeError, match="has no attribute '__all__'"):
        _ = module.__all__
    assert find_spec("cuda_only") is not None


def test_a_folder_provides_its_submodules_and_refuses_the_others(make: Make) -> None:
    make(
        "cuda_only",
        {
            "our_cuda_only/__init__.py": HEAD + '__getattr__ = stand_in("cuda_only", __name__)\n',
            "our_cuda_only/ops.py": HEAD
            + '__getattr__ = stand_in("cuda_only.ops", __name__)\n\ndef add(a, b):\n'
            + "    return a + b\n",
        },
    )
    from cuda_only.ops import add

    assert add(1, 2) == 3
    with pytest.raises(NotProvided, match=r"^cuda_only\.ops\.mul is not provided"):
        exec("from cuda_only.ops import mul")
    with pytest.raises(NotProvided, match=r"^cuda_only\.other is not provided"):
        importlib.import_module("cuda_only.other")


def test_an_exception_inside_a_provided_submodule_comes_through(make: Make) -> None:
    make(
        "cuda_only",
        {
            "our_cuda_only/__init__.py": HEAD + '__getattr__ = stand_in("cuda_only", __name__)\n',
            "our_cuda_only/bad.py": "1 / 0\n",
        },
    )
    with pytest.raises(ZeroDivisionError):
        exec("from cuda_only import bad")


def test_a_stand_in_that_is_only_imported_leaves_the_real_package_alone(
    make: Make, tmp_path: Path
) -> None:
    plain(make)
    del sys.modules["cuda_only"]
    (tmp_path / "cuda_only").mkdir()
    (tmp_path / "cuda_only/__init__.py").write_text("")
    (tmp_path / "cuda_only/ops.py").write_text("real = True\n")
    importlib.invalidate_caches()
    from cuda_only.ops import real

    assert real
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'cuda_only\.other'"):
        importlib.import_module("cuda_only.other")

"""Plugins that are broken, huge or not what they seem: a clear word, and the rest is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.adopt import frames, read_sources, wanted_release
from kunlun_adapt.evolve.adopt import sources as sources_module
from kunlun_adapt.evolve.adopt.document import as_yaml
from kunlun_adapt.evolve.adopt.left import Left
from tests.evolve.plugin_bench import COMMON, IMPORTS, PROJECT, PluginBench, hooks, the_map, write

BINDS = "def ours(*args):\n    return None\n\ndef register():\n    common.set_affinity = ours\n"
AFFINITY = f"{COMMON}.set_affinity"


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    return PluginBench(tmp_path)


def plugin(bench: PluginBench) -> Path:
    files = {"pyproject.toml": PROJECT, "ours/__init__.py": "", "ours/install.py": IMPORTS + BINDS}
    return write(bench.root / "plugin", files)


def unread(bench: PluginBench, root: Path) -> list[Left]:
    """Adopt; what the good module does must be there whatever lies beside it."""
    found = bench.read(root)
    assert AFFINITY in hooks(found)
    return [x for x in found.left if x.reason == "file"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"def f(:\n", "is no valid Python"),
        (b"x = 'caf\xe9'\n", "is no valid Python"),
        (b"x = 1\x00\n", "is no valid Python"),
        (b"# -*- coding: no-such-codec -*-\n", "is no valid Python"),
        (b"x = " + b"(" * 3000 + b")" * 3000 + b"\n", "is no valid Python"),
    ],
)
def test_a_file_that_is_no_python(bench: PluginBench, content: bytes, said: str) -> None:
    root = plugin(bench)
    (root / "ours" / "bad.py").write_bytes(content)
    (found,) = unread(bench, root)
    assert found.file == "ours/bad.py" and said in found.what


def test_other_encodings_are_read(bench: PluginBench) -> None:
    root = plugin(bench)
    text = "# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n"
    (root / "ours" / "latin.py").write_bytes(text.encode("latin-1"))
    (root / "ours" / "bom.py").write_bytes(b"\xef\xbb\xbfNAME = 1\n")
    assert unread(bench, root) == []


def test_what_is_too_large(bench: PluginBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "MOST_BYTES", 1 << 20)
    root = plugin(bench)
    (root / "ours" / "huge.py").write_bytes(b"#" * ((1 << 20) + 1))
    (found,) = unread(bench, root)
    assert (found.file, found.what) == ("ours/huge.py", "larger than 1 MiB")


def test_too_many_files(bench: PluginBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "MOST_FILES", 3)
    root = plugin(bench)
    for name in ("zz1", "zz2", "zz3"):
        (root / "ours" / f"{name}.py").write_text("")
    (found,) = unread(bench, root)
    assert found.what == "only the first 3 files are read"


def test_links_are_not_followed_out_of_the_plugin(bench: PluginBench) -> None:
    root = plugin(bench)
    outside = bench.root / "outside"
    write(outside, {"secret.py": "common = 1\n"})
    os.symlink(outside / "secret.py", root / "ours" / "linked.py")
    os.symlink(outside, root / "ours" / "folder")
    os.symlink(root / "ours" / "install.py", root / "ours" / "inside.py")
    os.symlink(root / "ours", root / "ours" / "again")
    os.symlink("nowhere", root / "ours" / "dangling.py")
    found = {x.file: x.what for x in unread(bench, root)}
    assert sorted(found) == [
        "ours/again",
        "ours/dangling.py",
        "ours/folder",
        "ours/linked.py",
    ]
    assert found["ours/linked.py"] == "a link out of the plugin, which is not followed"


def test_a_pipe_is_not_waited_for(bench: PluginBench) -> None:
    root = plugin(bench)
    os.mkfifo(root / "ours" / "pipe.py")
    (found,) = unread(bench, root)
    assert found.what == "no regular file"


def test_work_that_never_ends_is_given_up(
    bench: PluginBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_STEPS", 20_000)
    root = plugin(bench)
    numbers = "\n".join(f"{'    ' * n}for v{n} in range(1000):" for n in range(8))
    text = f"{IMPORTS}def spin():\n    spin()\n    spin()\n{numbers}\n{'    ' * 8}spin()\n"
    (root / "ours" / "endless.py").write_text(text)
    (found,) = unread(bench, root)
    assert found.file == "ours/endless.py" and "too much to follow" in found.what


@pytest.mark.parametrize(
    "text",
    [
        "x = 'a'\nfor i in range(10000):\n    x = x + x\n",
        "x = ['a']\nfor i in range(10000):\n    x = x + x\n",
        "x = ['a']\nfor i in range(10000):\n    x.extend(x)\n",
        "x = '%999999999d' % 1\n",
        "x = '{:>999999999}'.format(1)\n",
        "x = '{:>999999999}{:s}'.format(1, 'a')\n",
        "x = 'a' * 10 ** 9\n",
        "x = 10 ** 10 ** 10\n",
        "x = list(range(10 ** 12))\n",
        "x = 'a'.replace('', 'b' * 4000).replace('', 'b' * 4000).replace('', 'b' * 4000)\n",
        "x = []\nx.append(x)\nfor y in x:\n    x.append(y)\n",
        "class A(A):\n    pass\nclass B:\n    pass\nB.__bases__ = (B,)\nB().x\n",
        "def f(): return f\nf()()()()\n",
        "import ours.strange\nfrom ours.strange import *\nfrom . import strange\n",
    ],
)
def test_values_stay_small(bench: PluginBench, text: str) -> None:
    root = plugin(bench)
    (root / "ours" / "strange.py").write_text(text)
    assert unread(bench, root) == []


def test_names_with_quotes_stay_text(bench: PluginBench) -> None:
    root = plugin(bench)
    (root / "ours" / "quoted.py").write_text(
        IMPORTS
        + "import os, sys\n"
        + "def odd(*args):\n"
        + "    '''A \"quoted\": 'line' # with {braces} and \\\\ and \\x1b[31m'''\n"
        + "def install():\n"
        + "    HookRegistry.register('sglang.\"quoted\".name', odd, HookType.AROUND)\n"
        + "    HookRegistry.register('sglang.class.name\\n', odd, HookType.AROUND)\n"
        + "    HookRegistry.register('sglang.srt.utils.common.f', odd, HookType.AROUND)\n"
        + "    sys.modules['a\\nb'] = odd\n"
        + "    os.environ['A\"B'] = '1'\n"
        + "    os.environ['ODD'] = 'yes: [no] #x \\n 1e3'\n"
        + "    common.CHOICES.extend(['on', '1e3', '12:30', 'null', '~', ''])\n"
        + "install()\n"
    )
    found = bench.read(root)
    for name, text in found.files.items():
        path = bench.root / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    catalog = load_catalog(bench.root / "out")
    assert catalog.findings == () and catalog.platform_map is not None
    model = catalog.platform_map.model
    assert [h.value for h in model.hooks if h.type == "extend"] == [
        ["on", "1e3", "12:30", "null", "~", ""]
    ]
    assert [e.default for e in model.environment] == ["yes: [no] #x \n 1e3"]
    assert "\x1b" not in found.files["platform_map.yaml"]
    assert [x.line for x in found.left if x.reason == "name"] == [8, 9, 11, 12]


@pytest.mark.parametrize("value", ["on", "1e3", "12:30", "0x1f", "1_000", "- a", "a: b", "#", " a"])
def test_texts_are_quoted_where_they_could_be_read_as_something_else(value: str) -> None:
    text = as_yaml({"key": value}, "a\nb")
    assert text == f'# a\n# b\nkey: "{value}"\n'
    assert yaml.safe_load(text) == {"key": value}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[project\n"),
        ("setup.cfg", "no section\n"),
        ("setup.py", "def (:\n"),
    ],
)
def test_a_broken_project_file(bench: PluginBench, file: str, text: str) -> None:
    root = plugin(bench)
    (root / file).write_text(text)
    assert [x.file for x in unread(bench, root)] == [file]


def test_an_entry_point_that_leads_nowhere(bench: PluginBench) -> None:
    root = plugin(bench)
    (root / "pyproject.toml").write_text(PROJECT.replace("ours:activate", "theirs:activate"))
    (found,) = unread(bench, root)
    assert found.what == "the entry point ours names theirs, which is not here"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda root: root / "nowhere", "does not exist"),
        (lambda root: write(root, {"a.txt": ""}) / "a.txt", "is no folder and no .py file"),
        (
            lambda root: write(root, {"a-1-py3-none-any.whl": ""}) / "a-1-py3-none-any.whl",
            "archive",
        ),
        (lambda root: write(root / "empty", {"a.txt": ""}), "there is no Python package in"),
    ],
)
def test_what_is_no_plugin_is_refused(tmp_path: Path, make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(AdaptError) as caught:
        read_sources(make(tmp_path))
    assert said in caught.value.message


def test_links_that_lead_nowhere(bench: PluginBench) -> None:
    root = plugin(bench)
    (root / "ours" / "itself.py").symlink_to("itself.py")
    (found,) = unread(bench, root)
    assert "cannot be read" in found.what or found.what == "a link that leads nowhere"
    (bench.root / "circle").symlink_to("circle")
    (bench.root / "dangling").symlink_to("nowhere")
    for name in ("circle", "dangling"):
        with pytest.raises(AdaptError, match="is a link that leads nowhere"):
            read_sources(bench.root / name)


def test_a_plugin_of_which_no_file_can_be_read(tmp_path: Path) -> None:
    root = write(tmp_path, {"ours/__init__.py": "def (:"})
    with pytest.raises(AdaptError, match=r"no file of .* could be read; ours/__init__.py:1"):
        read_sources(root)


@pytest.mark.parametrize(
    ("files", "top"),
    [
        ({"src/ours/__init__.py": "", "tests/__init__.py": "", "setup.py": ""}, ("ours",)),
        ({"python/ours/__init__.py": "", "sglang/__init__.py": ""}, ("ours",)),
        ({"ours/install.py": "", "docs/conf.py": ""}, ("ours",)),
        ({"ours.py": "", "setup.py": ""}, ("ours",)),
        ({"one/__init__.py": "", "two/__init__.py": ""}, ("one", "two")),
        (
            {"ours/__init__.py": "import beside", "beside.py": "import last", "last.py": ""},
            ("ours", "beside", "last"),
        ),
        ({"src/ours/__init__.py": "from beside import x", "src/beside.py": ""}, ("ours", "beside")),
    ],
)
def test_where_a_plugin_may_lie(
    tmp_path: Path, files: dict[str, str], top: tuple[str, ...]
) -> None:
    assert read_sources(write(tmp_path, files)).top == top


def test_a_package_and_a_file_of_it_by_themselves(bench: PluginBench) -> None:
    root = plugin(bench)
    assert read_sources(root / "ours").top == ("ours",)
    assert AFFINITY in hooks(bench.read(root / "ours"))
    lone = write(bench.root / "lone", {"lone.py": IMPORTS + BINDS}) / "lone.py"
    found = bench.read(lone)
    # Without an entry point anything may be what starts it.
    assert hooks(found)[AFFINITY]["impl"] == "lone:ours"
    assert "status" not in hooks(found)[AFFINITY]
    assert the_map(found)["name"] == "lone"


SETUP_CFG = """\
[metadata]
name = ours
[options]
install_requires =
    torch
    sglang>=0.5.18,<0.5.20
[options.entry_points]
sglang.srt.plugins =
    ours = ours.install:register
"""
SETUP_PY = """\
from setuptools import setup
POINTS = {"sglang.srt.plugins": ["ours = ours.install:register"]}
setup(name="ours", entry_points=POINTS, install_requires=["sglang[all]==0.5.17"])
"""
SETUP_TEXT = SETUP_PY.replace(
    '{"sglang.srt.plugins": ["ours = ours.install:register"]}',
    '"[sglang.srt.plugins]\\nours = ours.install:register\\n[console_scripts]\\nx = a:b"',
)
POETRY = """\
[tool.poetry.plugins."sglang.srt.plugins"]
ours = "ours.install:register"
"""


@pytest.mark.parametrize(
    ("file", "text", "release"),
    [
        ("setup.cfg", SETUP_CFG, "0.5.19"),
        ("setup.py", SETUP_PY, "0.5.17"),
        ("setup.py", SETUP_TEXT, "0.5.17"),
        ("pyproject.toml", POETRY, "0.5.23"),
        ("pyproject.toml", '[project]\nname="a"\ndependencies=["sglang~=9.0"]\n', "0.5.23"),
    ],
)
def test_project_files(tmp_path: Path, file: str, text: str, release: str) -> None:
    found = read_sources(
        write(tmp_path, {file: text, "ours/__init__.py": "", "ours/install.py": ""})
    )
    if "ours.install" in text:
        (entry,) = found.project.entry_points
        assert (entry.name, entry.module, entry.attribute) == ("ours", "ours.install", "register")
    assert wanted_release(found, ("0.5.17", "0.5.19", "0.5.23")) == release


@pytest.mark.parametrize("given", ["entry_points=points()", "**settings()"])
def test_entry_points_that_are_made_at_run_time(tmp_path: Path, given: str) -> None:
    text = f"from setuptools import setup\nsetup(name='ours', {given})\n"
    found = read_sources(write(tmp_path, {"setup.py": text, "ours/__init__.py": ""}))
    assert [str(x) for x in found.left] == [
        "setup.py:2: file: its entry points are made at run time"
    ]

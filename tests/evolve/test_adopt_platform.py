"""What becomes of a plugin's own platform class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.evolve.adopt import Adoption
from tests.evolve.plugin_bench import PROJECT, PluginBench, the_map, write

HEAD = """\
from sglang.srt.platforms.interface import SRTPlatform, PlatformCapabilities
from sglang.srt.platforms.device_mixin import PlatformEnum

"""
NAMES = """\
    _enum = PlatformEnum.OOT
    device_name = "ours"
    device_type = "ourdev"

    def get_dispatch_key_name(self):
        return "ourkey"

    def get_torch_distributed_backend_str(self):
        return "occl"

"""


def adopt(
    tmp_path: Path, text: str, activate: str = "ours.platform.Ours", release: str = "0.5.19"
) -> Adoption:
    files = {
        "pyproject.toml": PROJECT,
        "ours/__init__.py": f"def activate():\n    return {activate!r}\n",
        "ours/install.py": "def register():\n    return None\n",
        "ours/platform.py": HEAD + text,
    }
    bench = PluginBench(tmp_path)
    bench.upstream["sglang/version.py"] = f'__version__ = "{release}"\n'
    return bench.read(write(tmp_path / "plugin", files))


def platform_left(found: Adoption) -> list[str]:
    probe = "which module tells that the device is there"
    return [x.what for x in found.left if not x.what.startswith(probe)]


def test_names_and_a_method(tmp_path: Path) -> None:
    method = "    def get_device_uuid(self, device_id=0):\n        return 'x'\n"
    found = adopt(tmp_path, f"class Ours(SRTPlatform):\n{NAMES}{method}")
    said = the_map(found)
    assert said["device"]["base"] == "ours.platform:Ours"
    assert said["device"]["profiles"]["card"] == {
        "reports_as": "ourdev",
        "dispatch_key": "ourkey",
        "distributed_backend": "occl",
    }
    assert said["methods"] == {"get_device_uuid": "ours.platform:Ours.get_device_uuid"}
    assert platform_left(found) == []


@pytest.mark.parametrize(
    ("body", "section", "value"),
    [
        (
            "def get_graph_runner_cls(self):\n        from sglang.srt.runner import GraphRunner\n"
            "        return GraphRunner",
            "factories",
            {"graph_runner": "sglang.srt.runner:GraphRunner"},
        ),
        (
            "def get_graph_runner_cls(self):\n        'Says more.'\n        return Runner",
            "factories",
            {"graph_runner": "ours.platform:Runner"},
        ),
        (
            "def get_graph_runner_cls(self):\n        prepare()\n        return Runner",
            "methods",
            {"get_graph_runner_cls": "ours.platform:Ours.get_graph_runner_cls"},
        ),
        (
            "def get_kv_pool_cls(self, *, kind):\n        return Runner",
            "methods",
            {"get_kv_pool_cls": "ours.platform:Ours.get_kv_pool_cls"},
        ),
        (
            "@classmethod\n    def supports_mamba(cls):\n        return True",
            "methods",
            {"supports_mamba": "ours.platform:Ours.supports_mamba"},
        ),
        # What other releases call it, this one does not have: validate says so.
        (
            "def get_nsa_kv_pool_cls(self):\n        return Runner",
            "methods",
            {"get_nsa_kv_pool_cls": "ours.platform:Ours.get_nsa_kv_pool_cls"},
        ),
        (
            "def _helper(self):\n        return 1\n\n    def helper(self):\n        return 1",
            "methods",
            None,
        ),
    ],
)
def test_what_a_member_becomes(tmp_path: Path, body: str, section: str, value: Any) -> None:
    text = "class Runner:\n    pass\n\ndef prepare():\n    pass\n\n"
    found = adopt(tmp_path, f"{text}class Ours(SRTPlatform):\n{NAMES}    {body}\n")
    assert the_map(found).get(section) == value
    assert platform_left(found) == []


def test_capabilities(tmp_path: Path) -> None:
    given = "capabilities = PlatformCapabilities(graph_capture=True, supports_triton=False)"
    text = f"class Ours(SRTPlatform):\n{NAMES}    {given}\n"
    found = adopt(tmp_path, text, release="0.5.23")
    assert the_map(found)["capabilities"] == {"graph_capture": True, "triton": False}
    assert platform_left(found) == []


def test_members_of_a_base_of_the_plugins_own(tmp_path: Path) -> None:
    text = f"class Base(SRTPlatform):\n{NAMES}    def supports_mamba(self):\n        return 1\n\n"
    found = adopt(tmp_path, f"{text}class Ours(Base):\n    device_name = 'mine'\n")
    said = the_map(found)
    assert said["device"]["name"] == "mine" and said["device"]["base"] == "ours.platform:Ours"
    assert said["methods"] == {"supports_mamba": "ours.platform:Ours.supports_mamba"}


@pytest.mark.parametrize("named", ["ours.platform.First", "ours.platform:First"])
def test_the_class_that_the_entry_point_names_is_taken(tmp_path: Path, named: str) -> None:
    text = f"class First(SRTPlatform):\n{NAMES}\nclass Second(SRTPlatform):\n{NAMES}"
    found = adopt(tmp_path, text, named)
    assert the_map(found)["device"]["base"] == "ours.platform:First"
    assert platform_left(found) == [
        "ours.platform:Second is a platform class too; ours.platform:First was taken"
    ]


def test_without_a_platform_class(tmp_path: Path) -> None:
    found = adopt(tmp_path, "VALUE = 1\n")
    said = the_map(found)
    assert said["device"]["name"] == "ours" and "base" not in said["device"]
    assert said["device"]["profiles"]["card"]["reports_as"] == "cpu"
    assert platform_left(found) == [
        "no subclass of SRTPlatform; `device` holds upstream's own defaults"
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"ourkey"', "os.environ['K']", "get_dispatch_key_name is made at run time"),
        ('device_type = "ourdev"', "device_type = kind()", "device_type is made at run time"),
        ('"ours"', '"Our Device"', "device_name is 'Our Device', which `device.name` cannot hold"),
        (
            "    _enum",
            "    get_device_uuid = 1\n    _enum",
            "the field get_device_uuid is 1; the base class keeps it",
        ),
        ("    _enum", "    capabilities = make()\n    _enum", "capabilities are made at run time"),
        (
            "    _enum",
            "    capabilities = PlatformCapabilities(unheard_of=True)\n    _enum",
            "the capability unheard_of",
        ),
    ],
)
def test_what_the_text_does_not_settle(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = f"import os\n\ndef kind():\n    return os.name\n\nclass Ours(SRTPlatform):\n{NAMES}"
    assert old in text
    (found,) = platform_left(adopt(tmp_path, text.replace(old, new, 1)))
    assert found.startswith(said)

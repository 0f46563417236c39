# ruff: noqa: E501 -- a row of the table is a line
"""Which platform and which plugins the installed SGLang takes, beside us and beside others.

The installed release itself chooses, from real entry points: ours, and those of a second package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.stage import ROOT

pytestmark = pytest.mark.server

MAP = """\
apiVersion: kunlun-adapt/v1
kind: PlatformMap
name: kunlun
sglang: ">=0.5.17,<0.5.24"
device:
  name: kunlun
  probe: {module: tiny_runtime}
  profiles:
    card: {reports_as: cuda, dispatch_key: cuda, distributed_backend: nccl}
interface:
  platform: [{call: sglang.srt.platforms.interface.SRTPlatform}]
  platform_kind: [{call: sglang.srt.platforms.device_mixin.PlatformEnum.OOT}]
  device.kind: [{field: _enum}]
  device.name: [{field: device_name}]
  device.reports_as: [{field: device_type}]
  device.dispatch_key: [{method: get_dispatch_key_name}]
  device.distributed_backend: [{method: get_torch_distributed_backend_str}]
  capabilities: [{sglang: ">=0.5.22", call: sglang.srt.platforms.interface.PlatformCapabilities}]
hooks:
  - id: asked
    why: a test asks it
    type: replace
    impl: "tiny_hooks:asked"
    at: [{target: sglang.srt.platforms._is_cpu_available}]
"""
PLUGIN = """\
RAN = []
def activate():
    RAN.append("activate")
    return "other_plugin:Platform"
def shy():
    RAN.append("activate")
def register():
    RAN.append("register")
def __getattr__(name):
    if name != "Platform":
        raise AttributeError(name)
    from sglang.srt.platforms.interface import SRTPlatform
    return type("OtherPlatform", (SRTPlatform,), {})
"""
PLATFORMS, PLUGINS = "sglang.srt.platforms", "sglang.srt.plugins"
SECOND: dict[str, dict[str, dict[str, str]]] = {
    "": {},
    "other": {
        PLATFORMS: {"other": "other_plugin:activate"},
        PLUGINS: {"other_hooks": "other_plugin:register"},
    },
    "other without a device": {PLATFORMS: {"other": "other_plugin:shy"}},
    "only hooks": {PLUGINS: {"other_hooks": "other_plugin:register"}},
    "broken": {
        PLATFORMS: {"other": "other_plugin:gone"},
        PLUGINS: {"other_hooks": "gone:register"},
    },
    "our platform's name": {PLATFORMS: {"kunlun": "other_plugin:activate"}},
    "our hooks' name": {PLUGINS: {"kunlun_hooks": "other_plugin:register"}},
}
OURS, OTHERS, NOBODYS = "KunlunPlatform", "OtherPlatform", "SRTPlatform"


@dataclass(frozen=True)
class Case:
    """Some settings, and what comes of them: a platform, an error of upstream's, or a refusal."""

    platform: str = ""
    plugins: str = ""
    second: str = ""
    device: bool = True
    chosen: str = ""
    hooks: bool = False
    ran: tuple[str, ...] = ()
    error: str = ""
    refused: tuple[str, ...] = ()
    comes: str = "after"

    def __str__(self) -> str:
        shown = [self.platform or "-", self.plugins or "-", self.second or "-"]
        shown += [] if self.device else ["no device"]
        return "|".join([*shown, *(["first"] if self.comes == "before" else [])])


BOTH = "kunlun,kunlun_hooks"
TABLE = [
    # We alone.
    Case("", "", chosen=OURS, hooks=True),
    Case("kunlun", "", chosen=OURS, hooks=True),
    Case("other", "", error="'other' not found in discovered platform plugins"),
    Case("", BOTH, chosen=OURS, hooks=True),
    Case("kunlun", "kunlun_hooks", chosen=OURS, hooks=True),
    Case("", "kunlun_hooks", refused=("was never called", "SGLANG_PLATFORM=kunlun, or SGLANG_PLUGINS=kunlun_hooks,kunlun")),
    Case("", "kunlun", refused=("leaves out kunlun_hooks", f"set SGLANG_PLUGINS={BOTH}")),
    Case("kunlun", "kunlun", refused=("leaves out kunlun_hooks", f"set SGLANG_PLUGINS={BOTH}")),
    Case("kunlun", "other_hooks", refused=("leaves out kunlun_hooks",)),
    Case("kunlun", ",", refused=("leaves out kunlun_hooks", "SGLANG_PLUGINS=kunlun,kunlun_hooks")),
    Case("", "other,other_hooks", chosen=NOBODYS),
    # Beside another platform.
    Case("", "", "other", error="Multiple platform plugins activated"),
    Case("kunlun", "", "other", chosen=OURS, hooks=True),
    Case("other", "", "other", chosen=OTHERS, ran=("activate", "register")),
    Case("other", "kunlun_hooks", "other", chosen=OTHERS, ran=("activate",)),
    Case("", "other,other_hooks", "other", chosen=OTHERS, ran=("activate", "register")),
    Case("", BOTH, "other", chosen=OURS, hooks=True),
    Case("", f"{BOTH},other_hooks", "other", chosen=OURS, hooks=True, ran=("register",)),
    Case("kunlun", "kunlun_hooks,other_hooks", "other", chosen=OURS, hooks=True),
    Case("", "other,kunlun_hooks", "other", refused=("SGLang's platform is OtherPlatform", "set SGLANG_PLATFORM=kunlun, or leave kunlun_hooks out of SGLANG_PLUGINS")),
    Case("", "", "other without a device", chosen=OURS, hooks=True, ran=("activate",)),
    Case("other", "", "other without a device", error="activate() returned None"),
    Case("", "", "broken", chosen=OURS, hooks=True),
    # Beside a package with hooks alone.
    Case("", "", "only hooks", chosen=OURS, hooks=True, ran=("register",)),
    Case("kunlun", "", "only hooks", chosen=OURS, hooks=True, ran=("register",)),
    Case("", BOTH, "only hooks", chosen=OURS, hooks=True),
    # A name of ours in another package: SGLang keeps one of the two, by their order on the path.
    *(
        Case(platform, "", name, refused=(f"= other_plugin:{function} (from other-plugin)", "uninstall"), comes=comes)
        for name, function in (("our platform's name", "activate"), ("our hooks' name", "register"))
        for platform in ("", "kunlun")
        for comes in ("before", "after")
    ),
    # Without a device we are not there.
    Case("", "", device=False, chosen=NOBODYS),
    Case("", BOTH, device=False, chosen=NOBODYS),
    Case("kunlun", "", device=False, error="activate() returned None"),
    Case("", "", "other", device=False, chosen=OTHERS, ran=("activate", "register")),
    Case("", "kunlun_hooks", "other", device=False, chosen=NOBODYS),
]  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("entry_points")
    cases = [_case(folder, case) for case in TABLE]
    _workspace(folder / "workspace")
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.choose_here"],
        input=json.dumps(cases),
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("SGLANG", "KUNLUN"))},
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KUNLUN_ADAPT_WORKSPACE": str(folder / "workspace"),
            "KUNLUN_ADAPT_CACHE": str(folder / "cache"),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(TABLE, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_what_is_chosen(case: Case, outcomes: dict[Case, dict[str, Any]]) -> None:
    found = outcomes[case]
    said = str(found["said"])
    if case.refused:
        assert found["code"] == 1, found
        assert said.count("the start is refused") == 1 and "What to do:" in said, said
        assert all(needle in said for needle in case.refused), said
        return
    assert found["code"] == 0, found
    assert case.error in found["error"] and bool(case.error) == bool(found["error"]), found
    if not case.error:
        assert found["platform"] == case.chosen
        assert (found["hooked"] == "ours") == case.hooks
        assert tuple(found["ran"]) == case.ran
    if not case.device:
        assert "kunlun" not in said
        assert not {"kunlun_adapt.runtime.doors", "kunlun_adapt_generated"} & set(found["imported"])


def _case(folder: Path, case: Case) -> dict[str, Any]:
    places: dict[str, list[str]] = {"before": [], "after": []}
    for name, groups in (("second", SECOND[case.second]), ("device", {})):
        place = folder / f"{name} {case.second if name == 'second' else ''}".strip()
        if not place.exists():
            _package(place, groups) if groups else _device(place)
        if groups or (name == "device" and case.device):
            places[case.comes if groups else "after"].append(str(place))
    chosen = {"SGLANG_PLATFORM": case.platform, "SGLANG_PLUGINS": case.plugins}
    return {**places, "environment": {k: v for k, v in chosen.items() if v}}


def _device(place: Path) -> None:
    place.mkdir()
    (place / "tiny_runtime.py").write_text("")
    (place / "tiny_hooks.py").write_text("def asked(call):\n    return 'ours'\n")


def _package(place: Path, groups: dict[str, dict[str, str]]) -> None:
    """Install a second plugin: its module, and the metadata by which Python finds it."""
    about = place / "other_plugin-1.0.dist-info"
    about.mkdir(parents=True)
    (place / "other_plugin.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-plugin\nVersion: 1.0\n")
    points = [
        line
        for group, named in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in named.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(points) + "\n")


def _workspace(root: Path) -> None:
    """Write the documents, with the lock of the installed release: so they are compiled once."""
    from kunlun_adapt.documents import load_catalog
    from kunlun_adapt.evolve.lock import lock_for
    from kunlun_adapt.upstream import Resolver, open_release, write_lock

    root.mkdir()
    (root / "platform_map.yaml").write_text(MAP)
    catalog = load_catalog(root)
    assert not catalog.findings, catalog.findings
    spec = find_spec("sglang")
    assert spec is not None and spec.submodule_search_locations
    tree = Path(spec.submodule_search_locations[0]).parent
    lock, _ = lock_for(catalog, Resolver(open_release(f"{tree}@{version('sglang')}")))
    write_lock(root / "adapt.lock", lock)

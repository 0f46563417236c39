"""The processes of the installed SGLang get their hooks before they begin, loaded or not."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.runtime.installed import run_installed
from tests.runtime.stage import ROOT

MANAGERS = "sglang.srt.managers"
CONFIGURE = f"{MANAGERS}.detokenizer_manager.configure_logger"
PUBLISH = f"{MANAGERS}.data_parallel_controller.publish"
ENCODERS = "sglang.srt.disaggregation.encoder"
OLD_ENCODERS = "sglang.srt.disaggregation.encode_server"
SAYS = "args: {server: server_args, role: role}, ignores"
# What each process calls early, while it has no arguments yet that would have to be good for more.
AT = {
    "detokenizer": f"[{{target: {CONFIGURE}, args: {{server: server_args}}, ignores: [prefix]}}]",
    "dp_controller": f"""
      - {{sglang: "<0.5.21", target: {PUBLISH}, {SAYS}: [hf_config]}}
      - {{sglang: ">=0.5.21", target: {PUBLISH}, {SAYS}: [hf_config, ranks]}}""",
    "tokenizer": "[{target: sglang.srt.entrypoints.http_server.get_main_process_id}]",
    "encoder": f"""
      - sglang: "<0.5.19"
        target: {OLD_ENCODERS}.run_encoder
        args: {{server: server_args}}
        ignores: [schedule_path, dist_init_method, rank]
      - {{sglang: ">=0.5.19,<0.5.21", target: {ENCODERS}.server.publish, {SAYS}: [hf_config]}}
      - {{sglang: ">=0.5.21", target: {ENCODERS}.server.publish, {SAYS}: [hf_config, ranks]}}""",
    "encoder_dp": f"""
      - sglang: "<0.5.19"
        target: {OLD_ENCODERS}.configure_logger
        args: {{server: server_args}}
        ignores: [prefix]
      - {{sglang: ">=0.5.19,<0.5.21", target: {ENCODERS}.runtime.publish, {SAYS}: [hf_config]}}
      - {{sglang: ">=0.5.21", target: {ENCODERS}.runtime.publish, {SAYS}: [hf_config, ranks]}}""",
}
HOOK = """\
  - id: in-{process}
    why: a test waits for it
    type: replace
    process: [{process}]
    impl: "tests.runtime.processes_here:arrived"
    at: {at}
"""


@pytest.mark.full
@pytest.mark.server
@pytest.mark.parametrize("process", list(AT))
def test_hooks_come_to_every_process(process: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    _workspace(workspace)
    code = f"""
import runpy, sys
if __name__ == "__main__":
    sys.argv[1:] = [{process!r}]
    runpy.run_module("tests.runtime.processes_here", run_name="__main__")
"""
    done = run_installed(code, workspace, tmp_path / "cache")
    said = [line for line in done.stdout.splitlines() if line.startswith(("arrived", "ended"))]
    assert said == [f"arrived {process} applied", f"ended {process} 7"]


def _workspace(root: Path) -> None:
    """Write a map that has nothing but our processes and hooks, and lock the installed release."""
    import yaml

    from kunlun_adapt.documents import load_catalog
    from kunlun_adapt.evolve.lock import lock_for
    from kunlun_adapt.upstream import Resolver, open_release, write_lock

    full = yaml.safe_load((ROOT / "platform_map.yaml").read_text(encoding="utf-8"))
    keys = ("platform", "platform_kind", "capabilities", "device", "process")
    body = {
        **{key: full[key] for key in ("apiVersion", "kind", "name", "sglang", "device")},
        "interface": {
            key: value for key, value in full["interface"].items() if key.split(".")[0] in keys
        },
    }
    hooks = "".join(HOOK.format(process=name, at=at) for name, at in AT.items())
    root.mkdir()
    (root / "platform_map.yaml").write_text(f"{yaml.safe_dump(body)}hooks:\n{hooks}")
    catalog = load_catalog(root)
    assert not catalog.findings, catalog.findings
    spec = find_spec("sglang")
    assert spec is not None and spec.submodule_search_locations
    tree = Path(spec.submodule_search_locations[0]).parent
    lock, missing = lock_for(catalog, Resolver(open_release(f"{tree}@{version('sglang')}")))
    assert not missing
    write_lock(root / "adapt.lock", lock)

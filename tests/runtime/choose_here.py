"""How the installed SGLang chooses its platform and its plugins: one forked process per case.

Reads cases as JSON from stdin and answers with one JSON line. Importing torch is what takes the
time, and upstream resolves nothing before it is asked, so that the forks share the import.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import tempfile
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any


def choose(case: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(case["environment"])
    sys.path[:0] = case["before"]
    sys.path += case["after"]
    importlib.invalidate_caches()
    import sglang.srt.platforms as platforms
    from sglang.srt.plugins import load_plugins

    found: dict[str, Any] = {"error": "", "ran": []}
    try:
        found["platform"] = type(platforms.current_platform).__name__
        load_plugins()
        found["hooked"] = platforms._is_cpu_available()
    except RuntimeError as error:
        found["error"] = str(error)
    found["ran"] = getattr(sys.modules.get("other_plugin"), "RAN", [])
    found["imported"] = sorted(m for m in sys.modules if m.startswith("kunlun_adapt"))
    return found


def in_a_fork(case: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        answer, said = Path(folder, "answer"), Path(folder, "said")
        child = os.fork()
        if child == 0:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
            code = 70
            try:
                answer.write_text(json.dumps(choose(case)))
                code = 0
            except SystemExit as error:
                code = int(error.code or 0)
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "said": said.read_text(),
            **(json.loads(answer.read_text()) if answer.exists() else {}),
        }


if __name__ == "__main__":
    # The package itself would ask for the platform as it is imported; nothing else is left out.
    package = find_spec("sglang")
    assert package is not None
    sys.modules["sglang"] = module_from_spec(package)
    importlib.import_module("sglang.srt.platforms")
    logging.basicConfig(level=logging.WARNING)
    print(json.dumps([in_a_fork(case) for case in json.load(sys.stdin)]))

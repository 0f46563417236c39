"""render, list, explain, lock: what they print, and their exit codes. From the lock alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kunlun_adapt import __version__
from tests.cli.conftest import Edit, Run


def test_help_and_version(run: Run) -> None:
    assert run("--version").stdout == f"kunlun-adapt {__version__}\n"
    for command in (
        "validate",
        "render",
        "list",
        "explain",
        "lock",
        "schema",
        "serve",
        "status",
        "bisect",
    ):
        result = run(command, "--help")
        assert result.exit_code == 0 and "Examples:" in result.stdout, command


def test_usage_errors_exit_with_two(run: Run) -> None:
    assert run("validate", "--format", "xml").exit_code == 2
    assert run("nonsense").exit_code == 2


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("command", ["validate", "render", "lock", "explain hooks", "list codes"])
def test_an_unset_variable_names_no_release(run: Run, command: str, empty: str) -> None:
    result = run(*command.split(), "--sglang", empty)
    assert result.exit_code == 2 and "no release is named" in result.stderr


def test_blanks_around_a_release_are_no_part_of_it(run: Run) -> None:
    result = run("list", "bindings", "--sglang", " 0.5.19 ", "--format", "json")
    assert json.loads(result.stdout)["release"] == "0.5.19"


def test_a_folder_that_is_no_workspace(run: Run, tmp_path: Path) -> None:
    result = run("list", "bindings", "--workspace", tmp_path)
    assert result.exit_code == 2 and "platform_map.yaml is missing" in result.stderr


def test_list_bindings(run: Run) -> None:
    result = run("list", "bindings", "--sglang", "0.5.19", "--format", "json")
    body = json.loads(result.stdout)
    assert (body["schema"], body["release"]) == (1, "0.5.19")
    rows = {b["id"]: b for b in body["bindings"]}
    assert sum(b["status"] == "bound" for b in rows.values()) >= 25
    assert rows["rms_norm/RMSNorm"]["served"] == "simulator"
    assert rows["worker-affinity"]["served"] == "resolved only" and rows["worker-affinity"]["why"]
    assert {b["served"] for b in rows.values() if b["status"] != "bound"} == {"no"}
    assert all(
        set(b) >= {"kind", "family", "target", "claims", "file", "line"} for b in rows.values()
    )


def test_list_bindings_fits_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("list", "bindings", "--sglang", "0.5.19", "--quiet")
    piped = run(*arguments).stdout.splitlines()
    assert {line.count("\t") for line in piped} == {9}, "a pipe has all columns"
    monkeypatch.setenv("FORCE_COLOR", "1")
    for width, columns in (("80", "id kind status served why"), ("2000", "id kind family target")):
        monkeypatch.setenv("COLUMNS", width)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", run(*arguments).stdout).splitlines()
        assert " ".join(shown[0].split()).startswith(columns)
        assert max(map(len, shown)) <= int(width)
    assert len(shown) == len(piped) + 1, "where it fits, each binding has one line"


def test_list_bindings_ends_with_the_coverage(run: Run) -> None:
    arguments = ("list", "bindings", "--sglang", "0.5.19")
    rows, _, table = run(*arguments).stdout.partition("\n\n")
    heading, *groups, total = [line.split() for line in table.splitlines()]
    assert heading == ["family", "bound", "planned", "excluded", "total"]
    assert total == ["total", *(str(sum(int(g[i]) for g in groups)) for i in range(1, 5))]
    assert int(total[4]) == len(rows.splitlines())
    assert run(*arguments, "--by", "family").stdout == table
    kinds = run(*arguments, "--by", "kind").stdout.splitlines()
    assert kinds[0].split()[0] == "kind" and kinds[-1].split() == total
    body = json.loads(run(*arguments, "--by", "family", "--format", "json").stdout)
    assert (body["schema"], body["by"], body["release"]) == (1, "family", "0.5.19")
    assert [str(g["family"]) for g in body["groups"]] == [g[0] for g in groups]
    assert body["total"]["total"] == int(total[4])


def test_list_bindings_filters(run: Run) -> None:
    def ids(*options: str) -> list[str]:
        result = run("list", "bindings", "--sglang", "0.5.19", "--format", "json", *options)
        return [b["id"] for b in json.loads(result.stdout)["bindings"]]

    every = ids()
    assert "rms_norm/RMSNorm" in ids("--family", "norm") and "worker-affinity" in ids(
        "--kind", "hook"
    )
    assert "worker-affinity" not in ids("--family", "norm")
    states = [ids("--status", s) for s in ("bound", "planned", "excluded")]
    assert sorted(i for state in states for i in state) == sorted(every)
    assert sorted(ids("--status", "bound", "--status", "planned")) == sorted(states[0] + states[1])
    assert ids("--status", "bound", "--kind", "shim") == ["shim/sgl_kernel"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("bindings", "--family", "nrom"), "did you mean norm?"),
        (("bindings", "--status", "planed"), "did you mean planned?"),
        (("bindings", "--kind", "xyz"), "one of factory, method, hook, kernel, shim"),
        (("codes", "--family", "norm"), "--family is for bindings"),
        (("operators", "--by", "family"), "--by is for bindings"),
        (("codes", "--sglang", "0.5.19"), "--sglang is for bindings, and codes have none of it"),
        (("releases", "--sglang", "0.5.19"), "--sglang is for bindings"),
    ],
)
def test_list_refuses_what_would_list_nothing(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    result = run("list", *options)
    assert result.exit_code == 2 and result.stdout == ""
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_list_the_rest(run: Run) -> None:
    operators = json.loads(run("list", "operators", "--format", "json").stdout)["operators"]
    assert "silu_and_mul" in [o["name"] for o in operators]
    assert "KA105" in run("list", "codes").stdout
    assert "0.5.19" in run("list", "releases").stdout


def test_explain(run: Run) -> None:
    assert "tier xpu_swiglu" in run("explain", "silu_and_mul").stdout
    assert "signature   (gpu_id)" in run("explain", "worker-affinity", "--sglang", "0.5.23").stdout
    assert "KA105" in run("explain", "ka105").stdout
    served = run("explain", "silu_and_mul", "--call", "x=bfloat16[7,512]")
    assert served.stdout == "silu_and_mul(x=bfloat16[7,512]): served by xpu_swiglu\n"
    served = run("explain", "silu_and_mul", "--call", "x=float64[7,512]")
    assert served.stdout.endswith("served by golden\n")


@pytest.mark.parametrize("call", ["y=1", "x", "x=7"])
def test_explain_refuses_what_is_no_call(run: Run, call: str) -> None:
    assert run("explain", "silu_and_mul", "--call", call).exit_code == 2


def test_explain_suggests(run: Run) -> None:
    result = run("explain", "worker-afinity", "--sglang", "0.5.19")
    assert result.exit_code == 2 and "worker-affinity" in result.stderr


@pytest.mark.upstream
def test_render_check_shows_just_what_changed(run: Run, edit: Edit, tmp_path: Path) -> None:
    root, folder = edit({}), tmp_path / "rendered"
    arguments = ("render", "--workspace", root, "--sglang", "0.5.19", "--profile", "simulator")
    assert run(*arguments, "--out", folder).exit_code == 0
    assert run(*arguments, "--check", folder).exit_code == 0
    edit({"why: --attention-backend refuses names": "why: --attention-backend rejects names"})
    edit({"400..768": "400..700"}, file="operator_recipes/moe.yaml")
    result = run(*arguments, "--check", folder)
    changed = [
        line
        for line in result.stdout.splitlines()
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert result.exit_code == 1 and "stale" in result.stderr
    # An operator that upstream traces has its tiers twice: as a whole, and for the eager call.
    assert list(dict.fromkeys(changed)) == [
        "-    # --attention-backend refuses names that are not in upstream's list",
        "+    # --attention-backend rejects names that are not in upstream's list",
        "-        and 400 <= pairs <= 768",
        "+        and 400 <= pairs <= 700",
    ]


@pytest.mark.upstream
def test_render_check_says_what_it_looked_at(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "rendered"
    assert run("render", "--sglang", "0.5.19", "--out", folder).exit_code == 0
    (folder / "operators" / "mine.py").write_text("")
    whole = run("render", "--sglang", "0.5.19", "--check", folder)
    assert whole.exit_code == 0
    assert whole.stdout == f"{folder} is what sglang 0.5.19 (card) renders to\n"
    assert "not generated by kunlun-adapt, and not compared: operators/mine.py" in whole.stderr
    (folder / "platform.py").write_text("stale")
    one = run("render", "hooks", "--sglang", "0.5.19", "--check", folder)
    assert one.exit_code == 0 and "mine.py" not in one.stderr
    assert one.stdout == f"{folder / 'hooks.py'} is what sglang 0.5.19 (card) renders to\n"
    one = run("render", "platform", "--sglang", "0.5.19", "--check", folder)
    advice = f"render platform --sglang 0.5.19 --profile card --out {folder}"
    assert one.exit_code == 1
    assert f"{folder / 'platform.py'} is stale; try: kunlun-adapt {advice}\n" in one.stderr


@pytest.mark.upstream
def test_render_writes_what_it_prints(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "operators").mkdir(parents=True)
    header = '"""Generated by kunlun-adapt; edit the recipe, not this."""\n'
    (out / "operators" / "gone.py").write_text(f"{header}<<<<<<< HEAD\n")
    foreign = {out / "mine.py": "keep = True\n", out / "operators" / "__init__.py": ""}
    for path, text in foreign.items():
        path.write_text(text)
    for _ in range(2):
        assert run("render", "--sglang", "0.5.19", "--out", out).exit_code == 0
    assert not (out / "operators" / "gone.py").exists()
    assert {path: path.read_text() for path in foreign} == foreign
    assert not list(out.rglob("*.part"))
    assert run("render", "--sglang", "0.5.19", "--check", out).exit_code == 0
    printed = run("render", "silu_and_mul", "--sglang", "0.5.19").stdout
    assert printed == (out / "operators" / "silu_and_mul.py").read_text(encoding="utf-8")
    body = json.loads(run("render", "hooks", "--sglang", "0.5.19", "--format", "json").stdout)
    assert list(body["modules"]) == ["hooks"]


@pytest.mark.upstream
@pytest.mark.parametrize("kind", ["text", "folder", "dangling link"])
def test_render_overwrites_nothing_foreign(run: Run, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    path = out / "platform.py"
    if kind == "text":
        path.write_text('keep = True\n"""Generated by kunlun-adapt."""\n')
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    result = run("render", "--sglang", "0.5.19", "--out", out)
    assert result.exit_code == 2 and "platform.py was not generated" in result.stderr
    assert list(out.rglob("*")) == [path], "nothing is written"


@pytest.mark.upstream
def test_render_leaves_no_half_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "platform.py")

    monkeypatch.setattr("os.replace", full)
    result = run("render", "--sglang", "0.5.19", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "No space left" in result.stderr
    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(
    "options",
    [
        ("--check", "a", "--out", "b"),
        ("--check", "a", "--against", "0.5.17"),
        ("--out", "a", "--against", "0.5.17"),
        ("--against", "0.5.17", "--format", "json"),
        ("--out", "a", "--format", "json"),
    ],
)
def test_render_does_one_job_at_a_time(run: Run, options: tuple[str, ...]) -> None:
    result = run("render", "--sglang", "0.5.19", *options)
    assert result.exit_code == 2 and "exclude each other" in result.stderr


def test_render_check_wants_a_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, fault in (("file", "is not a folder"), ("missing", "does not exist")):
        result = run("render", "--sglang", "0.5.19", "--check", tmp_path / name)
        assert result.exit_code == 2 and fault in result.stderr


@pytest.mark.upstream
def test_render_on_a_terminal_cuts_no_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("render", "rms_norm", "--sglang", "0.5.19", "--quiet")
    plain = run(*arguments).stdout
    assert max(map(len, plain.splitlines())) > 80
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "80")):
        monkeypatch.setenv(name, value)
    shown = run(*arguments).stdout
    assert "\x1b[" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == plain


@pytest.mark.upstream
def test_render_against_shows_what_the_code_becomes(run: Run) -> None:
    arguments = ("render", "--sglang", "0.5.19", "--against", "0.5.23")
    shown = run(*arguments).stdout
    assert "--- sglang-0.5.19/platform.py\n+++ sglang-0.5.23/platform.py\n" in shown
    assert "-    def get_mha_kv_pool_cls(self):" in shown
    assert "+    def get_kv_pool_cls(self, *, kind):" in shown
    only = run("render", "platform", *arguments[1:]).stdout
    assert only in shown and only.count("+++ ") == 1
    same = run("render", "--sglang", "0.5.19", "--against", "0.5.19")
    assert (same.exit_code, same.stdout) == (0, "") and "is the same" in same.stderr


@pytest.mark.upstream
def test_render_against_names_a_module_that_one_release_has(run: Run) -> None:
    gate = ("render", "gate_sigmoid_mul", "--sglang", "0.5.17", "--against", "0.5.19")
    result = run(*gate)
    assert result.exit_code == 0
    assert "--- /dev/null\n+++ sglang-0.5.19/operators/gate_sigmoid_mul.py\n" in result.stdout


@pytest.mark.upstream
def test_render_refuses_a_module_that_is_not_there(run: Run) -> None:
    result = run("render", "nonsense", "--sglang", "0.5.19")
    assert result.exit_code == 2 and "platform" in result.stderr


@pytest.mark.upstream
def test_lock_check(run: Run, edit: Edit) -> None:
    assert run("lock", "--check", "--sglang", "0.5.19").exit_code == 0
    root = edit({"common.support_triton,": "common.is_cuda,", "{backend: backend}": "{}"})
    before = (root / "adapt.lock").read_bytes()
    result = run("lock", "--check", "--workspace", root, "--sglang", "0.5.19")
    assert result.exit_code == 1
    assert "adapt.lock is stale; try: kunlun-adapt lock --sglang 0.5.19\n" in result.stderr
    assert (root / "adapt.lock").read_bytes() == before
    root = edit({"common.is_cuda,": "common.gone,"})
    result = run("lock", "--workspace", root, "--sglang", "0.5.19")
    assert result.exit_code == 2 and "sglang.srt.utils.common.gone" in result.stderr
    assert (root / "adapt.lock").read_bytes() == before


def test_a_broken_lock_is_no_traceback(run: Run, edit: Edit) -> None:
    root = edit({'{"lock": 1}': "{"}, file="adapt.lock")
    result = run("list", "releases", "--workspace", root)
    assert result.exit_code == 2 and "adapt.lock:1" in result.stderr

"""`watch` over a real git history: the commit that broke a binding, without a checkout."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.diagnostics import Finding, Position, Severity
from kunlun_adapt.evolve.watch import Watched, watch
from kunlun_adapt.upstream import ReleaseError, Resolver, open_release
from kunlun_adapt.upstream.git_history import commits_between
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.said import codes
from tests.check.test_as_upstream import bound
from tests.cli.conftest import Run, run
from tests.upstream.test_git_store import git

__all__ = ["run"]  # a fixture of the commands' tests

module = sys.modules[watch.__module__]

COMMON = "sglang/srt/utils/common.py"
KERNEL = "sglang/kernels/ops/activation.py"
DEFINED = "def set_affinity(gpu_id, tp_size, nnodes=1):"


class History:
    """A clone of the bench's release, to which tests add commits."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.path = bench.root / "clone"
        self.path.mkdir()
        git(self.path, "init", "-q", "-b", "main")
        for name, text in self.bench.upstream.items():
            self._write(name, textwrap.dedent(text))
        self.commit("start")
        git(self.path, "tag", "v0.5.19")

    def _write(self, name: str, text: str) -> None:
        file = self.path / "python" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def commit(self, subject: str) -> str:
        git(self.path, "add", ".")
        git(self.path, "commit", "-q", "-m", subject)
        return git(self.path, "rev-parse", "HEAD")

    def edit(self, name: str, old: str, new: str, subject: str) -> str:
        text = (self.path / "python" / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        self._write(name, text.replace(old, new))
        return self.commit(subject)

    def noise(self, name: str = COMMON, count: int = 3) -> None:
        for _ in range(count):
            text = (self.path / "python" / name).read_text(encoding="utf-8")
            self._write(name, f"{text}# more\n")
            self.commit("a comment")

    def watch(self, since: str = "v0.5.19", severity: Severity = Severity.ERROR) -> Watched:
        return watch(self.bench.catalog(), None, self.path, since, severity=severity)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def history(bench: Bench) -> History:
    return History(bench)


def told(found: Watched) -> list[tuple[str, str | None, str | None]]:
    return [
        (item.finding.code, item.finding.binding, item.commit.hash if item.commit else None)
        for item in found.broken
    ]


def test_nothing_is_broken_by_comments(history: History) -> None:
    history.noise()
    found = history.watch()
    assert found.broken == ()
    assert (found.since.release, found.since.revision) == ("0.5.19", "v0.5.19")
    assert found.until.release.startswith("0.5.19+3.g")


def test_a_rename_and_a_new_signature_each_name_their_commit(history: History) -> None:
    history.noise()
    renamed = history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename set_affinity")
    history.noise()
    history.noise(KERNEL, 2)
    signed = history.edit(
        KERNEL, "def silu_and_mul(input, out", "def silu_and_mul(x, out", "Call it x"
    )
    history.noise(KERNEL, 2)
    found = history.watch()
    by_binding = {item.finding.binding: item for item in found.broken}
    assert set(by_binding) == {"affinity", "silu_and_mul/silu_and_mul"}
    assert by_binding["affinity"].finding.code in ("KA101", "KA102")
    first, second = found.broken[0], found.broken[-1]
    assert first.commit is not None and first.commit.hash == renamed
    assert first.commit.subject == "Rename set_affinity" and not first.commit.merge
    assert second.commit is not None and second.commit.hash == signed
    # Of the seven commits that touched the file, halving looks at few.
    assert first.among == 7 and first.tried <= 4


def test_nothing_is_checked_out_and_the_work_tree_is_not_looked_at(history: History) -> None:
    commit = history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename")
    before = git(history.path, "rev-parse", "HEAD")
    dirty = history.path / "python" / COMMON
    dirty.write_text("broken(", encoding="utf-8")
    assert [c for _, _, c in told(history.watch())] == [commit]
    assert dirty.read_text(encoding="utf-8") == "broken("
    assert git(history.path, "rev-parse", "HEAD") == before
    bare = history.path.parent / "bare.git"
    git(history.path.parent, "clone", "-q", "--bare", str(history.path), str(bare))
    found = watch(history.bench.catalog(), None, bare, "v0.5.19")
    assert [c for _, _, c in told(found)] == [commit]


def test_what_was_broken_before_has_no_commit(history: History) -> None:
    history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename")
    start = git(history.path, "rev-parse", "HEAD")
    history.noise()
    found = history.watch(start)
    assert [(item.before, item.commit) for item in found.broken] == [(True, None)]


def test_a_commit_that_a_merge_brought_is_named_with_the_merge(history: History) -> None:
    """A fork of upstream merges its main line: the cause lies among hundreds of its commits."""
    git(history.path, "checkout", "-q", "-b", "feature")
    history.noise()
    renamed = history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename on a branch")
    history.noise()
    git(history.path, "checkout", "-q", "main")
    history.noise(KERNEL)
    git(history.path, "merge", "-q", "--no-ff", "-m", "Merge feature", "feature")
    history.noise(KERNEL)
    (item,) = history.watch().broken
    assert item.commit is not None and item.merge is not None
    assert (item.commit.hash, item.commit.merge) == (renamed, False)
    assert (item.merge.subject, item.merge.merge) == ("Merge feature", True)
    assert item.to_json()["brought_by"]["subject"] == "Merge feature"


def test_the_command_shows_the_merge_under_the_commit(history: History, run: Run) -> None:
    git(history.path, "checkout", "-q", "-b", "feature")
    renamed = history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename on a branch")
    git(history.path, "checkout", "-q", "main")
    history.noise(KERNEL)
    git(history.path, "merge", "-q", "--no-ff", "-m", "Merge feature", "feature")
    merge = git(history.path, "rev-parse", "HEAD")
    workspace = str(history.bench.root / "workspace")
    history.bench.catalog()  # writes it
    result = run("watch", str(history.path), "--since", "v0.5.19", "--workspace", workspace)
    assert result.exit_code == 1
    heading, came, *_ = result.stdout.partition(renamed[:12])[2].splitlines()
    assert heading.endswith(" A: Rename on a branch")
    assert came.startswith(f"  came with merge {merge[:12]} ") and came.endswith("Merge feature")


def test_a_merge_within_a_merge(history: History) -> None:
    git(history.path, "checkout", "-q", "-b", "inner")
    renamed = history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename on a branch")
    git(history.path, "checkout", "-q", "-b", "outer", "main")
    history.noise(KERNEL)
    for into, branch in (("outer", "inner"), ("main", "outer")):
        git(history.path, "checkout", "-q", into)
        git(history.path, "merge", "-q", "--no-ff", "-m", f"Merge {branch}", branch)
    (item,) = history.watch().broken
    assert item.commit is not None and item.merge is not None
    assert (item.commit.hash, item.merge.subject) == (renamed, "Merge outer")


def test_a_merge_that_no_branch_explains_is_named_itself(history: History) -> None:
    """Neither branch lacks the function; who merged them took it out."""
    git(history.path, "checkout", "-q", "-b", "feature")
    history.noise(KERNEL)
    git(history.path, "checkout", "-q", "main")
    history.noise()
    git(history.path, "merge", "-q", "--no-commit", "--no-ff", "feature")
    history.edit(COMMON, "def set_affinity", "def pin_worker", "Merge feature badly")
    (item,) = history.watch().broken
    assert item.commit is not None and item.merge is None
    assert (item.commit.subject, item.commit.merge) == ("Merge feature badly", True)
    assert item.to_json()["brought_by"] is None


def test_a_cause_in_a_file_that_nobody_would_look_at_is_found(history: History) -> None:
    """The symbol leaves a wildcard's reach through the other module's `__all__`."""
    history._write("sglang/srt/utils/real.py", f"{DEFINED}\n    return gpu_id\n")
    text = textwrap.dedent(history.bench.upstream[COMMON]).partition("def set_affinity")[0]
    history._write(COMMON, f"{text}from sglang.srt.utils.real import *\n")
    history.commit("Split it")
    start = git(history.path, "rev-parse", "HEAD")
    history.noise()
    commit = history.edit(
        "sglang/srt/utils/real.py", "def set", '__all__ = ["other"]\n\n\ndef set', "Hide it"
    )
    history.noise()
    assert {c for _, _, c in told(history.watch(start))} == {commit}


def test_other_places_in_the_documents_are_followed_by_version(bench: Bench) -> None:
    """Both ends hold by another entry each; what broke the second is what is told."""
    entry = "target: sglang.srt.utils.common.set_affinity, args"
    newer = entry.replace("set_affinity", "pin_worker")
    both = bench.edit(MAP, f'>=0.5.18", {entry}', f'>=0.5.18,<0.5.20", {entry}')
    line = '{sglang: ">=0.5.20", ' + newer + ": {gpu_id: gpu_id}, ignores: {tp_size: $any}}\n"
    text = both.workspace[MAP]
    both = both.edit(MAP, "    served: {sim", f"      - {line}    served: {{sim")
    assert both.workspace[MAP] != text
    history = History(both)
    history.edit(
        COMMON, DEFINED, "def pin_worker(gpu_id, tp_size):", "Rename, as the documents say"
    )
    history.edit("sglang/version.py", "0.5.19", "0.5.20", "Release")
    git(history.path, "tag", "v0.5.20")
    assert history.watch().broken == ()
    commit = history.edit(COMMON, "def pin_worker", "def pin", "Rename again")
    assert [c for _, b, c in told(history.watch()) if b == "affinity"] == [commit]


def test_a_path_that_is_no_repository_or_has_no_such_revision(history: History) -> None:
    catalog = history.bench.catalog()
    with pytest.raises(ReleaseError, match="has no revision"):
        watch(catalog, None, history.path, "v0.1")
    with pytest.raises(ReleaseError, match="git cannot read"):
        watch(catalog, None, history.bench.root / "workspace", "v0.5.19")
    with pytest.raises(ReleaseError, match="has no revision"):
        watch(catalog, None, history.path, "--all")


def test_commits_are_plain_text_whatever_they_say(history: History) -> None:
    start = git(history.path, "rev-parse", "HEAD")
    history.noise(count=1)
    git(history.path, "commit", "-q", "--amend", "-m", "red \x1b[31malert")
    end = git(history.path, "rev-parse", "HEAD")
    (commit,) = commits_between(history.path, start, end, [COMMON])
    assert commit.subject == "red  [31malert" and commit.author == "A"
    assert commits_between(history.path, start, end, ["sglang/srt/runner.py"]) == ()


def test_validate_reads_a_revision_beyond_its_claims(history: History) -> None:
    catalog = history.bench.catalog()
    good = Resolver(open_release(f"git:{history.path}@v0.5.19"))
    history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename")
    bad = Resolver(open_release(f"git:{history.path}@HEAD"))
    errors = [
        [
            f
            for f in check_release(catalog, facts, beyond_claims=True).findings
            if f.severity is Severity.ERROR
        ]
        for facts in (good, bad)
    ]
    assert errors[0] == [] and codes(errors[1])[0] in ("KA101", "KA102")


def test_the_command_says_who_broke_what(history: History, run: Run) -> None:
    history.bench.catalog()
    workspace = history.bench.root / "workspace"
    asked = ("watch", history.path, "--since", "v0.5.19", "--workspace", workspace)
    result = run(*asked)
    assert result.exit_code == 0 and "nothing is broken" in result.stdout
    commit = history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename set_affinity")
    result = run(*asked)
    assert result.exit_code == 1, result.stderr
    assert f"{commit[:12]} " in result.stdout and "A: Rename set_affinity" in result.stdout
    assert "affinity" in result.stdout and "1 broken by 1 commit" in result.stdout
    result = run(*asked, "--format", "json")
    assert result.exit_code == 1
    body = json.loads(result.stdout)
    assert body["schema"] == 1 and body["until"]["commit"] == commit
    (item,) = body["broken"]
    assert item["commit"]["hash"] == commit and item["broken_before"] is False
    assert item["binding"] == "affinity" and item["file"] == MAP
    result = run(
        "validate",
        "--beyond-claims",
        "--sglang",
        f"git:{history.path}@HEAD",
        "--workspace",
        workspace,
    )
    assert result.exit_code == 1 and "affinity" in result.stdout
    assert run(*asked[:2], "--since", "nowhere", "--workspace", workspace).exit_code == 2


@pytest.mark.parametrize("noise", [(0, 6), (6, 0), (3, 3)])
def test_of_several_breaks_the_last_is_named(history: History, noise: tuple[int, int]) -> None:
    """Halving alone ends at either break, as the number of commits around them has it."""
    for name in ("pin_worker", "pin"):
        history.noise(count=noise[0])
        history.edit(COMMON, "def set_affinity", f"def {name}", f"Rename to {name}")
        history.noise(count=noise[1])
        history.edit(COMMON, f"def {name}(", "def set_affinity(", "Revert")
        history.noise(count=noise[1])
    last = history.edit(COMMON, "def set_affinity", "def pin_process", "Rename for good")
    history.noise(count=noise[1])
    assert [c for _, _, c in told(history.watch())] == [last]


def test_a_file_that_went_and_came_back_is_no_break(history: History) -> None:
    file = history.path / "python" / COMMON
    text = file.read_text(encoding="utf-8")
    file.unlink()
    history.commit("Drop it")
    history.noise(KERNEL, 2)
    history._write(COMMON, text)
    history.commit("Bring it back")
    assert history.watch().broken == ()
    last = history.edit(COMMON, "def set_affinity", "def pin", "Rename")
    history.noise()
    assert [c for _, _, c in told(history.watch())] == [last]


def test_a_start_that_is_not_below_the_end(history: History) -> None:
    """Upstream tags a release on its branch; what matters is the main line from there on."""
    parted = history.edit(COMMON, "nnodes=1):", "nnodes=1, more=0):", "Take more")
    git(history.path, "checkout", "-q", "-b", "release")
    start = history.edit(COMMON, ", more=0):", "):", "Take less in the release")
    git(history.path, "checkout", "-q", "main")
    history.noise()
    renamed = history.edit(KERNEL, "def silu_and_mul", "def silu", "Rename")
    history.noise()
    found = history.watch(start)
    assert found.parted == parted
    by_binding = {item.finding.binding: item for item in found.broken}
    before, after = by_binding["affinity"], by_binding["silu_and_mul/silu_and_mul"]
    assert before.before and before.held and before.commit is None
    assert after.commit is not None and after.commit.hash == renamed


def test_what_was_broken_where_they_part_and_mended_and_broken_again(history: History) -> None:
    history.edit(COMMON, "def set_affinity", "def pin", "Rename")
    git(history.path, "checkout", "-q", "-b", "release")
    start = history.edit(COMMON, "def pin", "def set_affinity", "Mend it in the release")
    git(history.path, "checkout", "-q", "main")
    history.noise()
    history.edit(COMMON, "def pin", "def set_affinity", "Mend it")
    history.noise()
    last = history.edit(COMMON, "def set_affinity", "def pin", "Rename again")
    (item,) = history.watch(start).broken
    assert item.commit is not None and (item.commit.hash, item.before) == (last, False)


def test_the_command_says_where_they_part(history: History, run: Run) -> None:
    history.edit(COMMON, "def set_affinity", "def pin", "Rename")
    parted = git(history.path, "rev-parse", "HEAD")
    git(history.path, "checkout", "-q", "-b", "release")
    history.edit(COMMON, "def pin", "def set_affinity", "Mend it in the release")
    git(history.path, "tag", "v0.5.20")
    git(history.path, "checkout", "-q", "main")
    history.noise()
    history.bench.catalog()
    asked = ("watch", history.path, "--since", "v0.5.20", "--until", "main")
    result = run(*asked, "--workspace", history.bench.root / "workspace")
    assert result.exit_code == 1
    said = f"broken already at {parted[:12]}, where v0.5.20 and main part"
    assert said in result.stdout and "1 broken before" in result.stdout


def test_two_histories_without_a_commit_in_common(history: History) -> None:
    git(history.path, "checkout", "-q", "--orphan", "other")
    history.commit("another root")
    with pytest.raises(ReleaseError, match="have no commit in common"):
        watch(history.bench.catalog(), None, history.path, "v0.5.19", "other", version="0.5.19")


def test_a_clone_that_lacks_objects_names_no_commit(history: History) -> None:
    """It would name a wrong one: what cannot be read is not whole."""
    history.noise()
    history.edit(COMMON, "def set_affinity", "def pin", "Rename")
    history.noise()
    git(history.path, "config", "uploadpack.allowFilter", "true")
    partial = history.path.parent / "partial"
    git(partial.parent, "clone", "-q", "--filter=blob:none", history.path.as_uri(), str(partial))
    git(partial, "checkout", "-q", "v0.5.19")  # brings what both ends need
    with pytest.raises(ReleaseError, match="git cannot read"):
        watch(history.bench.catalog(), None, partial, "v0.5.19", "main")


def test_a_commit_without_a_subject_is_a_commit(history: History) -> None:
    history.noise()
    text = (history.path / "python" / COMMON).read_text(encoding="utf-8")
    history._write(COMMON, text.replace("def set_affinity", "def pin"))
    git(history.path, "add", ".")
    git(history.path, "commit", "-q", "--allow-empty-message", "-m", "")
    unnamed = git(history.path, "rev-parse", "HEAD")
    history.noise()
    assert [c for _, _, c in told(history.watch())] == [unnamed]


@pytest.mark.parametrize(
    ("version", "said"), [("abc", "'abc' is no version"), (None, "or say --version")]
)
def test_the_version_that_nothing_tells(
    history: History, run: Run, version: str | None, said: str
) -> None:
    git(history.path, "tag", "-d", "v0.5.19")
    history._write("sglang/version.py", "")
    history.commit("Without a version")
    history.bench.catalog()
    stated = ("--version", version) if version else ()
    place = ("--workspace", history.bench.root / "workspace")
    result = run("watch", history.path, "--since", "HEAD", *stated, *place)
    assert result.exit_code == 2 and said in " ".join(result.stderr.split())


def test_a_shallow_clone_is_watched_as_far_as_it_goes(history: History) -> None:
    history.noise()
    start = git(history.path, "rev-parse", "HEAD")
    last = history.edit(COMMON, "def set_affinity", "def pin", "Rename")
    history.noise(count=1)
    shallow = history.path.parent / "shallow"
    git(history.path.parent, "clone", "-q", "--depth", "3", history.path.as_uri(), str(shallow))
    catalog = history.bench.catalog()
    found = watch(catalog, None, shallow, start, version="0.5.19")
    assert [c for _, _, c in told(found)] == [last]
    with pytest.raises(ReleaseError, match="has no revision"):
        watch(catalog, None, shallow, "HEAD~5", version="0.5.19")


def test_an_implementation_that_a_new_signature_breaks_is_told(bench: Bench) -> None:
    """What the documents owe to the release as well: upstream alone makes KA302 speak."""
    takes = bound(bench, "(gpu_id, tp_size, nnodes=1)")
    history = History(takes)
    history.noise()
    assert history.watch().broken == ()
    signed = history.edit(COMMON, "tp_size, nnodes=1", "tp_size, nnodes=1, numa=None", "Add numa")
    history.noise()
    found = history.watch()
    assert told(found) == [("KA302", "affinity", signed)]
    end = Resolver(open_release(f"git:{history.path}@HEAD"))
    report = check_release(takes.catalog(), end, beyond_claims=True)
    errors = [f for f in report.findings if f.severity is Severity.ERROR]
    assert [item.finding for item in found.broken] == errors


def test_a_golden_inside_upstream_that_goes_away(bench: Bench) -> None:
    golden = "sglang.srt.utils.common:silu_golden"
    named = bench.edit(RECIPE, "our_impls:silu_golden", golden)
    named = named.add(COMMON, "\ndef silu_golden(x, out):\n    return x\n")
    history = History(named)
    history.noise()
    assert history.watch().broken == ()
    commit = history.edit(COMMON, "def silu_golden", "def silu_gold", "Rename the golden")
    history.noise()
    assert [(code, hash) for code, _, hash in told(history.watch())] == [("KA301", commit)]


def test_a_version_is_no_difference_between_two_messages() -> None:
    at = Position(MAP, 1, 1)
    words = {
        module._words(Finding.of("KA304", f"sglang {v} has no server argument 'x'", at))
        for v in ("0.5.19", "0.5.19+3.g1f2e3d4", "0.5.20+412.gabcdef0")
    }
    assert len(words) == 1


def test_between_a_commit_and_itself_nothing_is_looked_at_twice(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.edit(COMMON, "def set_affinity", "def pin_worker", "Rename")

    def refuse(*_: object) -> bool:
        raise AssertionError("looked at again")

    monkeypatch.setattr(module, "_shows", refuse)
    monkeypatch.setattr(module, "_has", refuse)
    found = history.watch("HEAD")
    assert [(item.before, item.commit) for item in found.broken] == [(True, None)]

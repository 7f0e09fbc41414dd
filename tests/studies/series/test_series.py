# SPDX-License-Identifier: GPL-2.0-or-later
"""Series of patches on the fake tree: real patches, builds and ruling out; planted effects."""

import re
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.search.minimal import PatchRole
from kdelta.infer.search.search_model import PatchOutcome, View
from kdelta.kernels.kbuild.built import built_kernels
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.search.measure import source_spec
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.trees import Trees
from tests.kernels.git_trees import git, state
from tests.studies.search_lab import counts_of
from tests.studies.series.patches import (
    LOCK,
    PAGES,
    Queue,
    SeriesLab,
    checked,
    fates,
    first_line,
    found,
    in_regions,
    run,
    usual,
)

pytestmark = pytest.mark.build

WANTED = {
    "0002-lock-one": {"open": 30},
    "0004-pages-two": {"fault": -20},
    "0005-lock-three": {"open": 7},
}


def test_what_each_patch_does(queue: Queue, lab: SeriesLab) -> None:
    request = usual(queue)
    before = state(queue.tree)
    report = run(request, lab)
    assert found(report) == WANTED
    assert fates(report)["0001-old-dead"] is PatchOutcome.RULED_OUT
    zero = next(row for row in report.rows if row.name == "0003-pages-zero")
    assert zero.answer.outcome is PatchOutcome.RULED_OUT
    assert zero.why.endswith("executed objects come out the same with it")
    assert report.proof is not None
    assert report.proof.held is True
    # Both ends, the proof, and two points to tell three patches apart.
    assert len(lab.measured) == len(report.builds) <= 5
    assert state(queue.tree) == before
    text = checked(report)
    flat = " ".join(text.split())
    assert re.search(r"0001-old-dead [01] 0 ", flat)
    assert "0005-lock-three 0002-lock-one" in flat


class VaryingLab(SeriesLab):
    """Kernels whose calls cost more or less by the state that a run starts from, all alike."""

    def counts(self, kernel: Kernel, index: int) -> RunCounts | None:
        """Return what the source comes to, in that state."""
        usual = super().counts(kernel, index)
        assert usual is not None
        costs = {one.name: one.functions[0].cost.insns // 100 for one in usual.regions}
        costs["open"] += (0, 30, 7, 19)[index % 4]
        return counts_of({name: {f"do_{name}": n} for name, n in costs.items()})


def test_an_instruction_in_a_call_whose_runs_vary_is_found_by_pairs(
    queue: Queue, store: Store, lab: SeriesLab
) -> None:
    """Compare calls it "slower", so a series may not call it without effect."""
    assert not lab.made
    line = "\t*it += 2; /* cost open 1 */"
    queue.add("lock: count", "kernel/lock.c", LOCK, line)
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    queue.add("lock: three", "kernel/lock.c", line, "\t*it += 3; /* cost open 4 */")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, VaryingLab(store))
    assert found(report) == {"0001-lock-count": {"open": 1}, "0003-lock-three": {"open": 3}}
    text = checked(report)
    assert next(one.before.high - one.before.low for one in report.regions if one.name == "open")
    assert "0001-lock-count" not in text.partition("No effect seen")[2].partition("Ruled out")[0]


@pytest.mark.slow
def test_series_that_changes_no_byte_ends_at_once(
    queue: Queue, lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.studies.series.study.reach_looked_closer", None)
    queue.add("core: comment", "kernel/core.c", first_line(queue, "kernel/core.c"), "/* more */")
    request = SeriesRequest(tree=str(queue.tree), patches=(str(queue.done()),))
    report = run(request, lab)
    (row,) = report.rows
    assert row.answer.outcome is PatchOutcome.RULED_OUT
    assert row.why.startswith("equal images")
    assert len(lab.measured) == 2
    assert checked(report).count("0001-core-comment") == 1


@pytest.mark.slow
def test_all_views(queue: Queue, lab: SeriesLab) -> None:
    request = msgspec.structs.replace(usual(queue), views=tuple(View))
    report = run(request, lab)
    assert lab.measured
    rows = {row.name: row.answer for row in report.rows}
    one, three = rows["0002-lock-one"], rows["0005-lock-three"]
    assert one.left_out is not None
    assert one.left_out.others == ("0005-lock-three",)
    assert in_regions(one.left_out.effects) == {"open": 37}
    assert three.alone is not None
    assert three.alone.others == ("0002-lock-one",)
    assert in_regions(three.alone.effects) == {"open": 7}
    assert not report.interactions
    assert "left out" in checked(report)


@pytest.mark.slow
def test_asking_again_builds_nothing(queue: Queue, lab: SeriesLab) -> None:
    request = usual(queue)
    first = run(request, lab)
    assert lab.measured
    logs = {built.key: (built.path / "build.log").stat().st_mtime_ns for built in built_kernels()}
    again = run(request, lab)
    assert found(again) == found(first)
    assert [one.identity for one in again.builds] == [one.identity for one in first.builds]
    assert {
        built.key: (built.path / "build.log").stat().st_mtime_ns for built in built_kernels()
    } == logs


@pytest.mark.slow
def test_patches_that_only_build_together(queue: Queue, lab: SeriesLab) -> None:
    queue.after(
        "lock: use",
        "kernel/lock.c",
        LOCK,
        "\tadd(it); /* cost open 5 */",
        "#ifndef add",
        "#error no add",
        "#endif",
    )
    queue.after(
        "lock: add",
        "include/linux/lock.h",
        first_line(queue, "include/linux/lock.h"),
        "#define add(it) (*(it) += 1)",
    )
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault 9 */",
    )
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, lab)
    assert lab.measured
    (group,) = report.groups
    assert group.patches == ("0001-lock-use", "0002-lock-add")
    assert "no add" in group.reason
    assert in_regions(group.effects) == {"open": 5}
    assert found(report) == {"0003-pages-two": {"fault": 9}}
    assert "group 1: 0001-lock-use, 0002-lock-add; the tree up to" in checked(report)


@pytest.mark.slow
def test_the_smallest_set(queue: Queue, lab: SeriesLab) -> None:
    queue.after("old: dead", "drivers/old.c", first_line(queue, "drivers/old.c"), "/* dead */")
    queue.after(
        "lock: add",
        "include/linux/lock.h",
        first_line(queue, "include/linux/lock.h"),
        "#define add(it) (*(it) += 1)",
    )
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    queue.after(
        "lock: use",
        "kernel/lock.c",
        LOCK,
        "#ifndef add",
        "#error no add",
        "#endif",
        "\tadd(it); /* cost open 50 */",
    )
    queue.add(
        "pages: three",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost open 1 */",
    )
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),), minimal=True)
    report = run(request, lab)
    assert report.minimal is not None
    answer = report.minimal.answer
    assert {one.name: one.role for one in answer.members} == {
        "0002-lock-add": PatchRole.NEEDED,
        "0004-lock-use": PatchRole.CULPRIT,
    }
    assert "no add" in answer.members[0].text
    assert in_regions(report.minimal.effects) == {"open": 50}
    text = checked(report)
    assert "2 patches have the effect of all, within 10" in text
    exact = run(msgspec.structs.replace(request, within=request.within * 0), lab)
    assert exact.minimal is not None
    assert [one.name for one in exact.minimal.answer.members] == [
        *("0002-lock-add", "0004-lock-use", "0005-pages-three"),
    ]
    assert lab.measured


@pytest.mark.slow
def test_a_series_without_effect_has_no_smallest_set(queue: Queue, lab: SeriesLab) -> None:
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),), minimal=True)
    report = run(request, lab)
    assert report.minimal is None
    assert len(lab.measured) == 2
    assert "All patches together change no region's path" in checked(report)


@pytest.mark.slow
def test_a_range_of_the_trees_own_commits(queue: Queue, lab: SeriesLab) -> None:
    usual(queue)
    request = SeriesRequest(tree=f"git:{queue.tree}@base", patches=("base..work",))
    report = run(request, lab)
    assert lab.measured
    wanted = {name.partition("-")[2]: effects for name, effects in WANTED.items()}
    assert found(report) == wanted


@pytest.mark.slow
def test_ruling_out_that_was_wrong(queue: Queue, lab: SeriesLab) -> None:
    unused = "int unused(void) { return 1; } /* cost empty 3 */"
    queue.after("old: dead", "mm/pages.c", first_line(queue, "mm/pages.c"), unused)
    queue.after("lock: one", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, lab)
    assert report.proof is not None
    assert report.proof.held is False
    assert found(report) == {"0001-old-dead": {"empty": 3}, "0002-lock-one": {"open": 30}}
    assert "ruling out was wrong" in checked(report)
    assert lab.measured


@pytest.mark.slow
def test_an_end_that_does_not_boot(queue: Queue, lab: SeriesLab) -> None:
    queue.after("lock: panic", "kernel/lock.c", LOCK, "\t*it += 2; /* panic */")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, lab)
    assert "with all patches: syscalls: boot-failed: panic" in report.failure
    assert "nothing to compare" in checked(report)
    assert lab.measured


def fuzzy(queue: Queue) -> Path:
    """The usual patches, of which the first line of context of one is not the tree's."""
    folder = Path(usual(queue).patches[0])
    bad = folder / "0004-pages-two.patch"
    text, times = re.subn(r"(?m)^(@@ .*\n) ", r"\1 not ", bad.read_text(), count=1)
    assert times == 1
    bad.write_text(text)
    return folder


def test_series_with_fuzz_applies_and_the_branch_gets_exact_diffs(
    queue: Queue, store: Store
) -> None:
    folder = fuzzy(queue)
    spec = source_spec(f"tree:{queue.tree} +fuzz:1", "a series")
    trees = Trees(spec, [str(folder)], Lab(store, Silent(), LabRequest()))
    assert trees.series.notes[-1] == "0004-pages-two: mm/pages.c, hunk 1: fuzz 1"
    for patch in trees.exact(trees.names):
        (folder / "exact.diff").write_bytes(patch.content)
        git(queue.tree, "apply", str(folder / "exact.diff"))
    assert git(queue.tree, "diff", "work") == ""


def test_a_patch_that_does_not_apply(queue: Queue, lab: SeriesLab) -> None:
    folder = fuzzy(queue)
    with pytest.raises(UserError, match=r"0004-pages-two \(4 of 5\) does not apply") as caught:
        run(SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(folder),)), lab)
    assert "hunk 1" in caught.value.message
    assert "--fuzz 1 would take it" in caught.value.message
    assert not lab.measured


def test_a_kernel_that_is_built_already(lab: SeriesLab) -> None:
    with pytest.raises(UserError, match="not a source tree"):
        run(SeriesRequest(tree="deb:linux-image-amd64", patches=("x",)), lab)


@pytest.mark.parametrize("change", ["+sections", "+shuffle:1", "+kernel-mode"])
def test_series_of_tree_that_kdelta_patches_itself_is_refused(
    queue: Queue, lab: SeriesLab, change: str
) -> None:
    request = usual(queue)
    changed = msgspec.structs.replace(request, tree=f"{request.tree} {change}")
    with pytest.raises(UserError, match=re.escape(f"a series cannot be of a tree with {change}")):
        run(changed, lab)
    assert lab.measured == []

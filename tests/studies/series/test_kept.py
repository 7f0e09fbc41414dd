# SPDX-License-Identifier: GPL-2.0-or-later
"""The measured branch of a series on the fake tree: kept, rebased, measured on the next base."""

from pathlib import Path

import msgspec
import pytest

from kdelta.spec.errors import UserError
from kdelta.studies.series.held import StatedOutcome, held
from kdelta.studies.series.request import SeriesRequest
from tests.kernels.git_trees import commit, git, state
from tests.studies.series.patches import LOCK, PAGES, Queue, SeriesLab, checked, run

pytestmark = pytest.mark.build


def kept(queue: Queue) -> SeriesRequest:
    """A faster patch, a slower one, one that needs the slower one, and a slower one alone."""
    queue.add(
        "pages: fast",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault -20 */",
    )
    queue.after("lock: slow", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    line = "\t*it += 2; /* cost open 30 */"
    queue.add("lock: better", "kernel/lock.c", line, "\t*it += 4; /* cost open 10 */")
    queue.add(
        "core: slow",
        "kernel/core.c",
        "	clear_pages(2);",
        "	clear_pages(3); /* cost empty 2 */",
    )
    folder = str(queue.done())
    return SeriesRequest(
        tree=f"git:{queue.tree}@base", patches=(folder,), keep=f"{queue.tree}:fast", drop=True
    )


def messages(tree: Path, branch: str) -> dict[str, list[str]]:
    """By subject, the trailers of each commit of a branch but for the first."""
    text = git(tree, "log", "--format=%s%n%(trailers:only)%x00", f"base..{branch}")
    rows = [row.strip().splitlines() for row in text.split("\0") if row.strip()]
    return {row[0]: row[1:] for row in reversed(rows)}


@pytest.mark.slow
def test_a_branch_is_kept_and_measured_on_the_next_base(queue: Queue, lab: SeriesLab) -> None:
    request = kept(queue)
    tree = queue.tree
    before = (
        state(tree / "mm"),
        git(tree, "status", "--porcelain"),
        git(tree, "rev-parse", "HEAD"),
    )
    report = run(request, lab)
    assert report.kept is not None
    assert report.kept.dropped == ("0004-core-slow",)
    assert report.kept.marked == ("0002-lock-slow",)
    base = f"Kdelta-base: linux@base, tree {git(tree, 'rev-parse', 'base^{tree}')[:12]}"
    assert messages(tree, "fast") == {
        "pages: fast": ["Kdelta-effect: syscalls/fault -10.00 % path (exact)", base],
        "lock: slow": [
            "Kdelta-effect: syscalls/open +30.00 % path (exact)",
            "Kdelta-mark: slower",
            base,
        ],
        "lock: better": ["Kdelta-effect: syscalls/open -20.00 % path (exact)", base],
    }
    assert before == (
        *(state(tree / "mm"), git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD")),
    )
    assert "Dropped, since slower: 0004-core-slow." in " ".join(checked(report).split())

    # The next release has half of the first patch's gain alone.
    git(tree, "checkout", "-q", "-b", "next", "base")
    commit(tree, "news", **{"kernel/core.c": (tree / "kernel/core.c").read_text() + NEWS})
    new = SeriesRequest(tree=f"git:{tree}@next", patches=(f"{tree}:fast",), keep=f"{tree}:fast")
    again = run(new, lab)
    assert [row.name for row in again.rows] == ["pages-fast", "lock-slow", "lock-better"]
    assert again.rows[0].earlier == ("syscalls/fault -10.00 % path (exact)",)
    assert [(one.region, one.now, one.word) for one in held(again)] == [
        ("syscalls/fault", -5.0, StatedOutcome.LESS),
        ("syscalls/open", 30.0, StatedOutcome.HOLDS),
        ("syscalls/open", -20.0, StatedOutcome.HOLDS),
    ]
    assert "\n2 holds, 1 less.\n" in checked(again)
    assert git(tree, "log", "--format=%s", "next..fast").split("\n")[:-1] == [
        *("lock: better", "lock: slow", "pages: fast"),
    ]
    trailers = messages(tree, "fast")["pages: fast"]
    assert trailers[0] == "Kdelta-effect: syscalls/fault -5.00 % path (exact)"
    assert lab.measured


NEWS = "/* cost fault 200 */\n"


def test_a_branch_that_cannot_be_written_is_told_before_anything_is_built(
    queue: Queue, lab: SeriesLab
) -> None:
    request = kept(queue)
    for branch, message in (("work", "kdelta did not write it"), ("a..b", "not a name")):
        bad = msgspec.structs.replace(request, keep=f"{queue.tree}:{branch}")
        with pytest.raises(UserError, match=message):
            run(bad, lab)
    assert not lab.measured

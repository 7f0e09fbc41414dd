# SPDX-License-Identifier: GPL-2.0-or-later
"""Series of patches for the fake tree, and what the kernels that come of them execute."""

import asyncio
import functools
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.estimate import MEAN, Estimate
from kdelta.infer.search.search_model import PatchOutcome
from kdelta.kernels.kbuild.built import load_built
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.git import GitStore
from kdelta.lab.lab import Lab
from kdelta.lab.request import USUAL_LAB
from kdelta.studies.documents import document_text
from kdelta.studies.series.model import SeriesReport
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.study import run_series
from tests.kernels.git_trees import commit, git
from tests.report.shown import shown
from tests.studies.search_lab import SearchLab, counts_of

BASE = {"open": 100, "fault": 200, "empty": 4}
SOURCES = ("kernel/core.c", "kernel/lock.c", "mm/pages.c", "drivers/old.c")

LOCK = "\t*it += 1;"
PAGES = "\treturn i + pages[count];"


class SeriesLab(SearchLab):
    """A source says itself what it costs, in lines such as `cost open 30`."""

    @property
    def measured(self) -> list[Kernel]:
        """Return the kernels that were run, each time."""
        assert {len(one.indexes) for one in self.whole} <= {USUAL_LAB.perturbations, 8}
        return [one.kernel for one in self.whole]

    def counts(self, kernel: Kernel, _index: int) -> RunCounts | None:
        """Return what the source of a kernel comes to."""
        built = load_built(kernel.built or "")
        assert built is not None
        text = _text(built.folder, built.tree)
        if "panic" in text:
            return None
        found = dict(BASE)
        for region, sign, value in re.findall(r"cost (\w+) (-?)(\d+)", text):
            found[region] += int(f"{sign}{value}")
        return counts_of({name: {f"do_{name}": n} for name, n in found.items()})


@functools.cache  # a program is started for each file, and a kernel has several runs
def _text(folder: str, tree: str) -> str:
    store = GitStore(Path(folder))
    return "".join((store.blob(f"{tree}:{name}") or b"").decode() for name in SOURCES)


class Queue:
    """Patches for the fake tree, each made on top of those before it."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree = tree
        self.folder = folder
        commit(tree, "base")
        git(tree, "tag", "base")

    def add(self, subject: str, file: str, before: str, *after: str) -> str:
        """A patch that replaces a line."""
        path = self.tree / file
        text = path.read_text()
        assert f"{before}\n" in text
        changed = text.replace(f"{before}\n", "".join(f"{line}\n" for line in after), 1)
        commit(self.tree, subject, **{file: changed})
        return subject

    def after(self, subject: str, file: str, line: str, *more: str) -> str:
        """A patch that adds lines after one."""
        return self.add(subject, file, line, line, *more)

    def done(self) -> Path:
        """Writes the patches; the tree is as it was then."""
        git(self.tree, "branch", "-f", "work")
        git(self.tree, "format-patch", "-q", "-N", "-o", str(self.folder), "base..work")
        git(self.tree, "checkout", "-q", "base")
        return self.folder


def usual(queue: Queue) -> SeriesRequest:
    """Five patches: dead code, two that matter, one without effect, and one more that matters and
    needs the first of them.
    """
    queue.after("old: dead", "drivers/old.c", first_line(queue, "drivers/old.c"), "/* dead */")
    queue.after("lock: one", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault -20 */",
    )
    line = "\t*it += 2; /* cost open 30 */"
    queue.add("lock: three", "kernel/lock.c", line, "\t*it += 3; /* cost open 37 */")
    return SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))


def first_line(queue: Queue, file: str) -> str:
    return (queue.tree / file).read_text().splitlines()[0]


def run(request: SeriesRequest, lab: Lab) -> SeriesReport:
    return asyncio.run(run_series(request, lab))


def found(report: SeriesReport) -> dict[str, dict[str, int]]:
    """Return by patch and region what is not zero."""
    return {row.name: effects for row in report.rows if (effects := in_regions(row.answer.effects))}


def in_regions(effects: Mapping[str, Estimate]) -> dict[str, int]:
    """Return by region what is not zero, without the mean over all of them."""
    return {name: int(e.value) for name, e in effects.items() if e.value and name != MEAN}


def fates(report: SeriesReport) -> dict[str, PatchOutcome]:
    return {row.name: row.answer.outcome for row in report.rows}


def checked(report: SeriesReport) -> str:
    """The text, which fits into 80 columns but for names; and the JSON says the same patches."""
    text = shown("series", report)
    long = [line for line in text.splitlines() if len(line) > 80 and "/" not in line]
    assert not long
    document = msgspec.json.decode(document_text(report, "0"))
    assert [one["answer"]["name"] for one in document["rows"]] == [row.name for row in report.rows]
    return text


def one_that_fails(queue: Queue) -> SeriesRequest:
    """A patch that does not build without the next one, and one that does something alone."""
    queue.after("lock: bad", "kernel/lock.c", LOCK, "#error bad")
    queue.add("lock: good", "kernel/lock.c", "#error bad", "\t*it += 2; /* cost open 5 */")
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault 9 */",
    )
    return SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches of 1 to 30 instructions in ten places of a real kernel: each is told to the instruction.

    scripts/proofs/small_patches.py [PATCH]... [bisect] [series]

There is a patch for each plant on the distribution's 6.12, and a git repository with a branch `all`
of one after the other, and one without effect before each, also as patches. A trial is a patch
against the source by compare, all operations; bisect and series go from the source to `all`: all
plants are found, and nothing else.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
from campaign import BUILD, Aloud, Proof, printed
from compared import FIRM_WORDS, Row, compared, effects_of, row_of
from repository import Edit, Repository, comment, unused

from kdelta.host.command import log_to_stderr
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import source_of
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import DebSrcSpec
from kdelta.store.store import Store
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.study import run_series

PACKAGE = "linux-source-6.12"
BASE, ALL = "base", "all"
TWO = LabRequest(jobs=2)
Reach = tuple[float, float]
"""Between which figures an effect is."""


class Plant(msgspec.Struct, frozen=True):
    """A patch: so many instructions each time that its place is executed, and what operations
    execute more in an iteration. None is planted where only addresses change.
    """

    name: str
    insns: int
    edits: tuple[Edit, ...]
    more: dict[str, int]


def before(file: str, place: str, insns: int) -> tuple[Edit, ...]:
    """Return an edit: so many instructions before a text of a file."""
    return ((file, place, f'\tasm volatile(".rept {insns}; nop; .endr");\n{place}'),)


_GETPPID = """SYSCALL_DEFINE0(getppid)
{
	int pid;

	rcu_read_lock();
	pid = task_tgid_vnr(rcu_dereference(current->real_parent));
	rcu_read_unlock();

	return pid;
}
"""
_PID = "\tpid = task_tgid_vnr(rcu_dereference(current->real_parent));\n"
_NAMES = "\tdown_read(&uts_sem);\n\tmemcpy(&tmp, utsname(), sizeof(tmp));\n"
_CHDIR = "\tunsigned int lookup_flags = LOOKUP_FOLLOW | LOOKUP_DIRECTORY;\nretry:\n"
_FLAGS = "\tfd = get_unused_fd_flags(how->flags);\n"
_STAT = "\tname = getname_flags(filename, getname_statx_lookup_flags(statx_flags));\n"
_PIPE = "\t/* Null write succeeds. */\n"
_COPY = "\t/*\n\t * Don't allow sharing the root directory with processes in a different\n"
_FUTEX = "\thb = futex_hash(&key);\n\n\t/* Make sure we really have tasks to wakeup */\n"
_UNIX = (
    "\terr = -EOPNOTSUPP;\n\tif (msg->msg_flags & MSG_OOB) {\n#if IS_ENABLED(CONFIG_AF_UNIX_OOB)\n"
)
_UNMAP = "\t/* Find the first overlapping VMA */\n\tvma = vma_find(vmi, end);\n\tif (!vma) {\n"
_TGID = "\tpid_t\t\t\t\ttgid;\n"

PLANTS = (
    Plant("getppid", 1, before("kernel/sys.c", _PID, 1), {"getppid": 1}),
    Plant("uname", 2, before("kernel/sys.c", _NAMES, 2), {"uname": 2}),
    Plant("chdir", 3, before("fs/open.c", _CHDIR, 3), {"chdir": 3}),
    Plant("openat", 5, before("fs/open.c", _FLAGS, 5), {"open-close": 5}),
    Plant("stat", 30, before("fs/stat.c", _STAT, 30), {"stat": 30}),
    Plant("pipe", 4, before("fs/pipe.c", _PIPE, 4), {"pipe-round-trip": 8}),
    Plant("fork", 10, before("kernel/fork.c", _COPY, 10), {"fork-exit-wait": 10, "vfork-exec": 10}),
    Plant("futex", 7, before("kernel/futex/waitwake.c", _FUTEX, 7), {"futex-ping-pong": 14}),
    Plant("unix", 20, before("net/unix/af_unix.c", _UNIX, 20), {"unix-round-trip": 40}),
    Plant("munmap", 12, before("mm/vma.c", _UNMAP, 12), {"mmap-munmap": 12}),
    Plant("move", 0, (("kernel/sys.c", _GETPPID, ""), ("kernel/sys.c", "", "\n" + _GETPPID)), {}),
    Plant("field", 0, (("include/linux/sched.h", _TGID, f"{_TGID}\tlong\t\t\t\tplanted;\n"),), {}),
)

WITHOUT = (
    comment("kernel/sys.c", "#include <linux/mm.h>\n"),
    unused("kernel/sys.c", "sys"),
    unused("fs/open.c", "open"),
    comment("fs/pipe.c", "#include <linux/mm.h>\n"),
    unused("fs/stat.c", "stat"),
    unused("fs/pipe.c", "pipe"),
    unused("kernel/fork.c", "fork"),
    unused("net/unix/af_unix.c", "unix"),
    unused("mm/vma.c", "vma"),
    unused("kernel/futex/waitwake.c", "futex"),
)
"""Edits without effect, one before each plant that has one in `all`."""


class Told(msgspec.Struct, frozen=True):
    """A trial. rows: as compare reported a patch; found: as a search did, by commit or patch and
    region; kernels: how many it built.
    """

    name: str
    rows: tuple[Row, ...] = ()
    found: dict[str, dict[str, Reach]] = {}
    kernels: int = 0


def make(folder: Path) -> None:
    """Make the repository and the patches."""
    source = source_of(DebSrcSpec(PACKAGE), log_to_stderr)
    if isinstance(source, PatchFailure):
        raise LabError(source.detail)
    repository = Repository(folder / "git")
    first = repository.create(source.folder / "git", source.tree)
    repository.git("update-ref", f"refs/heads/{BASE}", first)
    tree, last = source.tree, first
    for plant in PLANTS:
        own = repository.commit(repository.edited(source.tree, plant.edits), plant.name, [first])
        patch = repository.git("format-patch", "-1", "--stdout", own)
        (folder / f"{plant.name}.patch").write_text(patch)
    for plant, edit in zip(PLANTS, WITHOUT, strict=False):
        tree = repository.edited(tree, (edit,))
        last = repository.commit(tree, f"before {plant.name}: no effect", [last])
        tree = repository.edited(tree, plant.edits)
        last = repository.commit(tree, plant.name, [last])
    repository.git("update-ref", f"refs/heads/{ALL}", last)
    repository.git("format-patch", "-q", "-o", str(folder / "patches"), f"{BASE}..{ALL}")


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Told]:
    """Compare with patches, and search them."""
    folder = options.out.absolute()
    if not (folder / "git").exists():
        make(folder)
    with open_store() as store:
        for name in names:
            if search := {"bisect": bisect, "series": series}.get(name):
                yield search(folder, store)
                continue
            base = f"deb-src:{PACKAGE}"
            found = compared(store, base, f"{base} +{folder / name}.patch", lab=TWO)
            yield Told(name, tuple(map(row_of, effects_of(found))))


def bisect(folder: Path, store: Store) -> Told:
    """Search the plants among the commits."""
    request = BisectRequest(repository=str(folder / "git"), range=f"{BASE}..{ALL}", lab=TWO)
    report = asyncio.run(run_bisect(request, Lab(store, Aloud())))
    print(printed("bisect", report))
    found = {one.commit.subject: _reaches(one.effects) for one in report.found}
    return Told("bisect", found=found, kernels=len(report.builds))


def series(folder: Path, store: Store) -> Told:
    """Search the plants among the patches."""
    request = SeriesRequest(tree=f"deb-src:{PACKAGE}", patches=(str(folder / "patches"),), lab=TWO)
    report = asyncio.run(run_series(request, Lab(store, Aloud())))
    print(printed("series", report))
    found = {
        one.answer.name.split("-", 1)[-1]: _reaches(one.answer.effects) | _exact(one.answer.code)
        for one in report.rows
    }
    return Told("series", found=found, kernels=len(report.builds))


def _reaches(effects: Mapping[str, Estimate]) -> dict[str, Reach]:
    return {name: (float(one.low), float(one.high)) for name, one in effects.items()}


def _exact(code: Mapping[str, Mapping[str, Fraction]]) -> dict[str, Reach]:
    sums = {name: float(sum(functions.values())) for name, functions in code.items()}
    return {name: (by, by) for name, by in sums.items()}


def wrong(found: Sequence[Told]) -> Iterator[str]:
    """Yield what was not told as it was planted."""
    for one in found:
        yield from _wrong_rows(one) if one.rows else _wrong_search(one)


def _wrong_rows(one: Told) -> Iterator[str]:
    plant = next(plant for plant in PLANTS if plant.name == one.name)
    for row in one.rows:
        planted = plant.more.get(row.operation, 0)
        told = f"{one.name}: {row.operation} {row.word} by {row.diff:+.2f}, code {row.code:+}"
        is_firm = row.word in FIRM_WORDS
        if planted and not (row.low <= planted <= row.high if is_firm else row.code == planted):
            yield f"{told}, planted {planted:+}"
        elif not planted and (is_firm or row.code) and not _passes(row, plant.insns):
            yield f"{told}, none planted"
    undecided = [row.operation for row in one.rows if row.word == "unresolved"]
    if len(undecided) > 1:
        yield f"{one.name}: {', '.join(undecided)} unresolved"


def _passes(row: Row, insns: int) -> bool:
    """Whether an operation that none names passes the place a whole number of times."""
    times = round((row.code or row.diff) / insns) if insns else 0
    low, high = (row.code, row.code) if row.code else (row.low, row.high)
    return times > 0 and low <= times * insns <= high


def _wrong_search(one: Told) -> Iterator[str]:
    wanted = {plant.name: plant for plant in PLANTS if plant.more}
    if one.name == "bisect" and one.found.keys() != wanted.keys():
        yield f"bisect: found {sorted(one.found)}"
    for name in wanted.keys() & one.found.keys():
        for region, planted in wanted[name].more.items():
            low, high = one.found[name].get(region, (0.0, 0.0))
            if not low <= planted <= high or low <= 0 <= high:
                yield f"{one.name}: {name}: {region} {low:+} to {high:+}, planted {planted:+}"


PROOF = Proof(
    record=Told,
    file=BUILD / "small-patches/told.jsonl",
    trials=lambda _: [*(plant.name for plant in PLANTS), "bisect", "series"],
    make=made,
    wrong=wrong,
    summary=lambda one: f"{one.kernels} kernels" if one.found else f"{len(one.rows)} operations",
)


def check_what_is_not_told_as_it_was_planted_is_wrong() -> None:
    """Check trials that are made up."""

    def row(operation: str, word: str, diff: float, code: float = 0) -> Row:
        return Row(operation, word, "", 1000.0, diff, diff - 1, diff + 1, (3, 3), code)

    good = Told("pipe", (row("pipe-round-trip", "slower", 8), row("stat", "same", 0)))
    more = Told("pipe", (*good.rows, row("uname", "slower", 4), row("chdir", "unresolved", 0)))
    search = Told("bisect", found={p.name: _planted(p) for p in PLANTS if p.more})
    hidden = Told("pipe", (row("pipe-round-trip", "same", 3, code=8),))
    assert list(wrong([good, more, hidden, search])) == []
    for bad in (
        Told("pipe", (row("pipe-round-trip", "slower", 4),)),
        Told("pipe", (row("pipe-round-trip", "same", 8),)),
        Told("pipe", (row("pipe-round-trip", "same", 0, code=4),)),
        Told("pipe", (*good.rows, row("uname", "same", 0, code=2))),
        Told("pipe", (*good.rows, row("uname", "slower", 2))),
        Told("pipe", (*good.rows, row("uname", "unresolved", 2), row("chdir", "unresolved", 0))),
        msgspec.structs.replace(search, found={**search.found, "before pipe": {}}),
        msgspec.structs.replace(search, found={**search.found, "pipe": {"stat": (1.0, 2.0)}}),
    ):
        assert len(list(wrong([bad]))) == 1, bad


def _planted(plant: Plant) -> dict[str, Reach]:
    return {region: (more - 0.5, more + 0.5) for region, more in plant.more.items()}


if __name__ == "__main__":
    sys.exit(PROOF.main())

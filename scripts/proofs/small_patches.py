#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches of 1 to 30 instructions in ten places of a real kernel: each is told to the instruction.

    scripts/proofs/small_patches.py make FOLDER
    scripts/proofs/small_patches.py compare FOLDER
    scripts/proofs/small_patches.py bisect FOLDER
    scripts/proofs/small_patches.py series FOLDER

make: a patch for each plant on the distribution's 6.12, and a git repository with a branch `all` of
one after the other, and one without effect before each, also as patches. compare: each patch
against the source, all operations. bisect, series: from the source to `all`; all plants are found,
and nothing else. The exit code is 1 if one is not told as it was planted.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from campaign import Aloud, printed
from compared import FIRM_WORDS, Row, row_of
from repository import Edit, Repository, comment, unused
from trials import record, recorded

from kdelta.host.command import log_to_stderr
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import source_of
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import DebSrcSpec
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.study import run_series

PACKAGE = "linux-source-6.12"
BASE, ALL = "base", "all"


class Plant(msgspec.Struct, frozen=True):
    """A patch: so many instructions each time that its place is executed, and what operations
    execute more in an iteration. None is planted where only addresses change.
    """

    name: str
    insns: int
    edits: tuple[Edit, ...]
    more: dict[str, int]


def before(file: str, place: str, insns: int) -> tuple[Edit, ...]:
    """So many instructions before a text of a file."""
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
    """A patch, as compare told it."""

    name: str
    rows: tuple[Row, ...]

    def faults(self) -> Iterator[str]:
        """What was not told as it was planted."""
        plant = next(one for one in PLANTS if one.name == self.name)
        for row in self.rows:
            planted = plant.more.get(row.operation, 0)
            told = f"{self.name}: {row.operation} {row.word} by {row.diff:+.2f}"
            if planted and not (row.word in FIRM_WORDS and row.low <= planted <= row.high):
                yield f"{told}, planted {planted:+}"
            elif not planted and row.word in FIRM_WORDS and not _passes(row, plant.insns):
                yield f"{told}, none planted"
        undecided = [row.operation for row in self.rows if row.word == "unresolved"]
        if len(undecided) > 1:
            yield f"{self.name}: {', '.join(undecided)} unresolved"


def _passes(row: Row, insns: int) -> bool:
    """Whether an operation that none names passes the place a whole number of times."""
    times = round(row.diff / insns) if insns else 0
    return times > 0 and row.low <= times * insns <= row.high


def make(folder: Path) -> None:
    """Make the repository and the patches."""
    source = source_of(DebSrcSpec(PACKAGE), log_to_stderr)
    if isinstance(source, PatchFailure):
        sys.exit(source.detail)
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


def compare(folder: Path) -> list[str]:
    """Compare with the patches that have no record; return what was told wrong."""
    file = folder / "told.jsonl"
    known = {one.name for one in recorded(file, Told)}
    for plant in PLANTS:
        if plant.name not in known:
            base = f"deb-src:{PACKAGE}"
            other = f"{base} +{folder / plant.name}.patch"
            request = CompareRequest(base=base, others=(other,), lab=LabRequest(jobs=2))
            with open_store() as store:
                (found,) = asyncio.run(run_compare(request, Lab(store, Aloud())))
            if found.effects is None:
                raise LabError(f"{plant.name}: one side did not run; kdelta runs lists its runs")
            record(file, Told(plant.name, tuple(map(row_of, found.effects.operations))))
    return [fault for one in recorded(file, Told) for fault in one.faults()]


def _wrong(name: str, effects: dict[str, Estimate]) -> Iterator[str]:
    """What a search told wrong of a plant."""
    plant = next(one for one in PLANTS if one.name == name)
    for region, planted in plant.more.items():
        told = effects.get(region)
        if told is None or not (told.low <= planted <= told.high) or told.low <= 0 <= told.high:
            yield f"{name}: {region} {told}, planted {planted:+}"


def bisect(folder: Path) -> list[str]:
    """Search the plants among the commits; return what was found wrong."""
    request = BisectRequest(
        repository=str(folder / "git"), range=f"{BASE}..{ALL}", lab=LabRequest(jobs=2)
    )
    with open_store() as store:
        report = asyncio.run(run_bisect(request, Lab(store, Aloud())))
    print(printed("bisect", report), f"{len(report.builds)} kernels", flush=True)
    found = {one.commit.subject: dict(one.effects) for one in report.found}
    wanted = {plant.name for plant in PLANTS if plant.more}
    wrong = [f"found: {sorted(found)}"] if found.keys() != wanted else []
    return wrong + [fault for name in wanted & found.keys() for fault in _wrong(name, found[name])]


def series(folder: Path) -> list[str]:
    """Search the plants among the patches; return what was found wrong."""
    request = SeriesRequest(
        tree=f"deb-src:{PACKAGE}", patches=(str(folder / "patches"),), lab=LabRequest(jobs=2)
    )
    with open_store() as store:
        report = asyncio.run(run_series(request, Lab(store, Aloud())))
    print(printed("series", report), f"{len(report.builds)} kernels", flush=True)
    rows = {row.answer.name: row.answer for row in report.rows}
    wrong = []
    for plant in PLANTS:
        for name in (one for one in rows if one.split("-", 1)[-1] == plant.name):
            wrong += _wrong(plant.name, dict(rows[name].effects))
    return wrong


def main() -> int:
    """Do what was asked; 1 if something was not told as it was planted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("make", "compare", "bisect", "series"))
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    folder = asked.folder.absolute()
    if asked.what == "make":
        make(folder)
        return 0
    faults = {"compare": compare, "bisect": bisect, "series": series}[asked.what](folder)
    print("\n".join(faults) or "all was told as it was planted")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

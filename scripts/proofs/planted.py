#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves on a real kernel that a bisection finds all planted commits, and no others.

    scripts/proofs/planted.py make FOLDER
    scripts/proofs/planted.py search FOLDER --json docs/cases/planted/planted.json

makes a git repository of the distribution's 6.12 source with 40 commits and after them the reverts
of all, the last one first, and searches from either end of the 40 and over the reverts: for all
culprits, and for each alone. Kernels and runs are kept: what was interrupted goes on where it
was. docs/bisect.md tells what is looked at.
"""

import argparse
import asyncio
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from recorded_machine import RECORDED_LAB
from repository import Edit, Repository
from telling import Aloud, printed

from kdelta.host.command import log_to_stderr
from kdelta.host.files import write_atomic
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import source_of
from kdelta.lab.lab import Lab, open_store
from kdelta.spec.kernel import DebSrcSpec
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect

PACKAGE = "linux-source-6.12"
ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "docs/cases/options/speed.config"
OPERATIONS = ("getppid", "uname", "chdir", "open-close", "stat", "pipe-round-trip")
GOOD, BAD, BACK = "planted-0", "planted-40", "planted-back"
MORE_BUILDS = 3

SLOWER = "open: look at the flags once more"
FASTER = "sys: read the names without a lock"
PAIR = ("stat: count what is looked up", "file: what counts it")
CULPRITS = {"open-close": ((SLOWER,), 1), "uname": ((FASTER,), -1), "stat": (PAIR, 1)}
"""A region -> the commits that change it, and the sign of what they do."""

RANGES = ((GOOD, BAD), (BAD, GOOD), (BAD, BACK))
INSNS = 30


class Plant(msgspec.Struct, frozen=True):
    """A commit. `side`: on the branch that begins at its first one, and ends at `merge`."""

    subject: str
    edits: tuple[Edit, ...] = ()
    side: bool = False
    merge: bool = False


def unused(file: str, name: str) -> Edit:
    """A function that nothing calls."""
    text = f"\nint planted_{name}(int value);\nint planted_{name}(int value)\n"
    return file, "", text + "{\n\treturn value / 3 + 1;\n}\n"


def comment(file: str, line: str) -> Edit:
    """A comment before a line."""
    return file, line, f"/* As it was when this was planted. */\n{line}"


def macro(file: str, line: str, name: str) -> Edit:
    """A macro that nothing uses, before a line."""
    return file, line, f"#define PLANTED_{name} 1\n{line}"


_WORK = f'\tasm volatile(".rept {INSNS}; nop; .endr");\n'
_FLAGS = "\tfd = get_unused_fd_flags(how->flags);\n"
_LOOKUP = "\tname = getname_flags(filename, getname_statx_lookup_flags(statx_flags));\n"
_FSTATAT = "int vfs_fstatat(int dfd, const char __user *filename,\n"
_PATH_INIT = "static const char *path_init(struct nameidata *nd, unsigned flags)\n"
_ALIVE = "\t/* Do the rest non-__init'ed, we're now alive */\n"
_LOCKED = "\tdown_read(&uts_sem);\n\tmemcpy(&tmp, utsname(), sizeof(tmp));\n\tup_read(&uts_sem);\n"
_COUNTER = "\nvoid planted_count(void);\nvoid planted_count(void)\n{\n" + _WORK + "}\n"

PLANTS = (
    Plant("MAINTAINERS: no effect", (("MAINTAINERS", "", "\n"),)),
    Plant("namei.h: a comment", (comment("include/linux/namei.h", "#include <linux/fs.h>\n"),)),
    Plant("drm: unused", (unused("drivers/gpu/drm/drm_drv.c", "drm"),)),
    Plant(
        "utsname.h: a macro",
        (macro("include/linux/utsname.h", "struct user_namespace;\n", "NAME"),),
    ),
    Plant("xfs: unused", (unused("fs/xfs/xfs_super.c", "xfs"),)),
    Plant("slub: a comment", (comment("mm/slub.c", "#include <linux/mm.h>\n"),)),
    Plant("file: a comment", (comment("fs/file.c", "#include <linux/syscalls.h>\n"),)),
    Plant("bust_spinlocks: unused", (unused("lib/bust_spinlocks.c", "spinlocks"),)),
    Plant("sys: unused", (unused("kernel/sys.c", "sys"),)),
    Plant(
        PAIR[0],
        (
            ("fs/stat.c", _FSTATAT, f"void planted_count(void);\n{_FSTATAT}"),
            ("fs/stat.c", _LOOKUP, f"\tplanted_count();\n{_LOOKUP}"),
        ),
    ),
    Plant(PAIR[1], (("fs/file.c", "", _COUNTER),)),
    Plant("arm: unused", (unused("arch/arm/kernel/setup.c", "arm"),)),
    Plant("open: unused", (unused("fs/open.c", "open"),)),
    Plant("tcp: unused", (unused("net/ipv4/tcp.c", "tcp"),)),
    Plant(SLOWER, (("fs/open.c", _FLAGS, f"{_WORK}{_FLAGS}"),)),
    Plant("pipe: a comment", (comment("fs/pipe.c", "#include <linux/mm.h>\n"),)),
    Plant("coredump: unused", (unused("fs/coredump.c", "coredump"),), side=True),
    Plant("readdir: unused", (unused("fs/readdir.c", "readdir"),), side=True),
    Plant(
        FASTER, (("kernel/sys.c", _LOCKED, "\tmemcpy(&tmp, utsname(), sizeof(tmp));\n"),), side=True
    ),
    Plant("fcntl: unused", (unused("fs/fcntl.c", "fcntl"),), side=True),
    Plant("select: unused", (unused("fs/select.c", "select"),), side=True),
    Plant("sound: unused", (unused("sound/core/pcm.c", "sound"),)),
    Plant(
        "namei: half a change", (("fs/namei.c", _PATH_INIT, f"static int half_a\n{_PATH_INIT}"),)
    ),
    Plant("namei: without it", (("fs/namei.c", f"static int half_a\n{_PATH_INIT}", _PATH_INIT),)),
    Plant(
        "pipe_fs_i.h: a macro",
        (macro("include/linux/pipe_fs_i.h", "#define PIPE_DEF_BUFFERS", "PIPE"),),
    ),
    Plant("Merge branch 'side'", merge=True),
    Plant("namei: unused", (unused("fs/namei.c", "namei"),)),
    Plant("Documentation: a line", (("Documentation/admin-guide/README.rst", "", "\n"),)),
    Plant("main: too strict", (("init/main.c", _ALIVE, f'\tpanic("planted");\n{_ALIVE}'),)),
    Plant("main: less strict", (("init/main.c", f'\tpanic("planted");\n{_ALIVE}', _ALIVE),)),
    Plant("pipe: unused", (unused("fs/pipe.c", "pipe"),)),
    Plant("kexec: unused", (unused("kernel/kexec.c", "kexec"),)),
    Plant("loopback: unused", (unused("drivers/net/loopback.c", "loopback"),)),
    Plant(
        "eventpoll.h: a comment",
        (comment("include/linux/eventpoll.h", "#include <uapi/linux/eventpoll.h>\n"),),
    ),
    Plant("open: a comment", (comment("fs/open.c", "#include <linux/string.h>\n"),)),
    Plant("sys: a comment", (comment("kernel/sys.c", "#include <linux/mm.h>\n"),)),
    Plant("slub: unused", (unused("mm/slub.c", "slub"),)),
    Plant("drm: unused too", (unused("drivers/gpu/drm/drm_drv.c", "drm_too"),)),
    Plant("array: unused", (unused("fs/proc/array.c", "array"),)),
    Plant("MAINTAINERS: no effect still", (("MAINTAINERS", "", "\n"),)),
)


def make(folder: Path) -> None:
    """The planted repository."""
    source = source_of(DebSrcSpec(PACKAGE), log_to_stderr)
    if isinstance(source, PatchFailure):
        sys.exit(source.detail)
    repository = Repository(folder)
    first = repository.create(source.folder / "git", source.tree)
    repository.git("tag", GOOD, first)
    tree, last = _planted(repository, source.tree, first)
    repository.git("tag", BAD, last)
    for plant in reversed(PLANTS):
        if not plant.merge:
            tree = repository.edited(tree, reversed(plant.edits), revert=True)
            last = repository.commit(tree, reverted(plant.subject), [last])
    if tree != source.tree:
        sys.exit("the reverts do not come to what was there before")
    repository.git("tag", BACK, last)
    repository.git("update-ref", "refs/heads/main", last)
    print(repository.git("log", "--oneline", "--graph", f"{GOOD}..{BACK}"))


def _planted(repository: Repository, tree: str, first: str) -> tuple[str, str]:
    """The tree and the commit after all plants."""
    trees, commits = {"main": tree, "side": ""}, {"main": first, "side": ""}
    aside: list[Edit] = []
    for plant in PLANTS:
        on = "side" if plant.side else "main"
        if plant.side and not commits["side"]:
            trees["side"], commits["side"] = trees["main"], commits["main"]
        edits = tuple(aside) if plant.merge else plant.edits
        aside += plant.edits if plant.side else ()
        parents = [commits["main"], commits["side"]] if plant.merge else [commits[on]]
        trees[on] = repository.edited(trees[on], edits)
        commits[on] = repository.commit(trees[on], plant.subject, parents)
    return trees["main"], commits["main"]


def reverted(subject: str) -> str:
    """What the revert of a commit is called."""
    return f'Revert "{subject}"'


class Change(msgspec.Struct, frozen=True, array_like=True):
    """Instructions an iteration, and between what they are for certain."""

    value: float
    low: float
    high: float


class Found(msgspec.Struct, frozen=True):
    """Commits that change something; several that were not distinguished. functions: by region,
    what they execute more, instructions an iteration. how: it was told.
    """

    commits: tuple[str, ...]
    effects: dict[str, Change]
    functions: dict[str, dict[str, float]]
    confirmed: bool
    how: str


class Built(msgspec.Struct, frozen=True):
    """A kernel, and how long its build took, whenever that was; None if there is no kernel."""

    commit: str
    why: str
    status: str
    identity: str
    seconds: float | None


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A bisection, commits by subject. region: the only one whose largest effect was asked for; ""
    for all effects on all. candidates: how many commits reach executed code. kernels: the two ends
    first. whole, left: what is between the ends, and what of it is not explained.
    """

    good: str
    bad: str
    region: str
    commits: int
    candidates: int
    ruled_out: tuple[str, ...]
    kernels: tuple[Built, ...]
    found: tuple[Found, ...]
    whole: dict[str, Change]
    left: dict[str, Change]
    notes: tuple[str, ...]

    @property
    def builds(self) -> int:
        """Of kernels besides the ends, of such that failed as well."""
        return len(self.kernels) - 2

    @property
    def most_builds(self) -> float:
        """How many are allowed: log2 of the candidates for each that was to be found, and 3."""
        wanted = 1 if self.region else len(CULPRITS)
        return wanted * math.log2(self.candidates) + MORE_BUILDS

    def faults(self) -> Iterator[str]:
        """What was not found as it was planted."""
        back = self.bad == BACK
        wanted = {}
        for region, (subjects, sign) in CULPRITS.items():
            if self.region in ("", region):
                names = tuple(map(reverted, reversed(subjects))) if back else subjects
                wanted[names] = (region, -sign if back else sign)
        found = {one.commits: one.effects for one in self.found}
        if found.keys() != wanted.keys():
            yield f"found: {sorted(found)}"
        for names, (region, sign) in wanted.items():
            change = found.get(names, {}).get(region)
            if change and not min(sign * change.low, sign * change.high) > 0:
                yield f"{names}: {change.value} in {region}"
        if self.builds > self.most_builds:
            yield f"{self.builds} builds besides the ends, and {self.most_builds:.1f} are allowed"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of the proof."""

    package: str
    config: str
    workload: str
    operations: tuple[str, ...]
    release: str
    machine: dict[str, str]
    searches: tuple[Search, ...]


async def search(folder: Path, good: str, bad: str, region: str) -> BisectReport:
    """The bisection from one end to the other, of one region or all."""
    request = BisectRequest(
        repository=str(folder),
        range=f"{good}..{bad}",
        changes=(f"+base:{CONFIG}",),
        operations=OPERATIONS,
        first=bool(region),
        regions=(region,) if region else (),
        lab=msgspec.structs.replace(RECORDED_LAB, jobs=2),
    )
    with open_store() as store:
        return await run_bisect(request, Lab(store, Aloud()))


def kept(report: BisectReport, region: str, subjects: Mapping[str, str]) -> Search:
    """What is kept of a report. subjects: of all commits, by hash."""
    rates = {one.name for one in report.regions if one.rate}
    asked = [one for one in report.regions if region in ("", one.name)]

    def changes(effects: Mapping[str, Estimate]) -> dict[str, Change]:
        return {
            name: Change(float(one.value), float(one.low), float(one.high))
            for name, one in effects.items()
            if name not in rates and not one.low <= 0 <= one.high
        }

    found = [
        Found(
            commits=(one.commit.subject,),
            effects=changes(one.effects),
            functions={
                name: {function: float(its.value) for function, its in functions.items()}
                for name, functions in one.functions.items()
                if name not in rates
            },
            confirmed=one.confirmed,
            how=_named(one.how, subjects),
        )
        for one in report.found
    ]
    found += [
        Found(
            tuple(commit.subject for commit in one.commits),
            changes(one.effects),
            {},
            confirmed=False,
            how=one.why,
        )
        for one in report.groups
    ]
    return Search(
        good=report.names[0],
        bad=report.names[1],
        region=region,
        commits=report.commits,
        candidates=report.candidates,
        ruled_out=tuple(one.commit.subject for one in report.ruled_out),
        kernels=tuple(
            Built(subjects[one.commit], one.label, one.status, one.identity, one.seconds)
            for one in report.builds
        ),
        found=tuple(found),
        whole=changes({one.name: one.whole for one in asked}),
        left=changes({one.name: one.remainder for one in asked}),
        notes=tuple(report.notes),
    )


def _named(text: str, subjects: Mapping[str, str]) -> str:
    for name, subject in subjects.items():
        text = text.replace(name, f"({subject})")
    return text


def main() -> int:
    """The program; 1 if something was not found as it was planted."""
    parser = argparse.ArgumentParser(description="Planted commits, found by kdelta bisect.")
    parser.add_argument("what", choices=("make", "search"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    if arguments.what == "make":
        make(folder)
        return 0
    listed = Repository(folder).git("log", "--format=%H %s", BACK)
    subjects = dict(line.split(" ", 1) for line in listed.splitlines())
    searches: list[Search] = []
    for good, bad in RANGES:
        for region in ("", *CULPRITS):
            report = asyncio.run(search(folder, good, bad, region))
            print(printed("bisect", report), flush=True)
            searches.append(kept(report, region, subjects))
            if arguments.json:
                _write(arguments.json, report, searches)
    faults = [f"{one.good}..{one.bad} {one.region}: {f}" for one in searches for f in one.faults()]
    print("\n".join(faults) or "everything was found as it was planted")
    return 1 if faults else 0


def _write(file: Path, report: BisectReport, searches: Sequence[Search]) -> None:
    record = Record(
        package=PACKAGE,
        config=str(CONFIG.relative_to(ROOT)),
        workload=report.workloads[0],
        operations=OPERATIONS,
        release=report.ends[0].release,
        machine={name: str(value) for name, value in report.machine.items()},
        searches=tuple(searches),
    )
    write_atomic(file, msgspec.json.format(msgspec.json.encode(record)))


if __name__ == "__main__":
    sys.exit(main())

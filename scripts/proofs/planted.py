#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves on a real kernel that a bisection finds all planted commits, and no others.

    scripts/proofs/planted.py make FOLDER
    scripts/proofs/planted.py search FOLDER --json docs/cases/planted/planted.json

makes a git repository of the distribution's 6.12 source with 40 commits, and searches them from
both ends. Kernels and runs are kept: what was interrupted goes on where it was. docs/bisect.md
tells what is looked at.
"""

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta import __version__
from kdelta.host.command import talk_to_stderr
from kdelta.host.files import make_folder, write_atomic
from kdelta.kernels.git import run_git
from kdelta.kernels.source import PatchFailure, source_of
from kdelta.report.bisect import bisect_text
from kdelta.report.bisect_json import bisect_json
from kdelta.report.bisect_model import BisectReport
from kdelta.spec.kernel import DebSrcSpec
from kdelta.studies.bisect import BisectRequest, run_bisect
from kdelta.studies.lab import open_store
from kdelta.studies.requests import LabRequest, Progress

PACKAGE = "linux-source-6.12"
CONFIG = Path(__file__).parents[2] / "docs/cases/options/speed.config"
OPERATIONS = ("getppid", "uname", "chdir", "open-close", "stat", "pipe-round-trip")
GOOD, BAD = "planted-0", "planted-40"
WHO = "A Planter <planter@example.org>"
MORE_BUILDS = 3

SLOWER = "open: look at the flags once more"
FASTER = "sys: read the names without a lock"
PAIR = ("stat: count what is looked up", "file: what counts it")

Edit = tuple[str, str, str]
"""A file, a text in it, and what stands in its place; no text: at its end."""


class Plant(msgspec.Struct, frozen=True):
    """A commit. `side`: on the branch that begins at its first one, and ends at `merge`."""

    subject: str
    edits: tuple[Edit, ...] = ()
    side: bool = False
    merge: bool = False


def unused(file: str, name: str) -> Edit:
    """A function that nobody calls."""
    text = f"\nint planted_{name}(int value);\nint planted_{name}(int value)\n"
    return file, "", text + "{\n\treturn value / 3 + 1;\n}\n"


def comment(file: str, line: str) -> Edit:
    """A comment before a line."""
    return file, line, f"/* As it was when this was planted. */\n{line}"


def macro(file: str, line: str, name: str) -> Edit:
    """A macro that nobody uses, before a line."""
    return file, line, f"#define PLANTED_{name} 1\n{line}"


_WORK = "\tfor (volatile int planted = 0; planted < 5; planted++)\n\t\t;\n"
_FLAGS = "\tfd = get_unused_fd_flags(how->flags);\n"
_LOOKUP = "\tname = getname_flags(filename, getname_statx_lookup_flags(statx_flags));\n"
_FSTATAT = "int vfs_fstatat(int dfd, const char __user *filename,\n"
_PATH_INIT = "static const char *path_init(struct nameidata *nd, unsigned flags)\n"
_ALIVE = "\t/* Do the rest non-__init'ed, we're now alive */\n"
_LOCKED = "\tdown_read(&uts_sem);\n\tmemcpy(&tmp, utsname(), sizeof(tmp));\n\tup_read(&uts_sem);\n"
_COUNTER = "\nvoid planted_count(void);\nvoid planted_count(void)\n{\n" + _WORK + "}\n"

PLANTS = (
    Plant("MAINTAINERS: nobody", (("MAINTAINERS", "", "\n"),)),
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
    Plant("MAINTAINERS: nobody still", (("MAINTAINERS", "", "\n"),)),
)


class Repository:
    """A git repository that is written without a work tree: a kernel has 90,000 files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._when = 1_700_000_000

    def git(self, *words: str, stdin: bytes = b"") -> str:
        """Runs git there; what it printed."""
        name, mail = WHO.removesuffix(">").split(" <")
        people = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (
                ("NAME", name),
                ("EMAIL", mail),
                ("DATE", f"{self._when} +0000"),
            )
        }
        env = {**os.environ, **people, "GIT_DIR": str(self.folder / ".git")}
        result = run_git(words, env=env, stdin=stdin)
        if not result.ok:
            sys.exit(f"git {' '.join(words)}: {result.complaint()}")
        return result.stdout.decode("utf-8", "surrogateescape")

    def create(self, store: Path, tree: str) -> str:
        """The repository with one commit of a tree that another one has."""
        make_folder(self.folder)
        run_git(["init", "-q", "-b", "main", str(self.folder)])
        alternates = self.folder / ".git/objects/info/alternates"
        alternates.write_text(f"{store / 'objects'}\n")
        return self.commit(tree, "Linux 6.12, as the distribution has it", [])

    def commit(self, tree: str, subject: str, parents: Sequence[str]) -> str:
        """A commit of a tree."""
        self._when += 60
        words = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", tree, "-m", subject, *words).strip()

    def edited(self, tree: str, edits: Sequence[Edit]) -> str:
        """The tree with these edits."""
        self.git("read-tree", tree)
        for file, old, new in edits:
            entry = self.git("ls-files", "-s", "--", file).split()
            text = self.git("cat-file", "blob", entry[1])
            if old not in text:
                sys.exit(f"{file} has no {old!r}")
            text = text.replace(old, new, 1) if old else text + new
            content = text.encode("utf-8", "surrogateescape")
            made = self.git("hash-object", "-w", "--stdin", stdin=content).strip()
            self.git("update-index", "--cacheinfo", f"{entry[0]},{made},{file}")
        return self.git("write-tree").strip()


def make(folder: Path) -> None:
    """The planted repository."""
    source = source_of(DebSrcSpec(PACKAGE), talk_to_stderr)
    if isinstance(source, PatchFailure):
        sys.exit(source.detail)
    repository = Repository(folder)
    trees = {"main": source.tree, "side": ""}
    commits = {"main": repository.create(source.folder / "git", source.tree), "side": ""}
    repository.git("tag", GOOD, commits["main"])
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
    repository.git("tag", BAD, commits["main"])
    repository.git("update-ref", "refs/heads/main", commits["main"])
    print(repository.git("log", "--oneline", "--graph", f"{GOOD}..{BAD}"))


async def search(folder: Path, good: str, bad: str) -> BisectReport:
    """The bisection from one end to the other."""
    request = BisectRequest(
        repository=str(folder),
        range=f"{good}..{bad}",
        changes=(f"+{CONFIG}",),
        operations=OPERATIONS,
        lab=LabRequest(jobs=2),
    )
    with open_store() as store:
        return await run_bisect(request, store, _Said())


class _Said(Progress):
    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def begin(self, step: str, seconds: float | None = None) -> None:
        del seconds
        self.say(f"{step} ...")

    def doing(self, step: str, what: str) -> None:
        pass

    def end(self, step: str, result: str) -> None:
        self.say(f"{step}: {result}")


def wrong(report: BisectReport) -> list[str]:
    """What was not found as it was planted."""
    found = {one.commit.subject: one.effects for one in report.found if not one.moved}
    groups = [tuple(one.subject for one in group.commits) for group in report.groups]
    faults = []
    if found.keys() != {SLOWER, FASTER}:
        faults.append(f"found: {', '.join(found)}")
    if groups != [PAIR]:
        faults.append(f"groups: {groups}")
    signs: Mapping[str, tuple[str, int]] = {SLOWER: ("open-close", 1), FASTER: ("uname", -1)}
    for subject, (region, sign) in signs.items():
        if subject in found and sign * found[subject][region].value <= 0:
            faults.append(f"{subject}: {float(found[subject][region].value)} in {region}")
    culprits = len(found) + len(groups)
    most = culprits * (math.ceil(math.log2(max(2, report.candidates))) + MORE_BUILDS)
    if len(report.builds) - 2 > most:
        faults.append(f"{len(report.builds) - 2} builds beside the ends, and {most} are allowed")
    return faults


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
    faults: list[str] = []
    for good, bad in ((GOOD, BAD), (BAD, GOOD)):
        report = asyncio.run(search(folder, good, bad))
        print(bisect_text(report))
        faults += [f"{good}..{bad}: {fault}" for fault in wrong(report)]
        if arguments.json and good == GOOD:
            write_atomic(arguments.json, bisect_json(report, __version__).encode())
    print("\n".join(faults) or "everything was found as it was planted")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

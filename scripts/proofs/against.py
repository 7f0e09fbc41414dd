#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether `kdelta run --against` counts the system calls of real programs as strace does.

Each trial compares a program of one Debian release with that of another, each with the libraries of
its own release, or a loop with one `write` in it with the same with two. `strace -f -c` counts the
system calls of both in a guest of the same kernel, where they find the same files. Packages are
fetched by apt and unpacked, none is installed.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from campaign import BUILD, NEW, OLD, Proof
from compared import kernel_of
from recorded_machine import RECORDED_LAB

from kdelta.host.files import make_folder
from kdelta.infer.profiles.system_calls import PartKind
from kdelta.kernels.packages.apt import Apt
from kdelta.lab.found import with_found_files
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.reports import attachment
from kdelta.lab.request import Program
from kdelta.lab.work import Work
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.against.model import AgainstReport
from kdelta.studies.against.study import AgainstRequest, run_against
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command

KERNELS = (OLD, NEW)
READLINE = ("libreadline8", "libreadline8t64")
"""One package, which has another name since Debian 13."""
PACKAGES = {
    "ls": ("coreutils", "libselinux1", "libpcre2-8-0", "libcap2"),
    "sqlite3": ("sqlite3", "libsqlite3-0", *READLINE, "libtinfo6", "zlib1g"),
}
COMMON = ("libc6",)
PCRE = "libpcre3"
"""What libselinux of Debian 11 needs in place of libpcre2."""
PROGRAMS = {"ls": "bin/ls", "sqlite3": "usr/bin/sqlite3"}
LOOP = "writes"
ROUNDS = 1000
SOURCE = f"""\
#include <fcntl.h>
#include <unistd.h>
int main(void)
{{
    int fd = open("/dev/null", O_WRONLY);

    for (int i = 0; i < {ROUNDS}; i++)
        for (int j = 0; j < WRITES; j++)
            if (write(fd, "x", 1) != 1)
                return 1;
    return 0;
}}
"""
LOADER = "ld-linux-x86-64.so.2"
DATABASE = "/tmp/kdelta-against.db"
SQL = """\
PRAGMA journal_mode = DELETE;
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INT);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000)
INSERT INTO t SELECT i, 'row ' || i, i * 7919 % 5003 FROM c;
CREATE INDEX by_n ON t (n);
UPDATE t SET name = 'changed' WHERE n % 10 = 3;
SELECT count(*), sum(n), max(name) FROM t WHERE n BETWEEN 100 AND 2000;
DELETE FROM t WHERE id % 3 = 0;
VACUUM;
SELECT count(*) FROM t;
"""
TREE_FILES = 40
STRACE = ("strace", "-f", "-c", "-U", "calls,name")
Calls = Counter[str]


class Trial(msgspec.Struct, frozen=True):
    """A program of both releases on a kernel: how many calls and how many names of calls each has,
    calls by strace, and by name those in which the two counts differ: ours, strace's.
    """

    name: str
    releases: tuple[str, str]
    ended: tuple[int, ...]
    calls: tuple[int, ...]
    names: tuple[int, ...]
    straced: tuple[int, ...]
    differing: tuple[dict[str, tuple[int, int]], ...]


def unpacked(suite: str, out: Path) -> Path:
    """Return a folder with the programs of that release and what they need, flat."""
    folder = out / suite
    if (folder / "done").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    packages = dict.fromkeys((*COMMON, *(name for row in PACKAGES.values() for name in row), PCRE))
    apt = Apt.of(None, suite)
    if not apt.usable(COMMON[0]):
        apt = Apt.of(None, suite, own_lists=True)
        apt.update(print, COMMON[0])
    for package in packages:
        version = apt.candidate(package)
        if version is None:
            continue
        into = make_folder(folder / "debs" / package)
        deb = apt.download(package, version, into, print)
        subprocess.run(["dpkg-deb", "-x", deb, folder / "root"], check=True)
    flat = make_folder(folder / "flat")
    for path in sorted((folder / "root").rglob("*")):
        is_wanted = ".so" in path.name and "gconv" not in path.parts and "audit" not in path.parts
        if path.is_file() and (is_wanted or path.name in PROGRAMS):
            shutil.copy(path, flat / path.name)
    (folder / "done").touch()
    return folder


def command(program: str, folder: Path, tree: Path) -> tuple[str, ...]:
    """Return the program's command line, by its own release's loader."""
    flat = folder / "flat"
    start = (str(flat / LOADER), "--library-path", str(flat), str(flat / program))
    if program == "ls":
        return (*start, "-lnR", str(tree))
    return (*start, DATABASE, SQL)


def loop(out: Path, writes: int) -> tuple[str, ...]:
    """Return the command line of a loop with so many writes in it."""
    program = make_folder(out / LOOP) / f"{writes}-in-it"
    compiler = ("gcc", "-O2", "-static", f"-DWRITES={writes}", "-x", "c", "-", "-o", str(program))
    subprocess.run(compiler, input=SOURCE, text=True, check=True)
    return (str(program),)


async def found(spec: str, program: Program, store: Store) -> Program:
    """Return the program with the names of its files, found in a guest."""
    lab = Lab(store, Silent()).with_request(RECORDED_LAB)
    work = await with_found_files(Work(program=program), [kernel_of(lab, spec)], lab)
    assert work.program
    return work.program


async def straced(spec: str, program: Program, store: Store) -> Calls:
    """Return the system calls that strace counts in a guest, by name; calls that do not return are
    none of its. It cannot trace while files are looked for, so it gets those of the program.
    """
    lab = msgspec.structs.replace(RECORDED_LAB, perturbations=1)
    own = await found(spec, Program(("strace", "-V")), store)
    names = (*(own.names or ()), *(program.names or ()))
    tracer = msgspec.structs.replace(program, command=(*STRACE, *program.command), names=names)
    wanted = RunRequest(kernel=spec, program=tracer, lab=lab)
    (done,) = await run_command(wanted, Lab(store, Silent()))
    said = attachment(done.run, "stderr", store)
    rows = re.findall(r"^ *(\d+) +(\w+) *$", said, re.MULTILINE)
    calls = Counter({name: int(count) for count, name in rows if name != "total"})
    if not calls:
        raise LabError(
            f"run {done.run.id} has no counts of strace: {done.run.detail} {said[-500:]}"
        )
    return calls


def counted(report: AgainstReport) -> tuple[Counter[str], Counter[str]]:
    """Return the system calls of both programs as the report has them."""
    (region,) = report.regions
    calls = [one for one in region.parts if one.kind is PartKind.SYSTEM_CALL]
    old = Counter({one.name: one.old_count or 0 for one in calls})
    new = Counter({one.name: one.new_count or 0 for one in calls})
    return +old, +new


def made_tree(out: Path) -> Path:
    """Return a folder of files, links and folders, the same each time."""
    tree = out / "tree"
    for number in range(TREE_FILES):
        path = make_folder(tree / f"folder-{number % 5}") / f"file-{number:02}"
        path.write_text("x" * number)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return tree


async def trial(
    name: str, spec: str, argvs: Sequence[Sequence[str]], files: tuple[str, ...], store: Store
) -> Trial:
    """Compare both, and their calls with strace's."""
    programs = [await found(spec, Program(tuple(argv), files), store) for argv in argvs]
    traced = [await straced(spec, program, store) for program in programs]
    old, new = (RunRequest(kernel=spec, program=program, lab=RECORDED_LAB) for program in programs)
    report = await run_against(AgainstRequest(old=old, new=new), Lab(store, Silent()))
    if not report.regions:
        raise LabError(f"no counts: {'; '.join(report.decision.because)}")
    sides = counted(report)
    return Trial(
        name,
        releases=("", ""),
        ended=tuple(side.pop("exit_group") for side in sides),
        calls=tuple(side.total() for side in sides),
        names=tuple(len(side) for side in sides),
        straced=tuple(side.total() for side in traced),
        differing=tuple(
            {
                call: (side[call], theirs[call])
                for call in sorted(side | theirs)
                if side[call] != theirs[call]
            }
            for side, theirs in zip(sides, traced, strict=True)
        ),
    )


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Trial]:
    """Compare the programs of both releases."""
    out, releases = options.out.absolute(), (options.old, options.new)
    folders = [unpacked(suite, out) for suite in releases]
    tree = made_tree(out)
    files = (*(str(folder / "flat") for folder in folders), str(tree))
    with open_store() as store:
        for name in names:
            program, number = name.split()
            if program == LOOP:
                argvs = [loop(out, writes) for writes in (1, 2)]
            else:
                argvs = [command(program, folder, tree) for folder in folders]
            one = asyncio.run(trial(name, KERNELS[int(number)], argvs, files, store))
            yield msgspec.structs.replace(one, releases=releases)


def options(parser: argparse.ArgumentParser) -> None:
    """Add which releases are compared."""
    parser.add_argument("--old", default="bookworm")
    parser.add_argument("--new", default="trixie")


PROOF = Proof(
    record=Trial,
    file=BUILD / "against/trials.jsonl",
    trials=lambda _: [f"{program} {at}" for at in (0, 1) for program in (LOOP, *PROGRAMS)],
    make=made,
    wrong=lambda found: (f"{o.name}: {o.differing}" for o in found if any(o.differing)),
    summary=lambda one: f"{one.calls} calls",
    options=options,
)


if __name__ == "__main__":
    sys.exit(PROOF.main())

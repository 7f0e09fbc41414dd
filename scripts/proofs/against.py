# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether `kdelta run --against` counts the system calls of real programs as strace does.

Each trial compares a program of one Debian release with that of another, each with the libraries of
its own release, or a loop with one `write` in it with the same with two. `strace -f -c` counts the
system calls of both in a guest of the same kernel, where they find the same files. Packages are
fetched by apt and unpacked, none is installed. One JSON record a trial; trials that are there are
not made again.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from recorded_machine import RECORDED_LAB

from kdelta.host.files import make_folder
from kdelta.infer.profiles.system_calls import PartKind
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.apt import Apt
from kdelta.lab.found import with_files
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.reports import attachment
from kdelta.lab.request import Program
from kdelta.lab.work import Work
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.against.model import AgainstReport
from kdelta.studies.against.study import AgainstRequest, run_against
from kdelta.studies.documents import document_text
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command

KERNELS = ("deb:linux-image-cloud-amd64@bookworm", "deb:linux-image-6.12-cloud-amd64@bookworm")
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
    lab = Lab(store, Silent()).asked(RECORDED_LAB)
    kernel = lab.kernel(spec)
    assert isinstance(kernel, Kernel)
    work = await with_files(Work(program=program), [kernel], lab)
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
    spec: str, argvs: Sequence[Sequence[str]], files: tuple[str, ...], store: Store
) -> dict[str, object]:
    """Compare both, and their calls with strace's."""
    programs = [await found(spec, Program(tuple(argv), files), store) for argv in argvs]
    traced = [await straced(spec, program, store) for program in programs]
    old, new = (RunRequest(kernel=spec, program=program, lab=RECORDED_LAB) for program in programs)
    report = await run_against(AgainstRequest(old=old, new=new), Lab(store, Silent()))
    if not report.regions:
        raise LabError(f"no counts: {'; '.join(report.decision.because)}")
    sides = counted(report)
    ended = [side.pop("exit_group") for side in sides]
    differing = [
        {
            name: [side[name], theirs[name]]
            for name in sorted(side | theirs)
            if side[name] != theirs[name]
        }
        for side, theirs in zip(sides, traced, strict=True)
    ]
    return {
        "exit_group": ended,
        "calls": [side.total() for side in sides],
        "names": [len(side) for side in sides],
        "straced": [side.total() for side in traced],
        "differing": differing,
        "report": json.loads(document_text(report, "campaign")),
    }


async def campaign(out: Path, old: str, new: str) -> bool:
    """Make what is missing; whether all calls agree."""
    folders = [unpacked(suite, out) for suite in (old, new)]
    tree = made_tree(out)
    agree = True
    with open_store() as store:
        for spec in KERNELS:
            for program in (LOOP, *PROGRAMS):
                record = out / f"{program}-{KERNELS.index(spec)}.json"
                if not record.exists():
                    argvs = (
                        [loop(out, writes) for writes in (1, 2)]
                        if program == LOOP
                        else [command(program, folder, tree) for folder in folders]
                    )
                    files = (*(str(folder / "flat") for folder in folders), str(tree))
                    result = await trial(spec, argvs, files, store)
                    told = {"kernel": spec, "program": program, "releases": [old, new]}
                    record.write_text(json.dumps(told | result, indent=1) + "\n")
                result = json.loads(record.read_text())
                agree &= not any(result["differing"])
                print(spec, program, result["calls"], result["differing"], flush=True)
    return agree


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/against"))
    parser.add_argument("--old", default="bookworm")
    parser.add_argument("--new", default="trixie")
    given = parser.parse_args()
    out = make_folder(given.out.absolute())
    return 0 if asyncio.run(campaign(out, given.old, given.new)) else 1


if __name__ == "__main__":
    raise SystemExit(main())

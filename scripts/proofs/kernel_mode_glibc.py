#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the C library's own tests in user mode, in kernel mode and with direct calls.

    scripts/proofs/kernel_mode_glibc.py VMLINUX --source glibc-2.36 --json FILE

The tests are those of the unpacked source (Debian: package glibc-source), compiled outside of its
tree as dynamic programs for the C library of this host, which has to be of that version. What needs
the library's inside cannot be compiled so, and is counted. A test that needs arguments, or files of
its tree, fails in all modes alike.
"""

import argparse
import re
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from kernel_mode_selftests import said
from telling import a_row_a_line

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kdelta.guests.cpio import Entry, file  # noqa: E402
from kdelta.guests.kernel_mode import LIBRARY, direct_library  # noqa: E402
from kdelta.guests.libraries import program_files  # noqa: E402
from kdelta.host.command import log_to_stderr  # noqa: E402
from kdelta.host.gcc import Compiler  # noqa: E402
from kdelta.host.target import target  # noqa: E402
from tests.kernel_mode.guest import Boot, Machine, Step, boot  # noqa: E402

TABLE = Path(__file__).with_suffix(".toml")
MODES = ("user", "kernel", "kernel-skip")
ENDS = {"exit-0": "pass", "exit-77": "unsupported", "exit-1": "fail"}
"""How the tests' driver ends; all else stands for itself."""

HELPERS = ("/bin/sh", "/usr/bin/env", "/bin/true", "/bin/cat", "/bin/echo")
_FLAGS = (
    *("-O2", "-w", "-std=gnu11", "-pthread", "-fexceptions"),
    *("-D_GNU_SOURCE", "-DMODULE_NAME=testsuite", "-DTIMEOUTFACTOR=1", "-include", "inside.h"),
)


class Table(msgspec.Struct, frozen=True):
    """What is run and what the tests' library is compiled with."""

    folders: tuple[str, ...]
    seconds: int
    left_out: tuple[str, ...]
    paths: dict[str, str]
    headers: tuple[str, ...]
    shims: dict[str, str]
    more_of_the_library: tuple[str, ...]
    arguments: dict[str, str]

    def command(self, name: str) -> tuple[str, ...]:
        """What a test is called with in the guest."""
        program = f"/tests/{name}"
        return program, *self.arguments.get(name, "").format(program=program).split()


class Row(msgspec.Struct, frozen=True):
    """How a test ended by mode: pass, fail, unsupported, signal-N, exit-N, timeout, nothing."""

    test: str
    ended: dict[str, str]
    said: dict[str, str]


class Tested(msgspec.Struct, frozen=True):
    """All that was run. `rows` are all tests; `said`, in them, is the first complaint of a mode in
    which a test did not end as in user mode. `uncompiled`: how many could not be compiled.
    `left_out`: those that were not tried.
    """

    kernel: str
    glibc: str
    counts: dict[str, dict[str, int]]
    oopses: dict[str, tuple[str, ...]]
    uncompiled: int
    left_out: tuple[str, ...]
    rows: tuple[Row, ...]


def main() -> int:
    """Compiles, boots once a mode, and compares."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("kernel", type=Path, help="a vmlinux with CONFIG_KERNEL_MODE")
    words.add_argument("--source", type=Path, required=True, help="the C library's source")
    words.add_argument("--only", default="", help="tests whose names have this in them")
    words.add_argument("--keep", type=Path, help="where what is compiled stays for a next time")
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    table = msgspec.convert(tomllib.loads(TABLE.read_text()), Table)
    with tempfile.TemporaryDirectory() as folder:
        built: Path = given.keep or Path(folder)
        names = [
            name
            for name in _tests(given.source, table)
            if given.only in name and name not in table.left_out
        ]
        made = _compiled(given.source.resolve(), table, names, built)
        log_to_stderr(f"{len(made)} of {len(names)} tests can be compiled")
        entries = list(_files(made))
    boots = {mode: _booted(given.kernel, mode, entries, list(made), table) for mode in MODES}
    rows = tuple(_row(name, boots) for name in made)
    for row in rows:
        if len(set(row.ended.values())) > 1:
            print(row.test, row.ended, row.said)
    found = Tested(
        kernel=boots["kernel"].banner,
        glibc=(given.source / "version.h").read_text().split('VERSION "')[1].partition('"')[0],
        counts={mode: dict(Counter(row.ended[mode] for row in rows)) for mode in MODES},
        oopses={mode: tuple(one.oopses) for mode, one in boots.items()},
        uncompiled=len(names) - len(made),
        left_out=table.left_out,
        rows=rows,
    )
    print(found.counts)
    if given.json:
        given.json.write_bytes(a_row_a_line(found))
    return 1 if any(one.oopses or not one.whole for one in boots.values()) else 0


def _tests(source: Path, table: Table) -> Iterator[str]:
    """The tests of the folders: those with a name of a test, and no module or part of another."""
    for folder in table.folders:
        for path in sorted((source / folder).glob("*.c")):
            of_time64 = path.stem.endswith("-time64")
            test = re.match(r"(tst|test|bug)[-0-9a-z]", path.stem)
            if test and not of_time64 and not re.search(r"mod\d*$|-skeleton|-aux$", path.stem):
                yield f"{folder}/{path.stem}"


def _compiled(source: Path, table: Table, names: list[str], folder: Path) -> dict[str, Path]:
    """The tests that can be compiled, by name."""
    shims = folder / "shims"
    shims.mkdir(parents=True, exist_ok=True)
    for name, text in table.shims.items():
        (shims / name).write_text(text)
    for path in table.headers:
        shutil.copy(source / path, shims)
    near = (".", "support", "sysdeps/pthread", "nptl")
    include = ["-I", str(shims)]
    include += [word for path in near for word in ("-idirafter", str(source / path))]
    include += [f'-D{name}="{path}"' for name, path in table.paths.items()]
    objects = list(_support(source, table, [*_FLAGS, *include], folder))
    found = {}
    for name in names:
        program = folder / name.replace("/", "_")
        argv = ["gcc", *_FLAGS, *include, "-o", str(program), f"{Path(name).name}.c"]
        libraries = (*objects, "-lrt", "-lm", "-ldl")
        if program.exists() or not said([*argv, *libraries], (source / name).parent):
            found[name] = program
    return found


def _support(source: Path, table: Table, flags: list[str], folder: Path) -> Iterator[str]:
    """The objects of the tests' library that can be compiled, as an archive."""
    listed = (source / "support/Makefile").read_text()
    listed = listed.split("libsupport-routines = \\\n")[1].partition("\n\n")[0]
    sources = [f"support/{name}.c" for name in re.findall(r"^\s+(\S+)", listed, re.MULTILINE)]
    objects = []
    for path in (*sources, *table.more_of_the_library):
        to = folder / f"{Path(path).stem}.o"
        if why := said(["gcc", *flags, "-c", path, "-o", str(to)], source):
            log_to_stderr(f"{path} is left out: {why}")
        else:
            objects.append(str(to))
    archive = folder / "support.a"
    if why := said(["ar", "rcs", str(archive), *objects], source):
        raise RuntimeError(why)
    yield str(archive)


def _files(made: dict[str, Path]) -> Iterator[Entry]:
    """The tests, what they need of this host, and the library that makes calls direct."""
    found = {f"/tests/{name}": path for name, path in made.items()}
    found |= {str(Path(helper)): Path(helper) for helper in HELPERS}
    found |= {LIBRARY: direct_library(Compiler("x86_64"))}
    libraries: dict[str, Path] = {}
    for path in found.values():
        libraries |= {str(one): one for one in program_files(path, target("x86_64")) if one != path}
    # The unwinder, which cancelling a thread loads.
    unwinder = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")
    for name, path in (found | libraries | {str(unwinder): unwinder}).items():
        yield file(name.lstrip("/"), path.read_bytes(), executable=True)
    yield file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    yield file("etc/group", b"root:x:0:\n")


def _booted(kernel: Path, mode: str, entries: list[Entry], tests: list[str], table: Table) -> Boot:
    direct = ("/usr/bin/env", "KDELTA_CALL=skip", "KDELTA_CALL_CACHE=/tmp/direct")
    before = (*direct, f"LD_PRELOAD={LIBRARY}") if mode == "kernel-skip" else ()
    directory = "" if mode == "user" else "/"
    plan = [Step(name, (*before, *table.command(name)), directory, table.seconds) for name in tests]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(kernel, megabytes=2048, seconds=1500)
        ended = boot(machine, Path(folder), entries, plan)
    log_to_stderr(f"{mode}: {len(ended.steps)} of {len(plan)}, {len(ended.oopses)} oopses")
    for line in ended.oopses:
        log_to_stderr(f"    {line}")
    return ended


def _row(name: str, boots: dict[str, Boot]) -> Row:
    steps = {mode: one.steps.get(name) for mode, one in boots.items()}
    ended = {
        mode: ENDS.get(step.how, step.how) if step else "nothing" for mode, step in steps.items()
    }
    told = {
        mode: next((line[:200] for line in step.lines if "rror" in line or "fail" in line), "")
        for mode, step in steps.items()
        if step and ended[mode] != ended["user"]
    }
    return Row(name, ended, told)


if __name__ == "__main__":
    sys.exit(main())

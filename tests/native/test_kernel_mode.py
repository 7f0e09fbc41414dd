# SPDX-License-Identifier: GPL-2.0-or-later
"""The library that makes calls direct, on this host: with an entry of its own in user mode, which
goes back to the `syscall` before the return address, and counts.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kdelta.guests.kernel_mode import (
    FAILED,
    LIBRARY_FLAGS,
    STATIC_CALL_FLAGS,
    direct_calls,
    direct_library,
)
from kdelta.host.gcc import Compiler
from kdelta.host.native import STATIC_FLAGS, native_folder
from kdelta.workloads.catalog import build_workload, find_workload
from tests.native.calling import CALLING, CASES, LIBRARY

from .conftest import HERE, compile_c

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="is for x86-64"),
]

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
_COUNTS = re.compile(r"^kdelta call: (.*): (\d+) of (\d+) sites rewritten(.*)$", re.MULTILINE)
_LEFT = re.compile(r"; left (\d+) ([^;]+)")


class Told(NamedTuple):
    """What the library said of a module: its sites, and those left by their reason."""

    rewritten: int
    sites: int
    left: dict[str, int]


class ProgramResult(NamedTuple):
    """How a program ended, what was told, and how many calls came by stubs."""

    status: int
    stdout: str
    stderr: str
    told: dict[str, Told]
    calls: int


Run = Callable[..., ProgramResult]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library with the entry for tests."""
    output = tmp_path_factory.mktemp("kernel_mode") / "kernel_mode.so"
    return compile_c(output, LIBRARY, *LIBRARY_FLAGS, "-DKDELTA_CALL_TEST")


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that has the cases."""
    output = tmp_path_factory.mktemp("calling") / "calling"
    return compile_c(output, CALLING, "-pthread", "-fexceptions")


@pytest.fixture(scope="module")
def static_calling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, static, with the library linked in."""
    output = tmp_path_factory.mktemp("calling") / "static"
    flags = (*STATIC_FLAGS, *STATIC_CALL_FLAGS, "-pthread", "-fexceptions", "-DKDELTA_CALL_TEST")
    return compile_c(output, [*CALLING, *LIBRARY], *flags)


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Run:
    """Runs a program with the library, or one that has it."""
    counts = tmp_path / "counts"

    def start(
        *argv: str | Path,
        call: str = "test",
        report: str = "1",
        stdin: str = "",
        cache: Path | str = "",
    ) -> ProgramResult:
        counts.write_bytes(bytes(4096))
        env = {
            "PATH": "/usr/bin:/bin",
            "LD_PRELOAD": str(library),
            "KDELTA_CALL": call,
            "KDELTA_CALL_REPORT": report,
            "KDELTA_CALL_COUNTS": str(counts),
            "KDELTA_CALL_CACHE": str(cache),
        }
        done = subprocess.run(
            argv, env=env, input=stdin, capture_output=True, text=True, timeout=120, check=False
        )
        told = {
            name: Told(int(rewritten), int(sites), {why: int(n) for n, why in _LEFT.findall(left)})
            for name, rewritten, sites, left in _COUNTS.findall(done.stderr)
        }
        calls = int.from_bytes(counts.read_bytes()[:8], "little")
        return ProgramResult(done.returncode, done.stdout, done.stderr, told, calls)

    return start


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.split())
def test_a_case_of_a_dynamic_program(run: Run, calling: Path, case: str) -> None:
    done = run(calling, case, report="")
    assert (done.status, done.stdout, done.stderr) == (0, "as expected\n", "")
    assert done.calls


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.split())
def test_a_case_of_a_static_program(run: Run, static_calling: Path, case: str) -> None:
    done = run(static_calling, case, report="")
    assert (done.status, done.stdout, done.stderr) == (0, "as expected\n", "")
    assert done.calls


def test_what_a_static_program_starts_calls_so_too(
    run: Run, calling: Path, static_calling: Path
) -> None:
    """Even with an environment of its own. What a dynamic program leaves out is left out."""
    assert run(static_calling, "own-environment", report="").stdout == "yes test\n"
    assert run(static_calling, "own-environment", call="", report="").stdout == "yes\n"
    assert run(calling, "own-environment", report="").stdout == "yes\n"


def test_what_is_told_adds_up(run: Run, static_calling: Path) -> None:
    for argv in (["/bin/true"], [static_calling, "six"]):
        told = run(*argv).told
        total = told.pop("test")
        for one in (total, *told.values()):
            assert one.rewritten + sum(one.left.values()) == one.sites
        assert total.sites == sum(one.sites for one in told.values())
        assert total.rewritten == sum(one.rewritten for one in told.values())


def test_nearly_all_sites_of_the_c_library_are_reached(run: Run) -> None:
    libc = run("/bin/true").told[LIBC]
    said = subprocess.run(["objdump", "-d", "-w", LIBC], capture_output=True, text=True, check=True)
    assert libc.sites == len(re.findall(r"\tsyscall\s*$", said.stdout, re.MULTILINE))
    assert libc.sites > 300
    assert libc.rewritten >= 0.98 * libc.sites
    assert libc.left["return from a signal"] == 1


def test_each_site_that_is_left_is_named(run: Run) -> None:
    done = run("/bin/true", report="2")
    named = re.findall(
        rf"^kdelta call: {LIBC}: left (0x[0-9a-f]+), (.*)$", done.stderr, re.MULTILINE
    )
    assert len(named) == sum(done.told[LIBC].left.values())
    (restorer,) = (int(at, 16) for at, why in named if why == "return from a signal")
    assert Path(LIBC).read_bytes()[restorer - 7 : restorer + 2].hex() == "48c7c00f0000000f05"


def test_nothing_is_reported_unless_asked(run: Run) -> None:
    done = run("/bin/echo", "x", report="")
    assert (done.status, done.stdout, done.stderr) == (0, "x\n", "")


def test_without_a_wish_nothing_is_done(run: Run) -> None:
    done = run("/bin/true", call="")
    assert (done.status, done.stderr, done.calls) == (0, "", 0)


SHOW = "while read at how more; do case $how in r-xp) echo $more;; esac; done < /proc/self/maps"


def test_a_library_is_rewritten_once(run: Run, tmp_path: Path, calling: Path) -> None:
    """Later programs map what the first one kept, and are told the same; each calls as often."""
    kept = tmp_path / "kept"
    fixed = ("/usr/bin/setarch", "-R", "/usr/bin/env")  # the entry for tests has one address so
    shell = [run(*fixed, "/bin/sh", "-c", SHOW, cache=kept) for _ in range(3)]
    first, later = shell[0].told.values(), shell[2].told.values()
    assert [done.status for done in shell] == [0, 0, 0]
    assert list(first) == list(later)
    files = [path for path in kept.iterdir() if path.stat().st_size > 4096]
    assert len(files) == 2  # the C library and the loader; of others, that they have no calls
    for path in files:
        assert shell[2].stdout.count(str(path)) == 2  # its text and its stubs
    assert LIBC not in shell[2].stdout
    for case in ("storm", "cancel", "fork-in-thread", "spawn", "exec"):
        done = run(*fixed, calling, case, cache=kept, report="")
        assert (done.status, done.stdout, done.stderr) == (0, "as expected\n", "")
        assert done.calls


def test_what_was_kept_for_another_entry_is_not_used(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    show = ("/usr/bin/setarch", "-R", "/bin/sh", "-c", SHOW)
    run(*show, cache=kept)
    for path in kept.iterdir():
        content = path.read_bytes()
        path.write_bytes(content[:8] + bytes(8) + content[16:])
    done = run(*show, cache=kept)
    assert done.status == 0
    assert done.calls
    assert all(path.read_bytes()[8:16] != bytes(8) for path in kept.iterdir())


def test_a_folder_that_cannot_be_made_is_done_without(run: Run) -> None:
    done = run("/bin/echo", "x", cache="/proc/none/such", report="")
    assert (done.status, done.stdout, done.stderr) == (0, "x\n", "")
    assert done.calls


SCRIPT = """
import ctypes, ctypes.util, os, subprocess, sys, threading
report = (ctypes.c_uint32 * 4).in_dll(ctypes.CDLL(None), "kdelta_call_report")
assert report[2] >= report[3] > 400, list(report)
maps = [line.split() for line in open("/proc/self/maps")]
assert not [line for line in maps if "w" in line[1] and "x" in line[1]], maps
threads = [threading.Thread(target=subprocess.run, args=(["/bin/true"],)) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
sys.stdout.write(subprocess.run("echo $((6 * 7)); exit 3", shell=True, capture_output=True,
                                text=True).stdout)
"""


def test_real_programs(run: Run, tmp_path: Path) -> None:
    """Each says the same as without; no text stays writable; the variable can be read."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hi"); }\n')
    (tmp_path / "Makefile").write_text("hello: hello.c\n\tgcc -o $@ $<\n\t./$@ | sed s/h/H/\n")
    done = run("/usr/bin/python3", tmp_path / "script.py", report="")
    assert (done.status, done.stdout, done.stderr) == (0, "42\n", "")
    done = run("/usr/bin/make", "-s", "-C", tmp_path, report="")
    assert (done.status, done.stdout, done.stderr) == (0, "Hi\n", "")
    assert done.calls > 1000
    listed = subprocess.run(["ls", "-la", "/usr/bin"], capture_output=True, text=True, check=True)
    done = run("/bin/ls", "-la", "/usr/bin", report="")
    assert done.stdout == listed.stdout
    done = run(
        "/bin/sh", report="", stdin="(echo a; echo b) | sort -r | while read x; do echo $x; done"
    )
    assert done.stdout == "b\na\n"


def test_the_workload_runs_so(run: Run, tmp_path: Path) -> None:
    workload = find_workload("syscalls")
    program = compile_c(
        tmp_path / "syscalls",
        [*(workload.folder / source for source in workload.sources), *LIBRARY],
        *(*STATIC_FLAGS, *workload.cflags, *STATIC_CALL_FLAGS, "-DKDELTA_CALL_TEST"),
    )
    done = run(program, "--scale", "10", "--dir", tmp_path, report="")
    assert (done.status, done.stdout) == (0, "")
    assert done.calls > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("direct", "kdelta call: direct: this kernel has no kernel mode (CONFIG_KERNEL_MODE)\n"),
        ("skip", "kdelta call: skip: this kernel has no kernel mode (CONFIG_KERNEL_MODE)\n"),
        ("test", "kdelta call: KDELTA_CALL must be direct or skip, not: test\n"),
    ],
)
def test_a_program_that_cannot_call_so_does_not_run(call: str, says: str) -> None:
    static = build_workload(find_workload("syscalls"), by=Compiler("x86_64"), more=direct_calls())
    preload = str(direct_library(Compiler("x86_64"), strict=True))
    starts: list[tuple[list[str], dict[str, str]]] = [
        ([str(static), "getppid"], {}),
        (["/bin/ls"], {"LD_PRELOAD": preload}),
    ]
    for argv, more in starts:
        env = {"KDELTA_CALL": call, **more}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (FAILED, "", says)


@pytest.mark.slow
def test_instructions_are_read_as_objdump_reads_them(tmp_path: Path) -> None:
    """All instructions of two libraries: their lengths, their kinds, and what is relative."""
    program = compile_c(
        tmp_path / "lengths",
        [HERE / "kernel_mode" / "lengths.c", native_folder() / "kernel_mode" / "insn.c"],
        f"-I{native_folder() / 'kernel_mode'}",
    )
    seen = 0
    for file in (LIBC, "/lib64/ld-linux-x86-64.so.2"):
        listed = subprocess.run(
            ["objdump", "-d", "-w", file], capture_output=True, text=True, check=True
        )
        found = re.findall(r"^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(.+)$", listed.stdout, re.MULTILINE)
        rows = {
            (data, text.strip()): int(at, 16) for at, data, text in found if "(bad)" not in text
        }
        stdin = "".join(f"{data}\n" for data, _ in rows)
        said = subprocess.run([program], input=stdin, capture_output=True, text=True, check=True)
        answers = said.stdout.splitlines()
        assert len(answers) == len(rows)
        for ((data, text), at), answer in zip(rows.items(), answers, strict=True):
            wrong = _wrong(bytes.fromhex(data), text, at, [int(word) for word in answer.split()])
            assert not wrong, f"{data} {text}: {answer}"
        seen += len(rows)
    assert seen > 100_000


MOVES, STAYS, NOP, JCC, JUMP, INDIRECT, SYSCALL = range(1, 8)
NEVER_MOVED = "call ret jmp loop j syscall hlt ud2 lock xbegin xend xabort int leave rep"


def _wrong(data: bytes, text: str, at: int, said: list[int]) -> bool:
    """Whether an instruction's answer is not what objdump shows."""
    length, kind, relative_at, offset, needs_all = said
    operation = next(
        word for word in text.split() if word not in ("bnd", "notrack", "cs", "data16")
    )
    target = re.search(r"(?:^|\s)(?:j\w+|call|loop\w*) +(?:,p[nt] )?([0-9a-f]+)(?: <|$)", text)
    shown = re.search(r"\(%rip\).*# ([0-9a-f]+)", text) or target
    kinds = {
        "syscall": {SYSCALL},
        "jmp": {INDIRECT} if " *" in text else {JUMP},
        "call": {STAYS} if " *" in text else {JUMP},
    }
    if operation in kinds:
        allowed = kinds[operation]
    elif target and operation.startswith("j") and operation != "jrcxz":
        allowed = {JCC}
    elif any(operation == one for one in NEVER_MOVED.split()):
        allowed = {STAYS, JUMP}
    else:
        allowed = {MOVES, STAYS, NOP, JUMP}
    goes = bool(shown) and (at + length + offset) % 2**64 != int(shown[1], 16) if shown else False
    return (
        length != len(data)
        or kind not in allowed
        or (bool(relative_at) != ("(%rip)" in text))
        or goes
        or not needs_all
    )

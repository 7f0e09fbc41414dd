#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the kernel's own selftests in user mode and in kernel mode, and lists what differs.

    scripts/proofs/kernel_mode_selftests.py --stock VMLINUX --patched VMLINUX --json FILE

The programs are those of kernel_mode_selftests.toml, of the source of the distribution's kernel,
compiled and linked statically here. Three boots: user mode on the stock kernel (if one is given),
user mode on the patched one, and kernel mode ("/" as its directory). What is compared is how each
program ended and each of its results (TAP), by name.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from telling import a_row_a_line

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kdelta.guests.cpio import Entry, file  # noqa: E402
from kdelta.host.command import log_to_stderr  # noqa: E402
from tests.kernel_mode.guest import CPU, Boot, Ended, Machine, Step, boot  # noqa: E402

TABLE = Path(__file__).with_name("kernel_mode_selftests.toml")
SELFTESTS = "tools/testing/selftests"
# With SMAP on, QEMU 7.2 takes a far return in user mode for an access of the kernel: it panics.
CPU_WITHOUT = CPU.replace("+smep,+smap,", "")
BESIDES = (
    "mm/gup_test.h",
    "arch/x86/include/asm/desc_defs.h",
    "tools/include",
    "tools/arch/x86/include",
)
"""What the selftests include of the rest of the tree."""

MODES = ("stock", "user", "kernel")
_TAP = re.compile(r"^#? *(not ok|ok)\s+(?:\d+\s*)?(?:- )?(.*)$")
_COMPLAINT = (
    re.compile(r"^(?!#? *ok|#? *\[).*(Bail out|rror|Expected|not supported|nable to|permitted)"),
    re.compile(r"^(?!# Totals).*(not ok|FAIL)"),
)
_FLAGS = ("-O2", "-static", "-no-pie", "-pthread", "-w", "-D_GNU_SOURCE=")


class Test(msgspec.Struct, frozen=True):
    """A program of the selftests: its folder and source, and what else it is made and run with."""

    folder: str
    name: str
    sources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    seconds: int = 60

    @property
    def label(self) -> str:
        """Folder and name, in one word."""
        return f"{self.folder}/{self.name}"


class Row(msgspec.Struct, frozen=True):
    """How a program ended by mode (pass, skip, fail, signal-N, timeout), and its results.

    `results`: how many were ok and not ok. `differences`: results that are not the same on the
    patched kernel in both modes, as "name: user, kernel". `said`, where it did not pass: the line
    that tells most of why.
    """

    test: str
    ended: dict[str, str]
    results: dict[str, tuple[int, int]]
    differences: tuple[str, ...]
    said: dict[str, str]


class Selftests(msgspec.Struct, frozen=True):
    """All that was run."""

    kernels: dict[str, str]
    uncompiled: dict[str, str]
    oopses: dict[str, tuple[str, ...]]
    rows: tuple[Row, ...]


def main() -> int:
    """Compiles, boots three times, and compares."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--tree", type=Path, required=True, help="the kernel's source")
    words.add_argument("--stock", type=Path, help="the vmlinux without patches")
    words.add_argument("--patched", type=Path, required=True, help="the vmlinux with them")
    words.add_argument("--only", default="", help="tests whose names have this in them")
    words.add_argument("--keep", type=Path, help="where what is compiled stays for a next time")
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    tests = [test for test in _tests() if given.only in test.label]
    with tempfile.TemporaryDirectory() as folder:
        entries, uncompiled = _compiled(given.tree, tests, given.keep or Path(folder))
        for label, why in uncompiled.items():
            log_to_stderr(f"{label} is left out: {why}")
        there = [test for test in tests if test.label not in uncompiled]
        boots = {
            mode: _booted(given.stock if mode == "stock" else given.patched, mode, entries, there)
            for mode in MODES
            if given.stock or mode != "stock"
        }
    rows = tuple(_row(test, boots) for test in there)
    for row in rows:
        if row.differences or row.ended["user"] != row.ended["kernel"]:
            print(row.test, row.ended, *row.differences, sep="\n    ")
    found = Selftests(
        kernels={mode: one.banner for mode, one in boots.items()},
        uncompiled=uncompiled,
        oopses={mode: tuple(one.oopses) for mode, one in boots.items()},
        rows=rows,
    )
    if given.json:
        given.json.write_bytes(a_row_a_line(found))
    return 1 if any(one.oopses for one in boots.values()) else 0


def _tests() -> Iterator[Test]:
    for folder, rows in tomllib.loads(TABLE.read_text()).items():
        for name, of in rows.items():
            yield msgspec.convert({"folder": folder, "name": name, **of}, Test)


def _compiled(tree: Path, tests: list[Test], folder: Path) -> tuple[list[Entry], dict[str, str]]:
    """The programs as files of the guest, and why the others could not be compiled."""
    for path in (SELFTESTS, *BESIDES):
        to = folder / path
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (tree / path).is_dir() else shutil.copy
            copy(tree / path, to)
    # Says which libraries there are; without any, as where they are not installed.
    (folder / SELFTESTS / "mm/local_config.h").write_text("")
    headers = folder / "headers"
    said(["make", "-s", "-C", str(tree), f"O={headers}", "ARCH=x86", "headers"], folder)
    entries, uncompiled = [], {}
    for test in tests:
        output = folder / test.label.replace("/", "_")
        argv = ["gcc", *_FLAGS, "-isystem", str(headers / "usr/include"), "-I", ".", "-I", ".."]
        argv += ["-I", str(folder / SELFTESTS), "-I", "../include", *test.flags]
        argv += ["-idirafter", str(folder / "tools/include")]
        argv += ["-o", str(output), f"{test.name}.c", *test.sources, *test.libraries, "-lrt", "-lm"]
        there = output.exists()
        if not there and (why := said(argv, folder / SELFTESTS / test.folder)):
            uncompiled[test.label] = why
        else:
            entries.append(file(f"tests/{test.label}", output.read_bytes(), executable=True))
    return entries, uncompiled


def said(argv: list[str], folder: Path) -> str:
    """The first error of a command that failed; empty if it did not."""
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in ran.stderr.splitlines() if re.search("rror|undefined", line)]
    return "" if ran.returncode == 0 else (lines or ["failed"])[0].strip()


def _booted(kernel: Path, mode: str, entries: list[Entry], tests: list[Test]) -> Boot:
    plan = [
        Step(
            test.label,
            (f"/tests/{test.label}", *test.argv),
            "/" if mode == "kernel" else "",
            test.seconds,
        )
        for test in tests
    ]
    limit = 300 + sum(test.seconds for test in tests)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(kernel, CPU_WITHOUT, megabytes=2048, seconds=limit)
        ended = boot(machine, Path(folder), entries, plan)
    log_to_stderr(f"{mode}: {len(ended.steps)} of {len(plan)}, {len(ended.oopses)} oopses")
    for line in ended.oopses:
        log_to_stderr(f"    {line}")
    return ended


def _row(test: Test, boots: Mapping[str, Boot]) -> Row:
    steps = {
        mode: one.steps.get(test.label, Ended(test.label, "nothing", 0.0, ()))
        for mode, one in boots.items()
    }
    results = {mode: _results(step) for mode, step in steps.items()}
    user, kernel = results["user"], results["kernel"]
    ended = {mode: _how(step) for mode, step in steps.items()}
    return Row(
        test.label,
        ended,
        {mode: (sum(of.values()), len(of) - sum(of.values())) for mode, of in results.items()},
        tuple(
            f"{name}: {_word(user.get(name))}, {_word(kernel.get(name))}"
            for name in dict.fromkeys((*user, *kernel))
            if user.get(name) != kernel.get(name)
        ),
        {mode: _complaint(step) for mode, step in steps.items() if ended[mode] != "pass"},
    )


def _complaint(step: Ended) -> str:
    """The line of what a program said that tells most of why it did not pass; its last if none."""
    found = (line for of in _COMPLAINT for line in step.lines if of.search(line))
    return next(found, step.lines[-1] if step.lines else "").strip()[:160]


def _how(step: Ended) -> str:
    return {"exit-0": "pass", "exit-4": "skip", "exit-1": "fail"}.get(step.how, step.how)


def _word(held: bool | None) -> str:
    return "not said" if held is None else "ok" if held else "not ok"


def _results(step: Ended) -> dict[str, bool]:
    """The results of TAP by name; of names that come twice, whether all of them held."""
    found: dict[str, bool] = {}
    for line in step.lines:
        if match := _TAP.match(line.strip()):
            # Addresses, times and process numbers are others each time.
            name = re.sub(r"0x[0-9a-f]+|\d{3,}(\.\d+)?", "N", match.group(2))
            found[name] = found.get(name, True) and match.group(1) == "ok"
    return found


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Has the distribution's gdb follow a process in the guest to its end, in user and in kernel mode.

    scripts/proofs/kernel_mode_gdb.py VMLINUX [--only user]

Breakpoints, steps by line and by instruction (over a system call), back traces, a function called,
a watchpoint that another thread meets. Three times: all in user mode; the program alone in kernel
mode; gdb as well.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kdelta.guests.cpio import Entry, file  # noqa: E402
from kdelta.guests.userland import userland  # noqa: E402
from kdelta.host.command import log_to_stderr  # noqa: E402
from kdelta.workloads.catalog import UserlandWanted  # noqa: E402
from tests.kernel_mode.guest import INSIDE, Ended, Machine, Step, boot  # noqa: E402

# No libthread_db: it would have to be that of the C library that the program is linked with.
COMMANDS = """
set pagination off
set startup-with-shell off
set debuginfod enabled off
set libthread-db-search-path /nowhere
break third
run
bt
info registers cs
next
print watched
break *before_call
continue
stepi
print (long) $rip - (long) &before_call
finish
delete
print second(1)
watch watched
continue
delete
continue
"""
SAID = (
    r"#0 +third .*\n#1 .* second .*\n#2 .* first .*\n#3 .* main ",
    r"cs +0x33 ",
    r"\$1 = 42\n",
    r"\$2 = 2\n",
    r"Value returned is \$3 = 1\n",
    r"\$4 = 2\n",
    r"Hardware watchpoint \d+: watched\n.*\nOld value = 2\nNew value = 99\n",
    r"ring {ring}, value 3, watched 99\n.*exited normally",
)
"""What gdb and the program are to say. `ring` is where the program ran."""

DIRECTORIES = {"user": "", "kernel": INSIDE, "both": "/"}
"""What runs in kernel mode: nothing, the program alone, gdb as well."""


def main() -> int:
    """Boots once, and says of each way what was missing."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("kernel", type=Path, help="a vmlinux with CONFIG_KERNEL_MODE")
    words.add_argument("--only", choices=DIRECTORIES, help="the others need no such kernel")
    given = words.parse_args()
    names = [given.only] if given.only else list(DIRECTORIES)
    argv = ("/usr/bin/gdb", "-nx", "-batch", "-x", "/commands", f"{INSIDE}/debugged")
    plan = [Step(name, argv, DIRECTORIES[name], 120) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        entries = _entries(Path(folder))
        ended = boot(Machine(given.kernel, megabytes=1024), Path(folder), entries, plan)
    lacks = {
        name: _lacking(ended.steps[name]) if name in ended.steps else ["all"] for name in names
    }
    for name, lacking in lacks.items():
        print(f"{name}: {'to its end' if not lacking else f'without {lacking}'}")
        if lacking and name in ended.steps:
            print(*ended.steps[name].lines, sep="\n    ")
    print(*ended.oopses, sep="\n")
    return 1 if any(lacks.values()) or ended.oopses or not ended.whole else 0


def _lacking(step: Ended) -> list[str]:
    said = "\n".join(step.lines)
    ring = 3 if step.name == "user" else 0
    wanted = [pattern.replace("{ring}", str(ring)) for pattern in SAID]
    return [pattern for pattern in wanted if not re.search(pattern, said, re.DOTALL)]


def _entries(folder: Path) -> list[Entry]:
    program, source = folder / "debugged", Path(__file__).with_suffix(".c")
    flags = ("-g", "-O1", "-static", "-no-pie", "-pthread", "-std=gnu11", "-Wall", "-Werror")
    where = f"-ffile-prefix-map={source.parent}="
    subprocess.run(["gcc", *flags, where, "-o", program, source], check=True)
    wanted = UserlandWanted(packages=("gdb-minimal",), programs=("/usr/bin/gdb",))
    land = userland(wanted, "x86_64", log_to_stderr)
    found = {one.guest: one.host for one in land.files} | {f"{INSIDE}/debugged": program}
    files = [
        file(name.lstrip("/"), path.read_bytes(), executable=True) for name, path in found.items()
    ]
    there = file(source.name, source.read_bytes())
    return [*files, file("commands", COMMANDS.encode()), there]


if __name__ == "__main__":
    sys.exit(main())

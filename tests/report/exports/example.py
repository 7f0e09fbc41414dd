# SPDX-License-Identifier: GPL-2.0-or-later
"""Two regions for the tests of exports, and the programs that read what is made of them."""

import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.profile import Profile
from kdelta.counts.source_lines import Frame, SourceLines
from kdelta.report.exports import EXPORTS, Naming
from tests.marks import require
from tests.profiles import Stack, profile_of

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".tools"

MAIN = "work:main"
ODD = 'copy <to>; "user" (x)\n $(y) 12'
"""A function with all that may mean something to a format, a shell or a browser."""

ODD_REGION = "read (x); <b>&amp;\n\x1b[1m"

READ: Mapping[Stack, int] = {
    (MAIN,): 5,
    (MAIN, "do_syscall_64"): 100,
    (MAIN, "do_syscall_64", "vfs_read"): 40,
    (MAIN, "do_syscall_64", "vfs_read", ODD): 7,
    (MAIN, "do_syscall_64", "vfs_read", "walk"): 3,
    (MAIN, "do_syscall_64", "vfs_read", "walk", "walk"): 4,
    (MAIN, "do_syscall_64", "vfs_read", "walk", "walk", "[nf nat]:hook"): 1000,
    (MAIN, "do_syscall_64", "vfs_read", "walk", "walk", "[nf nat]:hook", "walk"): 30,
    ("irq_entry",): 50,
    ("irq_entry", "tick"): 60,
}
NAMELESS: Mapping[Stack, int] = {
    (f"lib{name}.so.1:[no symbol]",): 10 + at for at, name in enumerate(("one", "two", "three"))
}
"""Code of three objects without symbols."""
OTHER: Mapping[Stack, int] = {(MAIN,): 1, (MAIN, "do_syscall_64"): 2}
NAMING = Naming(
    kernel="deb:linux-image", workload="syscalls", command="a 'b' <c>\nd", run="7f3a", machine="q35"
)


def example() -> tuple[Profile, ...]:
    """The two regions."""
    return (
        profile_of(READ, region="read", contexts={("irq_entry",): 1}),
        profile_of(OTHER, region=ODD_REGION),
    )


def naming_with(places: Mapping[int, tuple[str, int]]) -> Naming:
    """NAMING with the lines of kernel code at these addresses."""
    frames = {("kernel", at): (Frame("", *place),) for at, place in places.items()}
    return msgspec.structs.replace(NAMING, lines=SourceLines(frames))


def own(stacks: Sequence[Mapping[Stack, int]]) -> Counter[str]:
    """What each function executed itself."""
    found: Counter[str] = Counter()
    for one in stacks:
        for stack, insns in one.items():
            found[stack[-1]] += insns
    return found


def inclusive(stacks: Sequence[Mapping[Stack, int]]) -> Counter[str]:
    """What each function executed with all below it, what is below it twice counted once."""
    found: Counter[str] = Counter()
    for one in stacks:
        for stack, insns in one.items():
            for name in set(stack):
                found[name] += insns
    return found


def made(name: str, folder: Path, profiles: Sequence[Profile], naming: Naming = NAMING) -> Path:
    """The export of that name as a file."""
    export = EXPORTS[name]
    file = folder / f"profile{export.suffix}"
    file.write_bytes(export.made(profiles, naming))
    return file


def tool(name: str) -> Path:
    """A program or page that scripts/setup-readers installs, by its path without the version."""
    require("outside")
    package, _, rest = name.partition("/")
    found = sorted(TOOLS.glob(f"{package}-*/{rest}"))
    if not found:
        pytest.fail(f"{name} is not in .tools: run make setup-tests first")
    return found[-1]


def output(*command: str | Path, stdin: str | None = None, **environment: str) -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

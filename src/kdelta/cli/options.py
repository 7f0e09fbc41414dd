# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several commands share, and the requests they make."""

import os
from typing import Annotated

import typer

from kdelta.spec.run import MachineOptions
from kdelta.studies.requests import LabRequest, RunRequest

SPECS = """\b
Kernel specs:
  PATH, tree:PATH              a source tree as it is, or packed (.tar.xz)
  git:PATH@REV                 a commit, tag or branch of a git repository
  deb-src:PACKAGE[=VERSION]    a distribution's source: linux-source-6.12
  deb:PACKAGE[=VERSION]        a distribution's binary kernel, fetched by apt
  image:PATH[,modules=FOLDER]  a bzImage, or a vmlinux with CONFIG_PVH=y

\b
Changes on a source, in their order:
  +CONFIG_X=y  +'# CONFIG_X is not set'  options
  +some.config  +fragment.config         a whole config, or a part of one
  +defconfig  +kvm_guest.config          what the tree's own make knows
  +fix.patch  +series.mbox               patches
  +KCFLAGS=-O3  +CC=clang  +LLVM=1       for make; without + for all kernels

\b
A lone + is the first kernel again: ~/linux +a.config + +fix.patch
"""

Perturb = Annotated[
    int,
    typer.Option(
        "--perturb",
        metavar="N",
        min=1,
        max=1000,
        help="Runs a kernel, each with another seed, memory offset and start phase.",
    ),
]
Again = Annotated[
    bool,
    typer.Option(
        "--again",
        help="Run also what the store has; it is an error if the counts then differ.",
    ),
]
NoSnapshot = Annotated[
    bool,
    typer.Option("--no-snapshot", help="Boot for each run; the counts are the same, only later."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", metavar="N", min=1, max=1024, help="Guests at a time.  [default: cores]"
    ),
]
Memory = Annotated[
    int, typer.Option("--memory", metavar="MIB", min=64, max=1 << 20, help="Memory of a guest.")
]
Cpu = Annotated[
    str,
    typer.Option(
        "--cpu",
        metavar="MODEL",
        help="QEMU's name of a CPU model, with features.  [default: x86-64-v2 and some more]",
    ),
]
Append = Annotated[
    str,
    typer.Option("--append", metavar="WORDS", help="Added to the kernel's command line."),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=1,
        show_default="600",
        help="The longest a boot or a run may take here.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Everything as JSON instead of text.")]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show each command, ready to be pasted.")
]
Functions = Annotated[
    int, typer.Option("--functions", metavar="N", min=0, help="Functions to name an operation.")
]

DEFAULT_GUEST_SECONDS = RunRequest(kernel="", command=()).seconds
DEFAULT_MEMORY_MIB = MachineOptions().memory_mib
DEFAULT_TIMEOUT_SECONDS = MachineOptions().timeout_seconds


def lab_request(
    *,
    perturb: int,
    again: bool,
    no_snapshot: bool,
    jobs: int | None,
    memory: int,
    cpu: str,
    append: str,
    timeout: float,
) -> LabRequest:
    """How runs are to be made, from the options of the same names."""
    return LabRequest(
        machine=MachineOptions(memory_mib=memory, cpu=cpu, append=append, timeout_seconds=timeout),
        perturbations=perturb,
        jobs=jobs or len(os.sched_getaffinity(0)),
        again=again,
        snapshots=not no_snapshot,
    )

# SPDX-License-Identifier: GPL-2.0-or-later
"""Real code of each architecture, for the classifiers."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import oracle_arm, oracle_arm64, oracle_riscv
from .classifying import Target
from .oracle_arm import Said

A32 = Target(
    ("arm",),
    "arm",
    ("-march=armv8.2-a", "-mfpu=crypto-neon-fp-armv8"),
    ".syntax unified\n.arm\n",
    4,
)

T32 = A32._replace(words=("arm", "thumb"), head=".syntax unified\n.thumb\n", unit_bytes=2)
A64 = Target(("aarch64",), "arm64", ("-march=armv8.5-a",), "", 4)

RISCV = Target(("riscv64",), "riscv64", ("-march=rv64gc_zicsr_zifencei_zihintpause",), "", 4)

TARGETS = {"arm": A32, "thumb": T32, "arm64": A64, "riscv64": RISCV}


class Real(NamedTuple):
    """Code that somebody uses, and how objdump has to be told to read it."""

    target: str
    oracle: Callable[[str], Said | None]
    library: str
    options: tuple[str, ...]
    least: int


REAL = [
    Real("thumb", oracle_arm.read, "arm-linux-gnueabihf", ("-M", "force-thumb"), 50_000),
    Real("arm64", oracle_arm64.read, "aarch64-linux-gnu", (), 50_000),
    Real("riscv64", oracle_riscv.read, "riscv64-linux-gnu", (), 50_000),
]
LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
"""The same for x86-64."""

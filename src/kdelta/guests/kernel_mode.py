# SPDX-License-Identifier: GPL-2.0-or-later
"""What makes a program in kernel mode call the kernel directly: a library that dynamic programs are
given before others, and the same sources for static ones (docs/kernel-mode-calls.md).
"""

from collections.abc import Callable
from pathlib import Path

from kdelta.host.command import quiet
from kdelta.host.gcc import Compiler
from kdelta.host.native import PLUGIN_FLAGS, NativeProgram, build_program, native_folder
from kdelta.workloads.catalog import LinkedIn

_FOLDER = "kernel_mode"

LIBRARY = "/lib/kdelta/kernel_mode.so"
"""Where the library lies in a guest."""

CALL_CACHE = "/run/kdelta/direct"
"""Where it keeps libraries in a guest once they are rewritten (KDELTA_CALL_CACHE), so that only the
first program pays for that. It makes the folder itself, and does without where it cannot.
"""

FAILED = 125
"""How a program ends whose calls cannot be made direct. Its stderr says why."""

LIBRARY_FLAGS = (*PLUGIN_FLAGS, "-Wl,-z,initfirst", "-Wl,-z,now")
"""It is to be initialised before all others: they may start threads, and text is rewritten once."""

STATIC_CALL_FLAGS = ("-Wl,--eh-frame-hdr", "-Wl,--wrap=execve", "-DKDELTA_CALL_STATIC")
"""It knows where functions begin by a table that static programs do not have otherwise; and what
they start with an environment of their own is to call directly, too.
"""


def direct_library(
    by: Compiler, log: Callable[[str], None] = quiet, *, strict: bool = False
) -> Path:
    """The path of the built library for guests (of x86_64), compiled by that compiler unless the
    cache has it. A program that is given it by LD_PRELOAD, and KDELTA_CALL=direct|skip, calls so.
    It asks nothing newer of a C library than 2.16 has, so that programs of any host load it.
    """
    program = NativeProgram(
        name="kernel_mode.so",
        folder=native_folder() / _FOLDER,
        sources=tuple(source.name for source in _sources()),
        flags=LIBRARY_FLAGS,
        by=by,
    )
    return build_program(program, log, strict=strict)


def direct_calls() -> LinkedIn:
    """What a static program for x86-64 is linked with instead; KDELTA_CALL tells it the same."""
    return LinkedIn(sources=tuple(map(str, _sources())), flags=STATIC_CALL_FLAGS)


def _sources() -> list[Path]:
    return sorted((native_folder() / _FOLDER).glob("*.c"))

# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMUs that are later than the host's, for tests: the pinned one, or a suite's as it is today."""

import functools
import os

import msgspec

from kdelta.host.command import log_to_stderr
from kdelta.host.dirs import cache_dir
from kdelta.host.emulator import HOST, PIN
from kdelta.host.pin import pack
from kdelta.machines.tcg import Guest
from scripts.make_pin import resolve

SUITES = os.environ.get("KDELTA_TEST_SUITES", PIN).split()
"""The pin is of Debian 13, whose plugin interface has versions 2 to 4. sid's, the newest of all, is
another one from week to week: it is tested when the variable names it.
"""


def on_host(one: Guest) -> Guest:
    """That guest in the host's QEMU."""
    return msgspec.structs.replace(one, qemu=HOST)


@functools.cache
def other_qemu(suite: str) -> str:
    """What --qemu is for that suite's QEMU; nothing is installed."""
    if suite == PIN:
        return suite
    made = resolve(suite)
    packed = cache_dir("test-pins") / f"{made.digest}.tar"
    if not packed.exists():
        pack(made, packed, log_to_stderr)
    return str(packed)

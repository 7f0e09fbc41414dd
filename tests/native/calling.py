# SPDX-License-Identifier: GPL-2.0-or-later
"""The program that tests calls in kernel mode, and its cases."""

from kdelta.host.native import native_folder

from .conftest import HERE

LIBRARY = sorted((native_folder() / "kernel_mode").glob("*.c"))
CALLING = sorted(path for path in (HERE / "kernel_mode").glob("*.c") if path.stem != "lengths")
CASES = "registers red-zone six eintr restart stopped storm longjmp altstack threads cancel"
CASES += " fork-in-thread fork vfork spawn exec"

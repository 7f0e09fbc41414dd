# SPDX-License-Identifier: GPL-2.0-or-later
"""A bundle: a workload and what times it, as one static program for a machine without kdelta."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

from kdelta.host.command import quiet
from kdelta.host.files import lab_errors, write_atomic
from kdelta.host.gcc import Compiler
from kdelta.host.native import native_folder
from kdelta.spec.errors import LabError, UserError
from kdelta.workloads.catalog import LinkedIn, Workload, build_workload

PROGRAM = "bundle"
_MOST_BYTES = 5 << 20
_README = """\
This is what kdelta times on a machine: the operations of its workload {workload!r}, for {arch}.
It needs no other file, no Python and no network, and sets nothing.

Under the one kernel, and under the other, boot by boot in an order drawn at random:

    ./bundle run >A/1.json        reboot; A/2.json, ...
    ./bundle run >B/1.json        reboot; B/2.json, ...

Then, where kdelta is: kdelta clock judge A B
"""


def build_bundle(
    workload: Workload, by: Compiler, log: Callable[[str], None] = quiet, *, strict: bool = False
) -> Path:
    """Return the program of a bundle, compiled unless the cache has it. UserError for a workload
    that a machine without kdelta cannot run.
    """
    must_be_packable(workload)
    sources = sorted((native_folder() / "clock").glob("*.c"))
    flags = ("-DKDELTA_TIMED", "-Dmain=workload_main", f'-DKDELTA_WORKLOAD="{workload.name}"')
    more = LinkedIn(tuple(map(str, sources)), flags)
    return build_workload(workload, log, by=by, more=more, strict=strict)


def must_be_packable(workload: Workload) -> None:
    """Raise UserError for a workload that a machine without kdelta cannot run."""
    if why := _why_not(workload):
        raise UserError(
            f"{workload.name} cannot be packed: {why}",
            "syscalls and aes can; others need a guest: kdelta compare",
        )


def write_bundle(program: Path, workload: Workload, arch: str, output: Path) -> int:
    """Write a bundle's program and how it is used as a tar file; returns its size in bytes. The
    same program makes the same file.
    """
    with lab_errors("reading", program):
        content = program.read_bytes()
    if len(content) > _MOST_BYTES:
        raise LabError(f"the bundle has {len(content)} bytes, and may have {_MOST_BYTES}")
    text = _README.format(workload=workload.name, arch=arch).encode()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, mode, part in ((PROGRAM, 0o755, content), ("README", 0o644, text)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(part), mode
            tar.addfile(entry, io.BytesIO(part))
    write_atomic(output, made.getvalue())
    return len(made.getvalue())


def _why_not(workload: Workload) -> str:
    """Return what of a workload a machine without kdelta lacks; empty for nothing."""
    if workload.userland or workload.dynamic:
        return "it starts programs of a distribution"
    if workload.kernel_tree:
        return "it needs a kernel's source"
    if workload.modules or workload.needs:
        return "it needs modules or options of the kernel"
    return ""

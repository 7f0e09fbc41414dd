# SPDX-License-Identifier: GPL-2.0-or-later
"""A bundle: a workload and what times it, as one static program for a machine without kdelta."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.guests.libraries import is_static, path_of_command, target_of
from kdelta.host.command import quiet
from kdelta.host.files import user_errors, write_atomic
from kdelta.host.gcc import Compiler
from kdelta.host.native import build_part, native_folder
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import LinkedIn, Workload, build_workload

PROGRAM = "bundle"
_MOST_BYTES = 5 << 20
_README = """\
This is what kdelta times on a machine: {what}, for {arch}.
It needs no other file, no Python and no network, and sets nothing.

Under the one kernel, and under the other, boot by boot in an order drawn at random:

    ./bundle {words} >A/1.json        reboot; A/2.json, ...
    ./bundle {words} >B/1.json        reboot; B/2.json, ...

Then, where kdelta is: kdelta clock judge A B
"""


class Bundle(msgspec.Struct, frozen=True):
    """What is packed: the program that times, how it is called, and what it times; `besides`: the
    user's program, if that is what is timed.
    """

    program: Path
    words: str
    what: str
    besides: Path | None = None


def build_bundle(
    workload: Workload, by: Compiler, log: Callable[[str], None] = quiet, *, strict: bool = False
) -> Path:
    """Return the program of a bundle, compiled unless the cache has it. UserError for a workload
    that a machine without kdelta cannot run.
    """
    if why := _why_not(workload):
        raise UserError(
            f"{workload.name} cannot be packed: {why}",
            "syscalls and aes can; others need a guest: kdelta compare --clock kvm",
        )
    sources = sorted((native_folder() / "clock").glob("*.c"))
    flags = ("-DKDELTA_TIMED", "-Dmain=workload_main", f'-DKDELTA_WORKLOAD="{workload.name}"')
    more = LinkedIn(tuple(map(str, sources)), flags)
    return build_workload(workload, log, by=by, more=more, strict=strict)


def bundle_of(
    workload: Workload, by: Compiler, log: Callable[[str], None] = quiet, *, strict: bool = False
) -> Bundle:
    """Return a workload's operations as a bundle; errors as of `build_bundle`."""
    what = f"the operations of its workload {workload.name!r}"
    return Bundle(build_bundle(workload, by, log, strict=strict), "run", what)


def bundle_of_program(program: Path, by: Compiler, log: Callable[[str], None] = quiet) -> Bundle:
    """Return a program of the user's as a bundle. UserError for one that is not there, is for
    another architecture, or needs libraries.
    """
    program = path_of_command(str(program.absolute()))
    _must_be_static(program, by.arch)
    words, what = f"exec ./{program.name}", f"the program {program.name!r}"
    return Bundle(build_part("clock", log, by=by), words, what, program)


def _must_be_static(program: Path, arch: str) -> None:
    if program.name in (PROGRAM, "README"):
        raise UserError(f"{program} has the name of another file of a bundle", "rename it")
    of = target_of(program)
    if of.name != arch:
        raise UserError(
            f"{program} is a program for {of.name}, and the bundle is for {arch}",
            f"kdelta clock pack --arch {of.name} --program {program} --output FILE",
        )
    if not is_static(program):
        raise UserError(
            f"{program} is no static program: a machine without kdelta may lack what it needs",
            "link it with -static",
        )


def write_bundle(bundle: Bundle, arch: str, output: Path) -> int:
    """Write a bundle and how it is used as a tar file; returns its size in bytes. The same programs
    make the same file. UserError for more than it may have.
    """
    text = _README.format(what=bundle.what, words=bundle.words, arch=arch).encode()
    parts = [(PROGRAM, 0o755, _content(bundle.program)), ("README", 0o644, text)]
    if bundle.besides:
        parts.append((bundle.besides.name, 0o755, _content(bundle.besides)))
    if (size := sum(len(content) for *_, content in parts)) > _MOST_BYTES:
        raise UserError(
            f"the bundle has {size} bytes, and may have {_MOST_BYTES}", "strip the program"
        )
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, mode, part in parts:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(part), mode
            tar.addfile(entry, io.BytesIO(part))
    write_atomic(output, made.getvalue())
    return len(made.getvalue())


def _content(program: Path) -> bytes:
    with user_errors(program):
        return program.read_bytes()


def _why_not(workload: Workload) -> str:
    """Return what of a workload a machine without kdelta lacks; empty for nothing."""
    if workload.userland or workload.dynamic:
        return "it starts programs of a distribution"
    if workload.kernel_tree:
        return "it needs a kernel's source"
    if workload.modules or workload.needs:
        return "it needs modules or options of the kernel"
    return ""

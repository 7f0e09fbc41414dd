# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta pin`: the pinned QEMU, compilers and packages, fetched or packed for other hosts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kdelta.cli.options import Verbose, one_of, workload_option
from kdelta.cli.output import echo_commands, emit, log
from kdelta.host.pin import gcc_part, megabytes, obtain, pack, pinned, qemu_part
from kdelta.host.target import targets
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import find_workload

_ACTIONS = ("show", "fetch", "pack")
_ARCH = "x86_64"


def pin(
    action: Annotated[
        str, typer.Argument(metavar="show|fetch|pack", help="What to do with it.")
    ] = "show",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where it is packed.")
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch",
            metavar="ARCH",
            help="Fetch or pack it for guests of this architecture; may be repeated."
            f"  [default: {_ARCH}; pack without options: all]",
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        workload_option(help="Fetch or pack what this workload starts, too; may be repeated."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Show, fetch or pack the pinned QEMU, compilers and packages.

    They are what runs guests, what compiles their programs, and what workloads start, unless --qemu
    or --compile-guest say otherwise: Debian packages by SHA-256, which are fetched into the cache
    when they are first needed. `pack` writes them as one file, for hosts that cannot fetch them:
    --qemu FILE.
    """
    echo_commands(wanted=verbose)
    found = pinned()
    if one_of("ACTION", action, _ACTIONS) == "fetch":
        for part in _parts(arch or [_ARCH], workload or []):
            obtain(found, part, log)
    elif action == "pack":
        if output is None:
            raise UserError("pack needs a file to write", "kdelta pin pack -o FILE")
        some = _parts(arch or [_ARCH], workload or []) if arch or workload else ()
        pack(found, output, log, some)
    width = max(map(len, found.parts))
    here = found.here
    parts = (
        f"  {part:<{width}} {megabytes(found.of(part)):>3} MB  "
        f"{f'in {found.folder_of(part)}' if part in here else 'not fetched yet'}\n"
        for part in found.parts
    )
    emit(
        f"QEMU {found.title}, {found.compiler_title}\n"
        f"  {len(found.packages)} packages of Debian {found.release}, for hosts that are"
        f" {found.host}\n" + "".join(parts)
    )


def _parts(arches: Sequence[str], names: Sequence[str]) -> list[str]:
    """QEMU and compiler for these architectures, and what these workloads start there."""
    found: list[str] = []
    for arch in arches:
        one_of("--arch", arch, list(targets()))
        found += (qemu_part(arch), gcc_part(arch))
        found += (part for name in names for part in find_workload(name).pinned_parts(arch))
    return list(dict.fromkeys(found))

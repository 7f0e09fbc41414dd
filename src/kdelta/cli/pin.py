# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta pin`: the pinned QEMU, compilers and packages, fetched or packed for other hosts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.cli.output import emit
from kdelta.cli.plain_options import Verbose
from kdelta.cli.reading import one_of
from kdelta.host.command import echo_commands, log_to_stderr
from kdelta.host.pin import gcc_part, megabytes_of, obtain_part, pack, pinned, qemu_part
from kdelta.host.target import targets
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.workloads.catalog import find_workload

_ACTIONS = ("show", "fetch", "pack")
_ARCH = "x86_64"


class PinOptions(msgspec.Struct, frozen=True):
    """Which parts, and where they are packed."""

    output: Annotated[Path | None, option("--output", help="Pack it there.")] = None
    arches: Annotated[
        tuple[str, ...],
        option(
            "--arch",
            usual=f"{_ARCH}; pack without options: all",
            help="For guests of this architecture; repeatable.",
        ),
    ] = ()
    workloads: Annotated[
        tuple[str, ...],
        option("-w", "--workload", help="With what this workload starts; repeatable."),
    ] = ()
    verbose: Verbose = False


def pin(
    *,
    asked: PinOptions,
    action: Annotated[
        str,
        Argument(metavar="|".join(_ACTIONS), help="What to do with it.", values="|".join(_ACTIONS)),
    ] = "show",
) -> None:
    """Show, fetch or pack the pinned QEMU, compilers and packages.

    They are what runs guests, what compiles their programs, and what workloads start, unless --qemu
    or --compile-guest say otherwise: Debian packages by SHA-256, which are fetched into the cache
    when they are first needed. `pack` writes them as one file, for hosts that cannot fetch them:
    --qemu FILE.
    """
    echo_commands(wanted=asked.verbose)
    found = pinned()
    if one_of("ACTION", action, _ACTIONS) == "fetch":
        for part in _parts(asked.arches or [_ARCH], asked.workloads):
            obtain_part(found, part, log_to_stderr)
    elif action == "pack":
        if asked.output is None:
            raise UserError("pack needs a file to write", "kdelta pin pack --output FILE")
        named = asked.arches or asked.workloads
        some = _parts(asked.arches or [_ARCH], asked.workloads) if named else ()
        pack(found, asked.output, log_to_stderr, some)
    width = max(map(len, found.parts))
    here = found.here
    parts = (
        f"  {part:<{width}} {megabytes_of(found.of(part)):>3} MB  "
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

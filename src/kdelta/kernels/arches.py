# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between architectures when kernels are built: [build] of their data files."""

import functools
from collections.abc import Mapping

import msgspec

from kdelta.arch.files import tables
from kdelta.host.target import target
from kdelta.spec.errors import UserError

NO_CONFIG = "allnoconfig"


class Image(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that can be booted. `path` is below a build's output folder, and its last part is the
    target of make; `needs` is an option without which it cannot be booted, "" if there is none.
    """

    format: str
    path: str
    needs: str = ""

    @property
    def name(self) -> str:
        """The file's name, and what make is asked for."""
        return self.path.rpartition("/")[2]


class KernelArch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An architecture.

    folder         below arch/ in a tree
    names          values of ARCH, and what hosts call themselves; `hosts` are more of the latter
    machine        what a kernel's machine is called: the name of the data file
    cross_compile  of the distribution's cross compiler, which other hosts need: by [host]
    bits           of an address: by [host]
    base           the target that makes a config where there is none to start from
    images         what can be booted: the first whose need is met
    device_trees   those that its machines need
    command_line_bytes  the longest command line, with the 0 behind it: COMMAND_LINE_SIZE
    """

    folder: str
    names: tuple[str, ...]
    images: tuple[Image, ...]
    command_line_bytes: int
    machine: str = ""
    cross_compile: str = ""
    hosts: tuple[str, ...] = ()
    bits: int = 64
    base: str = NO_CONFIG
    device_trees: tuple[str, ...] = ()

    def image(self, config: Mapping[str, str]) -> Image:
        """What is booted of a kernel with that config."""
        return next(one for one in self.images if not one.needs or config.get(one.needs) == "y")


@functools.cache
def kernel_arches() -> dict[str, KernelArch]:
    """All architectures by their folder."""
    rows = ((read, target(name)) for name, read in tables("build", KernelArch).items())
    return {
        read.folder: msgspec.structs.replace(
            read, machine=of.name, cross_compile=f"{of.triple}-", bits=of.bits
        )
        for read, of in rows
    }


@functools.cache
def kernel_arch(name: str) -> KernelArch:
    """The architecture that is called so: by its folder, ARCH, a host or a machine; UserError if
    kernels for it cannot be built.
    """
    for arch in kernel_arches().values():
        if name in (arch.folder, arch.machine, *arch.names, *arch.hosts):
            return arch
    known = ", ".join(arch.names[0] for arch in kernel_arches().values())
    raise UserError(f"kernels for {name} cannot be booted by kdelta", f"name one of: ARCH={known}")

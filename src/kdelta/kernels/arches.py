# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between architectures when kernels are built, read from one TOML file each."""

import functools
from collections.abc import Mapping
from importlib import resources

import msgspec

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

    folder         below arch/ in a tree; "" in a data file, whose name it is
    names          values of ARCH, and what hosts call themselves; `hosts` are more of the latter
    machine        what a kernel's machine is called
    cross_compile  of the distribution's cross compiler, which other hosts need
    bits           of an address
    base           the target that makes a config where there is none to start from
    images         what can be booted: the first whose need is met
    device_trees   those that its machines need
    """

    names: tuple[str, ...]
    machine: str
    cross_compile: str
    images: tuple[Image, ...]
    folder: str = ""
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
    files = resources.files(__package__).joinpath("arches").iterdir()
    found = {}
    for file in sorted(files, key=lambda file: file.name):
        folder = file.name.removesuffix(".toml")
        read = msgspec.toml.decode(file.read_bytes(), type=KernelArch)
        found[folder] = msgspec.structs.replace(read, folder=folder)
    return found


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

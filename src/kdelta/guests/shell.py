# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell of a guest that is used at a terminal, and what else one wants there."""

import shutil
from pathlib import Path

import msgspec

from kdelta.guests.job import JobFile
from kdelta.guests.libraries import Carried, carry
from kdelta.guests.userland import userland
from kdelta.host.command import Log
from kdelta.host.target import target
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.workloads.catalog import UserlandWanted

SHELL = "/bin/sh"
"""Where a guest has a shell that the user brings by --file."""
_SHELLS = ("bash", "sh")
_TOOLS = """
busybox cat chmod cp cut date dd df dmesg du echo env find free grep head id insmod ip kill ln ls
lsmod mkdir mount mv nproc od ps readlink rm rmdir rmmod sed seq sleep sort stat stty sync sysctl
tail taskset tee timeout touch tr true umount uname uptime wc which xargs
"""
"""What is taken along of this host, as far as it is there."""
_BUSYBOX = "/bin/busybox"
_BUSYBOX_WANTED = UserlandWanted(packages=("busybox-static",), programs=(_BUSYBOX,))
_TERMINFO = ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo")


def carried_shell(files: list[JobFile], arch: str, log: Log) -> Carried:
    """Return a shell for guests of that architecture, with tools and with these files: the one that
    is /bin/sh among them, else this host's, else busybox of the distribution's packages.

    UserError if there is none.
    """
    if own := next((one for one in files if one.guest == SHELL), None):
        found = carry([str(own.host)], files, arch)
        return msgspec.structs.replace(found, argv=(SHELL,))
    if target(arch).is_host:
        return _of_host(files, arch)
    try:
        packages = userland(_BUSYBOX_WANTED, arch, log)
    except KdeltaError as error:
        raise UserError(
            f"cannot open a shell of {arch} on this host: {error.message}",
            f"bring one that is linked statically: kdelta shell KERNEL --file BUSYBOX:{SHELL}",
        ) from error
    install = f"{_BUSYBOX} --install -s /bin; exec {_BUSYBOX} sh"
    return Carried((_BUSYBOX, "sh", "-c", install), (*files, *packages.files), ())


def _of_host(files: list[JobFile], arch: str) -> Carried:
    program = next(filter(None, map(shutil.which, _SHELLS)), None)
    if program is None:
        raise UserError(
            "cannot open a shell: this host has neither bash nor sh on its PATH",
            f"bring one: kdelta shell KERNEL --file BUSYBOX:{SHELL}",
        )
    taken = {one.guest for one in files}
    found = dict.fromkeys(filter(None, map(shutil.which, _TOOLS.split())))
    tools = [JobFile(Path(path), path, 0o755) for path in found if path not in taken]
    return carry([program], [*files, *tools], arch)


def terminal_description(name: str) -> list[JobFile]:
    """Return the file that describes terminals of that name, if this host has it."""
    paths = (Path(folder, name[:1], name) for folder in _TERMINFO if name and "/" not in name)
    return [JobFile(path, str(path)) for path in paths if path.is_file()][:1]

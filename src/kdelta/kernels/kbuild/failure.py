# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that could not be made: why, derived from what patch, kconfig, compiler and linker
said.
"""

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import install_hint
from kdelta.host.files import is_full, os_failure
from kdelta.kernels.config.reasons import Refused
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus

_LINK_ERROR = (
    r"(?:undefined reference to|multiple definition of|undefined symbol|relocation truncated"
    r"|cannot find -l|ERROR: modpost:|section .* will not fit|ld(?:\.lld|\.bfd)?: error:"
    r"|ld: cannot find)"
)
_KILLED = (
    r"(?:Killed signal terminated program|internal compiler error: Killed|\*\*\* .* Error 137$"
    r"|\*\*\* \[.*\] Killed$|terminated by signal 9)"
)
_KINDS = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (_KILLED, "the compiler was killed: too little memory for so many at a time (-j)"),
        (r"^([^\s:]+:\d+)(?::\d+)?: (?:fatal )?error: (.*)", "{0}: {1}"),
        (r"^([^\s:]+:\d+): Error: (.*)", "{0}: {1}"),
        (r"\berror: objtool: ", "{line}"),
        (_LINK_ERROR, "linking failed: {line}"),
        # What a linker script asserts, for example; the first line about a function says where.
        (r"^\S*\bld(?:\.lld|\.bfd)?: (?!warning: |.*: in function )", "linking failed: {line}"),
        (r"\*\*\* (No rule to make target .*?)\.\s+Stop", "{0}"),
    )
)
"""What compiler, assembler, linker and make say when they fail, the likeliest cause first."""

_MAKE_ERROR = re.compile(r"\*\*\* (.*)")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_PROGRAM = re.compile(
    r"(?:^|: )([\w.+-]+): (?:(?:command )?not found|No such file or directory)$"
)
_NO_HEADER = re.compile(
    r"fatal error: '?([\w./-]+)'?(?:: No such file or directory| file not found)"
)
# What programs of the build's own include, by how it begins, and the Debian package that has it.
_HEADERS = {
    "elf.h": "libelf-dev",
    "gelf.h": "libelf-dev",
    "libelf.h": "libelf-dev",
    "openssl/": "libssl-dev",
}
# What a build may need of the host; another name may be a slip in what is built.
_PROGRAMS = {
    *("as", "bc", "bison", "bzip2", "cpio", "flex", "gawk", "gcc", "gzip", "ld", "ld.lld", "lz4"),
    *("lz4c", "lzma", "lzop", "m4", "openssl", "pahole", "perl", "python3", "rsync", "xz", "zstd"),
}


class NoKernel(msgspec.Struct, frozen=True):
    """A spec whose kernel could not be made: data, like a run that failed.

    `identity` is that of what was to be built; `log` the path of all that was printed, if anything
    was; `refused` the options that were asked for and not granted.
    """

    spec: str
    status: RunStatus
    identity: str
    detail: str
    log: str | None = None
    refused: tuple[Refused, ...] = ()

    @property
    def text(self) -> str:
        """Status and reason, and where the log is."""
        where = f" (log: {self.log})" if self.log else ""
        return f"{self.status.value}: {self.detail}{where}"


def lab_failure(lines: Sequence[str], out: Path) -> LabError | None:
    """What the lab lacks, if that is why a build in `out` failed; None if the kernel is why."""
    for line in lines:
        if full := next((number for number in _FULL if os.strerror(number) in line), None):
            return _full_disk(full, out)
        program, header = _NO_PROGRAM.search(line), _NO_HEADER.search(line)
        if program and program[1] in _PROGRAMS:
            return LabError(f"the program {program[1]} is missing", install_hint(program[1]))
        for start, package in _HEADERS.items():
            if header and header[1].startswith(start):
                return LabError(f"the header {header[1]} is missing", install_hint(package))
    return _full_disk(errno.ENOSPC, out) if is_full(out) else None


def _full_disk(number: int, out: Path) -> LabError:
    return os_failure(OSError(number, os.strerror(number)), "building in", out)


def first_error(lines: Sequence[str], tree: Path | None = None) -> str:
    """What went wrong first in a build, in a line: compiler, linker, missing file, or make. The
    names of files are relative to the tree.
    """
    # Compilers name files as they are given, and ccache gives them relative names.
    in_tree = re.compile("|".join(map(re.escape, [f"{tree}/", "../src/"] if tree else ["../src/"])))
    lines = [in_tree.sub("", line) for line in lines]
    for pattern, form in _KINDS:
        for line in lines:
            if found := pattern.search(line):
                return form.format(*found.groups(), line=line.strip())
    for at, line in enumerate(lines):
        if found := _MAKE_ERROR.search(line):
            # What failed said why just before, in words of its own.
            own = [before.strip() for before in lines[:at] if not before.startswith("make")]
            return f"{own[-1]} (make: {found[1]})" if own else f"make: {found[1]}"
    return lines[-1].strip() if lines else "make said nothing"

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

_COMPILE_ERROR = re.compile(r"^([^\s:]+:\d+)(?::\d+)?: (?:fatal )?error: (.*)")
_ASSEMBLER_ERROR = re.compile(r"^([^\s:]+:\d+): Error: (.*)")
_LINK_ERROR = re.compile(
    r"(undefined reference to|multiple definition of|undefined symbol|relocation truncated"
    r"|cannot find -l|ERROR: modpost:|section .* will not fit|ld(?:\.lld|\.bfd)?: error:"
    r"|ld: cannot find)"
)
# What a linker script asserts, for example; the first line about a function only says where.
_OTHER_LINK_ERROR = re.compile(r"^\S*\bld(?:\.lld|\.bfd)?: (?!warning: |.*: in function )")
_OBJTOOL = re.compile(r"\berror: objtool: ")
_KILLED = re.compile(
    r"(Killed signal terminated program|internal compiler error: Killed|\*\*\* .* Error 137$"
    r"|\*\*\* \[.*\] Killed$|terminated by signal 9)"
)
_NO_RULE = re.compile(r"\*\*\* (No rule to make target .*?)\.\s+Stop")
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
        for number in _FULL:
            if os.strerror(number) in line:
                return _full_disk(number, out)
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
    places = [f"{tree}/", "../src/"] if tree else ["../src/"]
    in_tree = re.compile("|".join(map(re.escape, places)))
    lines = [in_tree.sub("", line) for line in lines]
    kinds = (
        (_KILLED, "the compiler was killed: too little memory for so many at a time (-j)"),
        (_COMPILE_ERROR, "{0}: {1}"),
        (_ASSEMBLER_ERROR, "{0}: {1}"),
        (_OBJTOOL, "{line}"),
        (_LINK_ERROR, "linking failed: {line}"),
        (_OTHER_LINK_ERROR, "linking failed: {line}"),
        (_NO_RULE, "{0}"),
    )
    for pattern, form in kinds:
        for line in lines:
            if found := pattern.search(line):
                return form.format(*found.groups(), line=line.strip())
    for at, line in enumerate(lines):
        if found := _MAKE_ERROR.search(line):
            # What failed said why just before, in words of its own.
            own = [before.strip() for before in lines[:at] if not before.startswith("make")]
            return f"{own[-1]} (make: {found[1]})" if own else f"make: {found[1]}"
    return lines[-1].strip() if lines else "make said nothing"

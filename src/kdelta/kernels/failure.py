# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that could not be made: why, told from what patch, kconfig, compiler and linker said."""

import re
from collections.abc import Sequence

import msgspec

from kdelta.kernels.reasons import Refused
from kdelta.spec.run import RunStatus

_COMPILE_ERROR = re.compile(r"^(?:\.\./src/)?([^\s:]+:\d+)(?::\d+)?: (?:fatal )?error: (.*)")
_ASSEMBLER_ERROR = re.compile(r"^([^\s:]+:\d+): Error: (.*)")
_LINK_ERROR = re.compile(
    r"(undefined reference to|multiple definition of|undefined symbol|relocation truncated"
    r"|cannot find -l|ERROR: modpost:|section .* will not fit|ld(?:\.lld|\.bfd)?: error:"
    r"|ld: cannot find)"
)
_OBJTOOL = re.compile(r"\berror: objtool: ")
_KILLED = re.compile(r"(Killed signal terminated program|internal compiler error: Killed)")
_NO_RULE = re.compile(r"\*\*\* (No rule to make target .*?)\.\s+Stop")
_MAKE_ERROR = re.compile(r"\*\*\* (.*)")
NO_SPACE = "No space left on device"


class NoKernel(msgspec.Struct, frozen=True):
    """A spec whose kernel could not be made: data, like a run that failed.

    `identity` is that of what was to be built; `log` the path of all that was said, if anything
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


def first_error(lines: Sequence[str]) -> str:
    """What went wrong first in a build, in a line: compiler, linker, missing file, or make."""
    kinds = (
        (_KILLED, "the compiler was killed: too little memory for so many at a time (-j)"),
        (_COMPILE_ERROR, "{0}: {1}"),
        (_ASSEMBLER_ERROR, "{0}: {1}"),
        (_OBJTOOL, "{line}"),
        (_LINK_ERROR, "linking failed: {line}"),
        (_NO_RULE, "{0}"),
        (_MAKE_ERROR, "make: {0}"),
    )
    for pattern, form in kinds:
        for line in lines:
            if found := pattern.search(line):
                return form.format(*found.groups(), line=line.strip())
    return lines[-1].strip() if lines else "make said nothing"


def refused_text(refused: Sequence[Refused]) -> str:
    """The refused options in a line."""
    return "; ".join(str(one) for one in refused)

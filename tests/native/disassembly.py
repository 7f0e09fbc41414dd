# SPDX-License-Identifier: GPL-2.0-or-later
"""The marks that a compiled file holds, as objdump shows them."""

import re
import subprocess
from pathlib import Path

KINDS = {1: "arm", 2: "begin", 3: "iter", 4: "end", 5: "join", 6: "message", 7: "job", 8: "off"}
_MARK = re.compile(r"nopl\s+0x4b64000(\d)\(%rax\)")
_LOAD = re.compile(r"movzbl\s+0x4b641000\(%rax\),%ecx")
_LINE = re.compile(r"^\s*[0-9a-f]+:\t[0-9a-f ]+\t(.*)$")


def instructions(path: Path) -> list[str]:
    """The text of each instruction in all code sections, in order."""
    said = subprocess.run(
        ["objdump", "-d", "-w", path], capture_output=True, text=True, check=True
    ).stdout
    return [found[1].strip() for line in said.splitlines() if (found := _LINE.match(line))]


def mark(instruction: str) -> str | None:
    """Which mark an instruction is ("byte" for the tagged load), or None."""
    if found := _MARK.search(instruction):
        return KINDS[int(found[1])]
    return "byte" if _LOAD.search(instruction) else None


def marks(path: Path) -> list[str]:
    """The marks of a file, in the order in which they stand there."""
    return [found for text in instructions(path) if (found := mark(text))]

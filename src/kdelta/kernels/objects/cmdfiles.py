# SPDX-License-Identifier: GPL-2.0-or-later
"""kbuild's .NAME.cmd files: how each file of a build was made, and from what."""

import re
from pathlib import Path

import msgspec

from kdelta.host.files import lab_errors

# scripts/basic/fixdep.c writes them. The lists of headers make them 60 MB a kernel, so they are
# searched, never split into lines.
_OPTION = re.compile(rb"include/config/(\w+)\)")
_COMMAND = re.compile(rb"^(?:saved)?cmd_\S+ := (.*)$", re.MULTILINE)
_SOURCE = re.compile(rb"^source_\S+ := (\S+)$", re.MULTILINE)
_MEMBER_BYTES = 60  # of an archive's member header; ar(5)
_THIN = b"!<thin>\n"


class CmdFile(msgspec.Struct, frozen=True):
    """One .cmd file. `options` are those that fixdep found words of in the source and all its
    headers, whether they matter there or not. `source` is "" where there is none (a linked file).
    """

    command: str
    source: str
    options: frozenset[str]
    text: bytes

    def made_files(self, pattern: re.Pattern[bytes]) -> frozenset[str]:
        """What the pattern's first group matches in the list of files it was made from."""
        return frozenset(found.decode() for found in pattern.findall(self.text))


def parse_cmd(text: bytes) -> CmdFile:
    """A .cmd file's content; what it does not have is empty."""
    command, source = _COMMAND.search(text), _SOURCE.search(text)
    options = {f"CONFIG_{name.decode()}" for name in set(_OPTION.findall(text))}
    return CmdFile(
        command=command[1].decode("utf-8", "replace") if command else "",
        source=source[1].decode("utf-8", "replace") if source else "",
        options=frozenset(options),
        text=text,
    )


def cmd_path(target: Path) -> Path:
    """Where the .cmd file of a target is."""
    return target.with_name(f".{target.name}.cmd")


def read_cmd(target: Path) -> CmdFile | None:
    """The .cmd file of a target; None if it has none. LabError when it cannot be read."""
    path = cmd_path(target)
    if not path.is_file():
        return None
    with lab_errors("reading", path):
        return parse_cmd(path.read_bytes())


def thin_members(archive: Path) -> list[str] | None:
    """The files that a thin archive names, relative to its folder; None for any other file."""
    with lab_errors("reading", archive):
        content = archive.read_bytes()
    if not content.startswith(_THIN):
        return None
    names, found = b"", []
    at = len(_THIN)
    while at + _MEMBER_BYTES <= len(content):
        header = content[at : at + _MEMBER_BYTES]
        at += _MEMBER_BYTES
        name, size = header[:16].rstrip(), int(header[48:58])
        if name in (b"/", b"//", b"/SYM64/"):
            if name == b"//":
                names = content[at : at + size]
            at += size + size % 2
            continue
        if (at_name := re.match(rb"/(\d+)", name)) is not None:
            start = int(at_name[1])
            name = names[start : names.index(b"/\n", start)]
        found.append(name.rstrip(b"/").decode("utf-8", "replace"))
    return found

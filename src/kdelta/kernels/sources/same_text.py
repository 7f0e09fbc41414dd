# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether two versions of a source file are the same to a build, by their text alone: only comments
differ, or lines of a Makefile about objects that the config does not have.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from kdelta.kernels.config.kconfig import OFF, value_of

_TOKEN = re.compile(
    rb'(?P<text>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    rb"|(?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)"
    rb"|(?P<space>[ \t\f\v\r]+)"
    rb"|(?P<end>\n)"
    rb"|(?P<open>/\*|\")"
    rb"|(?P<lone>'[^\n]*)"
    rb"|(?P<other>[^\"'/ \t\f\v\r\n]+|.)",
    re.DOTALL,
)
# Behind a quotation mark alone, as in an assembler's comment, C and assembler disagree on what is a
# comment.
_GOES_ON = re.compile(rb"/\*|\\[ \t\r]*$")
# The two signs of a comment's begin or end may stand on two lines that are continued, and without a
# comment behind it a backslash continues a line.
_PARTED = re.compile(rb"[/*]\\[ \t\f\v\r]*\n|\\[ \t\f\v\r]*/[/*]")
_COMPILED = re.compile(r".+\.[chS]")
_MAKEFILE = re.compile(r"(?:.*/)?(?:Makefile|Kbuild)")
_LISTED = re.compile(r"([\w-]+)-\$[({](CONFIG_\w+)[)}]\s*[+:]?=[\w./+\s-]*")
_PARTS = re.compile(r"([\w-]+)-(?:y|objs)\s*[+:]?=")
_OPENED, _CLOSED = ("ifdef", "ifndef", "ifeq", "ifneq", "define"), ("endif", "endef")


def is_same(path: str, before: bytes, after: bytes, configs: Sequence[Mapping[str, str]]) -> bool:
    """Whether a build cannot tell the versions of a file apart, whose path is relative to the tree,
    with any of these configs. What is neither C, assembler nor a Makefile is the same if equal.

    Lines count, since code knows its line numbers: a comment that is longer is another text.
    """
    if before == after:
        return True
    if _COMPILED.fullmatch(path):
        lines = _code_lines(before)
        return lines is not None and lines == _code_lines(after)
    return _MAKEFILE.fullmatch(path) is not None and all(
        _rules(before, config) == _rules(after, config) for config in configs
    )


def _code_lines(text: bytes) -> list[bytes] | None:
    """The lines without comments, spaces in one width; None if a literal or comment stays open
    or it is unknown where one is.
    """
    if _PARTED.search(text):
        return None
    parts: list[bytes] = []
    for token in _TOKEN.finditer(text):
        kind, found = token.lastgroup, token[0]
        if kind == "open" or (kind == "lone" and _GOES_ON.search(found)):
            return None
        if kind == "comment":
            parts += [b" ", b"\n" * found.count(b"\n")]
        else:
            parts.append(b" " if kind == "space" else found)
    lines = list(_joined(parts))
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _joined(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Lines of parts; spaces are parts alone, of several side by side one stays."""
    held: list[bytes] = []
    for part in parts:
        if part == b" ":
            if held and held[-1] != b" ":
                held.append(part)
        elif part.strip(b"\n"):
            held.append(part)
        else:
            for _ in part:
                yield b"".join(held).removesuffix(b" ")
                held = []
    yield b"".join(held).removesuffix(b" ")


def _rules(text: bytes, config: Mapping[str, str]) -> list[str]:
    """The lines of a Makefile that a build with that config depends on."""
    lines = _makefile_lines(text.decode("utf-8", "surrogateescape"))
    # foo-n is looked at only to find out whether foo.o is made from parts: by others it is anyway.
    known = frozenset({"obj", "lib"}) | {
        found[1] for line, depth in lines if not depth and (found := _PARTS.match(line))
    }
    return [line for line, _ in lines if not _is_off(line, config, known)]


def _is_off(line: str, config: Mapping[str, str], known: frozenset[str]) -> bool:
    """Whether a line adds to a list that kbuild does not read with that config."""
    found = _LISTED.fullmatch(line)
    return found is not None and found[1] in known and value_of(config, found[2]) == OFF


def _makefile_lines(text: str) -> list[tuple[str, int]]:
    """Lines, continued ones as one, without those that are comments or empty; and how many
    conditions and definitions they stand in.
    """
    found: list[tuple[str, int]] = []
    held, depth, defined = "", 0, False
    for line in text.split("\n"):
        held += line
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        word = "" if held.startswith("\t") else held.split(None, 1)[0] if held.strip() else ""
        depth -= word in _CLOSED
        if defined or held.startswith("\t") or (word and not word.startswith("#")):
            found.append((held.rstrip(), depth))
        depth += word in _OPENED
        defined = word == "define" or (defined and word != "endef")
        held = ""
    return found

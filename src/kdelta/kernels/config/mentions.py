# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a tree's Makefiles and scripts mention an option, and what that reaches.

Linker scripts are not read here: the build writes down what they depend on, as for any other file
that it generates (kernels/objects/digest.py).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kdelta.host.files import lab_errors

EVERYTHING = ""

_OPTION = re.compile(r"\bCONFIG_\w+")
_WORD = re.compile(r"CONFIG_\w")
_CONDITION = re.compile(r"\s*(?:else\s+)?(ifdef|ifndef|ifeq|ifneq)\b")
_LIST = re.compile(r"\s*([\w./+-]+?)-(?:\$[({]CONFIG_\w+[)}]|y|m|n|objs)?\s*[:+?]?=\s*(.*)")
_OF_OBJECT = re.compile(r"\s*[A-Z_]+_([\w./+-]+\.o)\b")
_MEMBER = re.compile(r"[\w./+-]+(?:\.o|/)")
_NO_LIST = frozenset({
    "ccflags", "asflags", "ldflags", "rustflags", "subdir-ccflags", "subdir-asflags", "cflags",
    "aflags", "KBUILD_CFLAGS", "KBUILD_AFLAGS", "hostprogs", "userprogs", "always", "extra",
    "targets", "clean",
})  # fmt: skip
_LEFT_OUT = frozenset({
    "Documentation", "tools", "samples", "debian", "rust", "scripts", "arch",
})  # fmt: skip
_SCRIPTS = (
    "scripts/Makefile*", "scripts/Kbuild.include", "scripts/*.sh", "scripts/*.c", "scripts/*.h",
    "scripts/*.awk", "scripts/recordmcount.pl", "scripts/mod/*.[ch]", "scripts/mod/Makefile",
)  # fmt: skip
_ONLY_LOOK = frozenset({
    "checksyscalls.sh", "tags.sh", "headers_install.sh", "check_extable.sh", "Makefile.modinst",
    "Makefile.dtbinst", "Makefile.extrawarn",
})  # fmt: skip
"""Scripts that make nothing of a kernel: they warn, search or install."""

_GENERATES = "include/generated"
"""In a Makefile's text: it may make headers for others."""

_AROUND = ("boot/", "um/")
"""Below an architecture's folder: what is wrapped around the kernel, and another architecture."""


class Mention(msgspec.Struct, frozen=True):
    """One place ("kernel/Makefile:14") that looks at an option, and what it can change.

    `reaches` is an object ("kernel/fork.o"), a folder and all below it ("kernel/"), or "" for
    everything. `lists`: objects come and go with the option; otherwise they are only made again.
    """

    place: str
    reaches: str
    lists: bool = False

    def covers(self, path: str) -> bool:
        """Whether it can change that object."""
        if self.reaches.endswith("/") or self.reaches == EVERYTHING:
            return path.startswith(self.reaches)
        return path == self.reaches


class Mentions(msgspec.Struct, frozen=True):
    """Mentions by option ("CONFIG_X")."""

    by_option: dict[str, tuple[Mention, ...]]


def find_mentions(tree: Path, arch: str = "x86") -> Mentions:
    """Reads a tree's build files, in about a second for a whole kernel; LabError when they cannot
    be read.

    arch: the folder below arch/ that is built. Whatever is not understood as a list of objects, or
    as a setting for one object, reaches everything below its folder.
    """
    found: dict[str, dict[Mention, None]] = {}
    with lab_errors("reading", tree):
        for path in _makefiles(tree, arch):
            name = str(path.relative_to(tree))
            text = path.read_text("utf-8", "replace")
            if _WORD.search(text):
                for option, mention in _Makefile(name, arch).mentions(text):
                    found.setdefault(option, {})[mention] = None
        for pattern in _SCRIPTS:
            for path in sorted(tree.glob(pattern)):
                if path.is_file() and path.name not in _ONLY_LOOK:
                    _add_script(found, str(path.relative_to(tree)), path)
    return Mentions({option: tuple(places) for option, places in sorted(found.items())})


def _makefiles(tree: Path, arch: str) -> Iterator[Path]:
    """All Makefiles and Kbuild files of what is built for that architecture."""
    paths = sorted(tree.iterdir())
    yield from filter(_is_makefile, paths)
    folders = [path for path in paths if path.is_dir() and path.name not in _LEFT_OUT]
    for folder in [*folders, tree / "arch" / arch]:
        if folder.name[:1] != ".":
            yield from filter(_is_makefile, sorted(folder.rglob("*")))


def _is_makefile(path: Path) -> bool:
    return path.name.startswith(("Makefile", "Kbuild")) and path.is_file()


def _add_script(found: dict[str, dict[Mention, None]], name: str, path: Path) -> None:
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        for option in _OPTION.findall(line):
            found.setdefault(option, {})[Mention(f"{name}:{number}", EVERYTHING)] = None


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, those continued with a backslash as one, by their first's number."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        held += line
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        yield first, held.partition("#")[0]
        held, first = "", 0
    if held:
        yield first, held.partition("#")[0]


class _Makefile:
    """One Makefile, read as kbuild's are written."""

    def __init__(self, name: str, arch: str) -> None:
        self.name = name
        folder = name.rpartition("/")[0]
        # The architecture's Makefile is included by the top one: what it sets holds everywhere.
        self.is_top = folder in ("", f"arch/{arch}") and not name.endswith("Kbuild")
        self.folder = f"{folder}/" if folder and not self.is_top else ""
        self.around = tuple(f"arch/{arch}/{below}" for below in _AROUND)
        self.parts: dict[str, list[str]] = {}
        self.generates = False

    def mentions(self, text: str) -> Iterator[tuple[str, Mention]]:
        """Each option with a place that looks at it."""
        if self.folder.startswith(self.around):
            return
        self.generates = _GENERATES in text or "/include/" in self.folder
        lines = list(_joined(text))
        for _, line in lines:
            self._note_parts(line)
        conditions: list[set[str]] = []
        for number, line in lines:
            word = line.split(None, 1)[0] if line.strip() else ""
            if _CONDITION.match(line) or word in ("else", "endif"):
                self._condition(line, word, conditions)
                continue
            options = set(_OPTION.findall(line)).union(*conditions)
            if not options or not word:
                continue
            for reaches, lists in self._reached(line):
                mention = Mention(f"{self.name}:{number}", reaches, lists)
                yield from ((option, mention) for option in sorted(options))

    def _condition(self, line: str, word: str, conditions: list[set[str]]) -> None:
        """Keeps track of the options that the lines inside depend on."""
        options = set(_OPTION.findall(line))
        if word not in ("else", "endif"):
            conditions.append(options)
        elif conditions and word == "endif":
            conditions.pop()
        elif conditions:
            conditions[-1] |= options

    def _note_parts(self, line: str) -> None:
        """Remembers what an object is made from: foo-y := a.o b.o."""
        if (found := _LIST.fullmatch(line)) and found[1] not in ("obj", "lib"):
            parts = [word for word in found[2].split() if _MEMBER.fullmatch(word)]
            self.parts.setdefault(f"{found[1]}.o", []).extend(parts)

    def _reached(self, line: str) -> list[tuple[str, bool]]:
        """What a line can change, and whether it lists objects."""
        if (found := _LIST.fullmatch(line)) and found[1] not in _NO_LIST:
            words = found[2].split()
            if all(_MEMBER.fullmatch(word) for word in words) and not line.startswith("\t"):
                members = dict.fromkeys(member for word in words for member in self._members(word))
                return [(self.folder + member, True) for member in members]
        if found := _OF_OBJECT.match(line):
            return [(self.folder + found[1], False)]
        return [(EVERYTHING if self.generates else self.folder, ".o" in line)]

    def _members(self, word: str, depth: int = 0) -> list[str]:
        inner = self.parts.get(word, []) if depth < 3 else []
        return [word, *(member for part in inner for member in self._members(part, depth + 1))]

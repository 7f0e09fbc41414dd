# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files of the source tree each object of a finished build was made from.

kbuild's .cmd files name every header of an object, generated ones among them. Those are followed:
to the files that their own .cmd file names, its programs included, or, where they have none, to
what 6.12's Makefiles make them from.
"""

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

import msgspec

from kdelta.host.files import lab_errors, write_atomic
from kdelta.kernels.objects.cmdfiles import CmdFile, cmd_path, read_cmd
from kdelta.kernels.objects.digest import Digest
from kdelta.spec.errors import LabError

FORMAT = 1
_LEVEL = 6

_DEPS = re.compile(rb"^deps_\S+ := \\\n", re.MULTILINE)
_WORDS = re.compile(r"[\s;|()'\"<>,=]+")
_WRAPPER = re.compile(rb"\s*(?:#include <asm-generic/[\w./-]+>\s*)+")
_BOOT = re.compile(r"arch/\w+/boot/")

_MADE_FROM: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), tuple(files.split()))
    for pattern, files in (
        (r"include/generated/(autoconf\.h|rustc_cfg)", ""),
        (r"include/generated/(compile|package|utsrelease|utsversion)\.h", "Makefile"),
        (r"include/generated/uapi/linux/version\.h|init/utsversion-tmp\.h", "Makefile"),
        (r"include/generated/asm-offsets\.h", "arch/*/kernel/asm-offsets.s"),
        (r"include/generated/bounds\.h", "kernel/bounds.s"),
        (r"include/generated/rq-offsets\.h", "kernel/sched/rq-offsets.s"),
        (r"include/generated/timeconst\.h", "kernel/time/timeconst.bc"),
        (r"scripts/mod/devicetable-offsets\.h", ""),  # for modules' aliases, which modprobe reads
        (r"(.+)\.asn1\.[ch]", r"\1.asn1 scripts/asn1_compiler"),
        (r"lib/(crc\d+)table\.h", r"lib/gen_\1table"),
        (r"arch/x86/lib/inat-tables\.c",
         "arch/x86/lib/x86-opcode-map.txt arch/x86/tools/gen-insn-attr-x86.awk"),
        (r"drivers/tty/vt/defkeymap\.c", "drivers/tty/vt/defkeymap.map"),
        (r"drivers/tty/vt/consolemap_deftbl\.c",
         "drivers/tty/vt/cp437.uni drivers/tty/vt/conmakehash"),
    )
)  # fmt: skip
"""What generated files without a .cmd file are made from, besides the config and Makefiles: the
Makefiles of those folders, top-level Kbuild and Makefile, 6.12.
"""


class Dependencies(msgspec.Struct, frozen=True):
    """What a build was made from. Paths of files are relative to the source tree.

    objects    for each object of the digest, all files that it was made from, whether directly or
               by way of generated files
    generated  the same for the generated files that these use, linker scripts included
    unknown    those generated files of which not all is known
    tools      the files of programs that the build ran, other than those that made `generated`;
               a path that ends in a slash stands for the folder and all below it
    parsed     files that scripts read, which may look into comments (mkcapflags.sh does)
    """

    objects: Mapping[str, frozenset[str]]
    generated: Mapping[str, frozenset[str]]
    unknown: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    parsed: frozenset[str] = frozenset()


def dependencies_of(out: Path, digest: Digest, *, boot: bool = True) -> Dependencies:
    """What the objects and generated files of a finished build's digest were made from.

    boot: whether what unpacks a bzImage is executed; a vmlinux boots without. LabError when the
    folder cannot be read.
    """
    with lab_errors("reading", out):
        return _Walk(out).dependencies(digest, boot=boot)


class _StoredFiles(msgspec.Struct):
    objects: dict[str, list[int]]
    generated: dict[str, list[int]]
    tools: list[int]
    unknown: list[str]
    files: list[str]
    parsed: list[int] = []
    format: int = FORMAT


def _words(cmd: CmdFile) -> frozenset[bytes]:
    """The words of a .cmd file's list of dependencies, options' names among them."""
    if (deps := _DEPS.search(cmd.text)) is None:
        return frozenset()
    return frozenset(cmd.text[deps.end() : cmd.text.find(b"\n\n", deps.end())].split())


class _Read(msgspec.Struct, frozen=True):
    """What a file is made from at once: files of the tree, and files of the output folder."""

    sources: frozenset[str]
    made: frozenset[str]
    is_known: bool = True


class _Walk:
    """A build's files, each read once."""

    def __init__(self, out: Path) -> None:
        self.out = out.resolve()
        link = out / "source"
        trees = {str(self.out)}
        if link.is_symlink():
            trees = {str(link.resolve()), os.path.normpath(out / link.readlink())}
        self.tree = Path(min(trees))
        self.roots = [f"{tree}/" for tree in sorted(trees - {str(self.out)})]
        self.unknown: set[str] = set()
        self.parsed: set[str] = set()
        self._places: dict[bytes, tuple[str, bool] | None] = {}
        self._reads: dict[str, _Read] = {}
        self._closures: dict[str, frozenset[str]] = {}
        self._followed: set[str] = set()

    def dependencies(self, digest: Digest, *, boot: bool) -> Dependencies:
        reads = {}
        made = set(digest.generated)
        for path, thing in digest.objects.items():
            read = self._read(path)
            # Some are named by other means than kbuild's lists: .incbin.
            reads[path] = msgspec.structs.replace(read, made=read.made | thing.generated)
            made |= reads[path].made
        return Dependencies(
            objects={path: self._whole(read) for path, read in reads.items()},
            generated={path: self._closure(path) for path in sorted(made)},
            tools=frozenset().union(*self._tools(boot=boot)),
            unknown=frozenset(self.unknown & made),
            parsed=frozenset(self.parsed),
        )

    def _whole(self, read: _Read) -> frozenset[str]:
        return read.sources.union(*(self._closure(path) for path in read.made))

    def _closure(self, target: str) -> frozenset[str]:
        """All files of the tree that a file of the output folder is made from."""
        if target not in self._closures:
            seen, pending = {target}, [target]
            found: set[str] = set()
            while pending:
                read = self._read(pending.pop())
                found |= read.sources
                if not read.is_known:
                    self.unknown.add(target)
                pending += read.made - seen
                seen |= read.made
            self._followed |= seen
            self._closures[target] = frozenset(found)
        return self._closures[target]

    def _read(self, target: str) -> _Read:
        if target not in self._reads:
            cmd = read_cmd(self.out / target)
            self._reads[target] = self._without(target) if cmd is None else self._from(target, cmd)
        return self._reads[target]

    def _from(self, target: str, cmd: CmdFile) -> _Read:
        # What is compiled names its files; of others the command does.
        named = [cmd.source] if cmd.source else _WORDS.split(cmd.command)
        read = self._sorted([*_words(cmd), *(word.encode() for word in named if word)], target)
        if not cmd.source:
            self.parsed |= read.sources
        return read

    def _sorted(self, words: Iterable[bytes], target: str) -> _Read:
        sources: set[str] = set()
        made: set[str] = set()
        for word in words:
            if word not in self._places:
                self._places[word] = self._place(word.decode("utf-8", "replace"))
            place = self._places[word]
            if place is not None and place[0] != target:
                (made if place[1] else sources).add(place[0])
        return _Read(frozenset(sources), frozenset(made))

    def _place(self, word: str) -> tuple[str, bool] | None:
        """A file's path, and whether the build made it; None for what is of neither folder."""
        if word.startswith(("-", "$(", "include/config/")) or word == "\\":
            return None
        path = os.path.normpath(self.out / word)
        for root in self.roots:
            if path.startswith(root):
                return None if Path(path).is_dir() else (path.removeprefix(root), False)
        if not path.startswith(f"{self.out}/") or not Path(path).is_file():
            return None
        below = path.removeprefix(f"{self.out}/")
        is_made = bool(self.roots) or "/generated/" in below or cmd_path(Path(path)).is_file()
        return below, is_made

    def _without(self, target: str) -> _Read:
        """What a file without a .cmd file is made from."""
        for pattern, templates in _MADE_FROM:
            if match := pattern.fullmatch(target):
                files = [self._matches(match.expand(template)) for template in templates]
                words = [str(file).encode() for found in files for file in found]
                read = self._sorted(words, target)
                self.parsed |= read.sources - {"Makefile"}
                return msgspec.structs.replace(read, is_known=all(files))
        path = self.out / target
        is_known = not path.is_file() or bool(_WRAPPER.fullmatch(path.read_bytes()))
        return _Read(frozenset(), frozenset(), is_known)

    def _matches(self, pattern: str) -> list[Path]:
        """A file of the output folder, or else of the tree."""
        found = sorted(path for path in self.out.glob(pattern) if cmd_path(path).is_file())
        return found or sorted(self.tree.glob(pattern))

    def _tools(self, *, boot: bool) -> Iterator[frozenset[str]]:
        """The files of host programs."""
        for path in sorted(self.out.rglob(".*.cmd")):
            target = str(path.relative_to(self.out).with_name(path.name[1:-4]))
            is_boot = bool(_BOOT.match(target))
            # A program that made known files only is known by them.
            is_known = target in self._followed and not target.startswith(("scripts/", "tools/"))
            if is_known or (is_boot and not boot):
                continue
            cmd = read_cmd(self.out / target)
            if cmd is not None and cmd.source and (is_boot or "-D__KERNEL__" not in cmd.command):
                yield self._whole(self._read(target))
                yield frozenset(self._folders(target))

    def _folders(self, target: str) -> Iterator[str]:
        """What a program of tools/ is made from, whose .cmd files name files as seen from there."""
        if not target.startswith("tools/"):
            return
        folders = [str(path) for path in Path(target).parents if (self.tree / path).is_dir()]
        program = "/".join(folders[0].split("/")[: 3 if "/bpf/" in folders[0] else 2])
        yield from (f"{program}/", "tools/build/", "tools/include/", "tools/scripts/")
        yield from (f"tools/lib/{library}/" for library in re.findall(r"/lib(\w+)(?=/)", target))
        yield from (f"tools/arch/{path.name}/" for path in self.out.glob("arch/*"))
        cmd = read_cmd(self.out / target)
        source = os.path.normpath(f"{program}/{cmd.source}") if cmd else ""
        if source.startswith("tools/"):
            yield source


def save_dependencies(found: Dependencies, path: Path) -> None:
    """Writes them compressed, whole or not at all; LabError when it cannot be written."""
    numbers: dict[str, int] = {}

    def stored(files: frozenset[str]) -> list[int]:
        """Each file as its number's distance from the one before: most come in runs."""
        rows = sorted(numbers.setdefault(file, len(numbers)) for file in sorted(files))
        return [row - before for before, row in zip([0, *rows], rows, strict=False)]

    content = _StoredFiles(
        objects={path: stored(files) for path, files in found.objects.items()},
        generated={path: stored(files) for path, files in found.generated.items()},
        tools=stored(found.tools),
        unknown=sorted(found.unknown),
        parsed=stored(found.parsed),
        files=[],
    )
    content.files = list(numbers)
    write_atomic(path, gzip.compress(msgspec.json.encode(content), _LEVEL, mtime=0))


def load_dependencies(path: Path) -> Dependencies:
    """Reads them; LabError for a damaged file, or one of another version of kdelta."""
    with lab_errors("reading", path):
        content = path.read_bytes()
    try:
        stored = msgspec.json.decode(gzip.decompress(content), type=_StoredFiles)
        if stored.format != FORMAT:
            raise msgspec.ValidationError(f"it has format {stored.format}, not {FORMAT}")
        return _restored(stored)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, IndexError) as error:
        again = f"remove {path.parent} and build that kernel again"
        raise LabError(f"the list of files {path} cannot be used: {error}", again) from error


def _restored(stored: _StoredFiles) -> Dependencies:
    def files(gaps: list[int]) -> frozenset[str]:
        return frozenset(stored.files[row] for row in accumulate(gaps))

    return Dependencies(
        objects={path: files(gaps) for path, gaps in stored.objects.items()},
        generated={path: files(gaps) for path, gaps in stored.generated.items()},
        tools=files(stored.tools),
        unknown=frozenset(stored.unknown),
        parsed=files(stored.parsed),
    )

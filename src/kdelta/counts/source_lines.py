# SPDX-License-Identifier: GPL-2.0-or-later
"""Which line of which source an instruction is from, as far as debug info shows: by addr2line."""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.host.command import run_program
from kdelta.host.emulator import binutils_command
from kdelta.host.files import lab_errors
from kdelta.host.lock import work_folder
from kdelta.host.target import target
from kdelta.spec.errors import LabError

_LINE_TABLES = (".debug_line", ".zdebug_line")
_PLACE = re.compile(r"^(.*):(\d+|\?)(?: \(discriminator \d+\))?$")
_A_CALL = 200_000


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """A function as the source names it, and a line of it: `file` below its source tree if that is
    known, else as the compiler was given.
    """

    function: str
    file: str
    line: int


class SourceLines(msgspec.Struct, frozen=True):
    """The lines of instructions: (origin, address as in AddressCosts) -> frames, innermost first.
    All but the last one were inlined into the one after them; the last one is the function that the
    code was compiled as. What is not in it is not known.
    """

    frames: Mapping[tuple[str, int], tuple[Frame, ...]] = {}

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.frames)

    def at(self, origin: str, address: int) -> tuple[Frame, ...]:
        """The frames of an instruction; none if nothing is known of it."""
        return self.frames.get((origin, address), ())

    def line(self, origin: str, address: int) -> tuple[str, int] | None:
        """File and line of an instruction."""
        found = self.at(origin, address)
        return (found[0].file, found[0].line) if found else None


class DebugFile(msgspec.Struct, frozen=True):
    """A file with debug info, perhaps. roots: source trees, below which files are named. symbols:
    of a module, where the kernel put its functions: without them, addresses are the file's own.
    """

    path: Path
    roots: tuple[str, ...] = ()
    symbols: Mapping[str, int] = {}


def has_debug_info(path: Path) -> bool:
    """Whether a file is an ELF file with tables of lines."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            return any(elf.get_section_by_name(name) is not None for name in _LINE_TABLES)
    except (OSError, ELFError, ValueError):
        return False


def read_source_lines(
    wanted: Mapping[str, Iterable[int]], files: Mapping[str, DebugFile], arch: str
) -> SourceLines:
    """The lines of addresses by origin. Origins without a file, and files without debug info, have
    none. LabError when addr2line is missing, or fails.
    """
    found: dict[tuple[str, int], tuple[Frame, ...]] = {}
    for origin, addresses in wanted.items():
        file = files.get(origin)
        if file is None or not has_debug_info(file.path):
            continue
        for section, base, asked in _by_section(file, sorted(set(addresses))):
            for start in range(0, len(asked), _A_CALL):
                part = asked[start : start + _A_CALL]
                rows = _addr2line(file.path, section, [one - base for one in part], arch)
                for address, row in zip(part, rows, strict=True):
                    if frames := tuple(_known(row, file.roots)):
                        found[origin, address] = frames
    return SourceLines(found)


def _by_section(
    file: DebugFile, addresses: Sequence[int]
) -> Iterator[tuple[str, int, Sequence[int]]]:
    """The addresses by section of a file that is yet to be linked, and where each section is."""
    if not file.symbols:
        yield "", 0, addresses
        return
    for name, start, size in sorted(_loaded(file.path.read_bytes(), file.symbols)):
        held = [address for address in addresses if start <= address < start + size]
        if held:
            yield name, start, held


def _loaded(content: bytes, symbols: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Where the sections of a module are: name, address, bytes. The symbols tell it of which that
    name is the only one.
    """
    elf = ELFFile(io.BytesIO(content))
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return
    known = [
        (symbol.name, symbol["st_shndx"], int(symbol["st_value"]))
        for symbol in table.iter_symbols()
        if isinstance(symbol["st_shndx"], int)
    ]
    names = [name for name, _, _ in known]
    seen: set[int] = set()
    for name, section, value in known:
        if name in symbols and section not in seen and names.count(name) == 1:
            seen.add(section)
            of = elf.get_section(section)
            yield of.name, symbols[name] - value, int(of["sh_size"])


def _addr2line(path: Path, section: str, addresses: Sequence[int], arch: str) -> list[list[Frame]]:
    """The frames of each address. Those without any have one of unknown names."""
    tool = binutils_command(target(arch), "addr2line")
    with work_folder() as folder:
        asked = folder / "addresses"
        with lab_errors("writing", asked):
            asked.write_text("".join(f"0x{address:x}\n" for address in addresses))
        in_section = ["-j", section] if section else []
        said = run_program([*tool, "-a", "-f", "-i", "-e", path, *in_section, f"@{asked}"])
    rows = _parsed(said.stdout)
    if not said.ok or len(rows) != len(addresses):
        raise LabError(f"{tool[-1]} cannot read {path}: {said.last_words(1)}")
    return rows


def _parsed(text: str) -> list[list[Frame]]:
    """Of each address a line with it, then of each frame a line with its function and one with its
    place.
    """
    rows: list[list[Frame]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            rows.append([])
        elif rows:
            place = _PLACE.match(next(lines, ""))
            number = int(place[2]) if place and place[2].isdigit() else 0
            rows[-1].append(Frame(line, place[1] if place else "??", number))
    return rows


def _known(frames: Iterable[Frame], roots: Sequence[str]) -> Iterator[Frame]:
    for frame in frames:
        if frame.file not in ("??", "") and frame.line:
            yield Frame(frame.function, _below(frame.file, roots), frame.line)


def _below(file: str, roots: Sequence[str]) -> str:
    """The path below the root that it is in."""
    path = os.path.normpath(file)
    for root in roots:
        if path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) + 1 :]
    return path

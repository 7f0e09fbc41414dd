# SPDX-License-Identifier: GPL-2.0-or-later
"""Static programs that were relinked: where a trace's blocks lie, and where each link puts them.

A program is linked to its addresses, so a trace of one link knows them. Functions move from link to
link and nothing inside of them does, but for the fields that name other functions.
"""

import io
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.counts.arrays import U32, U64, Flags
from kdelta.counts.trace import Trace
from kdelta.replay.simulate import PlacedBlocks
from kdelta.spec.errors import LabError, UserError

REST = "[rest]"
"""What is not of the program: the kernel, interrupts. It stays where it was."""

_IN_MEMORY, _EXECUTABLE = 2, 4  # SHF_ALLOC, SHF_EXECINSTR
_FIELD_BYTES = 4
_MAY_BE_NAMELESS = 0.01
"""Of a program's executed blocks; a startup file without symbols has a few."""


class ProgramText(msgspec.Struct, frozen=True, eq=False):
    """The code of a static ELF program.

    starts, sizes: (n_functions,) by address, of each function the first of its names. names: of all
    functions, aliases too, name -> address; of several functions of one name the second in the
    order of the symbol table is name#2. sections: of executable code, (start, content); data: the
    others in memory, (name, start, bytes). machine: as ELF names it.
    """

    name: str
    machine: str
    labels: tuple[str, ...]
    starts: U64
    sizes: U64
    names: dict[str, int]
    sections: tuple[tuple[int, bytes], ...]
    data: tuple[tuple[str, int, int], ...] = ()

    def content(self, index: int) -> bytes:
        """The bytes of a function."""
        start, size = int(self.starts[index]), int(self.sizes[index])
        for begin, data in self.sections:
            if begin <= start < begin + len(data):
                return data[start - begin : start - begin + size]
        return b""

    def place(self, address: int) -> tuple[str, int] | None:
        """The function or the section of data that an address is in, and how far; None for what is
        in neither. The order of a table of addresses (.got) may be another in each link.
        """
        for name, begin, size in self.data:
            if begin <= address <= begin + size:
                return name, 0 if name.startswith(".got") else address - begin
        if not any(begin <= address < begin + len(data) for begin, data in self.sections):
            return None
        index = int(np.searchsorted(self.starts, np.uint64(address), side="right")) - 1
        return self.labels[index], address - int(self.starts[index])


class ProgramPlacement(msgspec.Struct, frozen=True, eq=False):
    """Where the blocks of a program's trace lie: `placed`, of functions `labels` (the last one is
    REST), which the traced link has at `starts` (n_functions,). executed (n_functions,): bool.
    """

    placed: PlacedBlocks
    labels: tuple[str, ...]
    starts: U64
    executed: Flags


def program_text(name: str, content: bytes) -> ProgramText:
    """The functions of a program; UserError for what is no static program with symbols."""
    try:
        elf = ELFFile(io.BytesIO(content))
        if elf["e_type"] != "ET_EXEC":
            raise UserError(
                f"{name} may be loaded anywhere: its addresses are not known",
                "link it with -static and -no-pie",
            )
        in_memory = {
            index: section
            for index, section in enumerate(elf.iter_sections())
            if section["sh_flags"] & _IN_MEMORY and section["sh_size"]
        }
        code = {i: s for i, s in in_memory.items() if s["sh_flags"] & _EXECUTABLE}
        data = tuple(
            (s.name, int(s["sh_addr"]), int(s["sh_size"]))
            for i, s in in_memory.items()
            if i not in code
        )
        sections = tuple((int(s["sh_addr"]), bytes(s.data())) for s in code.values())
        rows = [(f"[{s.name}]", int(s["sh_addr"]), 0) for s in code.values()]
        symtab = elf.get_section_by_name(".symtab")
        if not isinstance(symtab, SymbolTableSection):
            raise UserError(f"{name} has no symbols", "link it without -s, and do not strip it")
        rows += _symbols(symtab, code.keys(), thumb=elf["e_machine"] == "EM_ARM")
        text = _text(name, str(elf["e_machine"]), rows, sections)
        return msgspec.structs.replace(text, data=data)
    except (ELFError, KeyError, ValueError) as error:
        raise UserError(f"{name} is no ELF program that can be read: {error}") from error


def _symbols(
    symtab: SymbolTableSection, sections: Collection[int], *, thumb: bool
) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    seen: Counter[str] = Counter()
    for symbol in symtab.iter_symbols():
        kind = symbol["st_info"]["type"]
        if kind not in {"STT_FUNC", "STT_NOTYPE", "STT_GNU_IFUNC", "STT_LOOS"} or not symbol.name:
            continue
        if symbol["st_shndx"] not in sections or symbol.name.startswith("$"):
            continue
        seen[symbol.name] += 1
        number = seen[symbol.name]
        label = symbol.name if number == 1 else f"{symbol.name}#{number}"
        address = int(symbol["st_value"]) & (~1 if thumb else ~0)
        found.append((label, address, int(symbol["st_size"])))
    return found


def _text(
    name: str,
    machine: str,
    rows: Sequence[tuple[str, int, int]],
    sections: tuple[tuple[int, bytes], ...],
) -> ProgramText:
    best: dict[int, tuple[str, int]] = {}
    for label, address, size in rows:
        known = best.get(address)
        # A sized name rather than a label, and whatever rather than the section itself.
        if known is None or (size > 0) > (known[1] > 0) or known[0].startswith("["):
            best[address] = (label, size)
    order = sorted(best)
    ends = [*order[1:], 0]
    sizes = []
    for address, following in zip(order, ends, strict=True):
        end = next((b + len(d) for b, d in sections if b <= address < b + len(d)), address)
        most = min(end, following) if following > address else end
        size = best[address][1]
        sizes.append(min(size, most - address) if size else most - address)
    return ProgramText(
        name=name,
        machine=machine,
        labels=tuple(best[address][0] for address in order),
        starts=np.array(order, dtype=np.uint64),
        sizes=np.array(sizes, dtype=np.uint64),
        names={label: address for label, address, _ in rows},
        sections=sections,
    )


def placed_program(trace: Trace, text: ProgramText) -> ProgramPlacement:
    """Where the blocks of the trace of that very link lie. LabError if the trace is of another
    program.
    """
    address = trace.addresses.astype(np.uint64)
    mine = np.zeros(len(address), dtype=bool)
    for begin, data in text.sections:
        mine |= (address >= np.uint64(begin)) & (address < np.uint64(begin + len(data)))
    known = np.maximum(np.searchsorted(text.starts, address, side="right").astype(np.int64) - 1, 0)
    outside = mine & (address >= text.starts[known] + np.maximum(text.sizes[known], 1))
    if not mine.any() or np.count_nonzero(outside) > max(2, _MAY_BE_NAMELESS * mine.sum()):
        raise LabError(
            f"the trace of region {trace.region} is not of {text.name}: "
            f"{np.count_nonzero(outside)} of {np.count_nonzero(mine)} blocks are in no function",
            "make the run again with --again",
        )
    rest = len(text.starts)
    function: U32 = np.where(mine, known, rest).astype(np.uint32)
    starts: U64 = np.append(text.starts, np.uint64(0))
    executed = np.zeros(rest + 1, dtype=bool)
    executed[function] = True
    return ProgramPlacement(
        placed=PlacedBlocks(function, address - starts[function]),
        labels=(*text.labels, REST),
        starts=starts,
        executed=executed,
    )


def program_layouts(
    placement: ProgramPlacement, base: ProgramText, links: Sequence[ProgramText]
) -> U64:
    """The addresses of the functions in each link: (n_links, n_functions). UserError unless all
    that was executed is the same code in each link.
    """
    found = np.tile(placement.starts, (len(links), 1))
    for row, link in enumerate(links):
        for index, label in enumerate(base.labels):
            address = link.names.get(label)
            if address is not None:
                found[row, index] = address
            elif placement.executed[index]:
                raise _differs(link, f"it has no {label}")
        _require_same_code(placement, base, link)
    return found


def _require_same_code(placement: ProgramPlacement, base: ProgramText, link: ProgramText) -> None:
    at = {int(start): index for index, start in enumerate(link.starts)}
    for index in np.flatnonzero(placement.executed[:-1]).tolist():
        label = base.labels[index]
        other = at.get(link.names[label])
        if other is None:
            raise _differs(link, f"{label} is not where its symbol is")
        one, two = base.content(index), link.content(other)
        if label.startswith("["):  # a whole section's start, of which only stubs have no names
            continue
        if len(one) != len(two):
            raise _differs(link, f"{label} has {len(two)} bytes instead of {len(one)}")
        if one != two and base.machine == "EM_X86_64":
            where = (int(base.starts[index]), int(link.starts[other]))
            wrong = _unexplained(base, link, where, (one, two))
            if wrong is not None:
                raise _differs(link, f"{label} has other bytes at offset {wrong}")


def _unexplained(
    base: ProgramText, link: ProgramText, starts: tuple[int, int], contents: tuple[bytes, bytes]
) -> int | None:
    """The first offset at which two links of a function differ by more than where they point."""
    one, two = (np.frombuffer(content, np.uint8) for content in contents)
    differing = np.flatnonzero(one != two).tolist()
    done = -1
    for at in differing:
        if at <= done:
            continue
        for field in range(max(0, at - _FIELD_BYTES + 1), at + 1):
            if field > done and _same_target(base, link, starts, contents, field):
                done = field + _FIELD_BYTES - 1
                break
        else:
            return int(at)
    return None


def _same_target(
    base: ProgramText,
    link: ProgramText,
    starts: tuple[int, int],
    contents: tuple[bytes, bytes],
    field: int,
) -> bool:
    """Whether the field there is the address, or the distance, of one thing in both links."""
    if field + _FIELD_BYTES > len(contents[0]):
        return False
    values = [
        int.from_bytes(content[field : field + _FIELD_BYTES], "little", signed=True)
        for content in contents
    ]
    relative = [
        start + field + _FIELD_BYTES + value for start, value in zip(starts, values, strict=True)
    ]
    if relative == [0, 0]:  # an undefined weak symbol, or what no table of jumps uses
        return True
    for first, second in (relative, values):
        place = base.place(first) if first > 0 else None
        if place is not None and second > 0 and place == link.place(second):
            return True
    return False


def _differs(link: ProgramText, why: str) -> UserError:
    return UserError(
        f"{link.name} is no relink of the program that was traced: {why}",
        "link the very same objects in another order, and change nothing else",
    )

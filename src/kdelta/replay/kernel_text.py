# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's text by its symbols: functions with their sizes, and what of it a relink can move.

The order within .text is that of include/asm-generic/vmlinux.lds.h (6.12): head, hot, main,
unlikely, and then sections between boundary symbols, __noinstr_text_start and so on.
"""

import bisect
import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.by_key import by_key
from kdelta.counts.model import KERNEL
from kdelta.counts.symbols import CODE_TYPES, Symbol, without_padding
from kdelta.kernels.objects.elf import (
    EXECUTABLE,
    FILE,
    RESERVED,
    SECTION,
    UNDEFINED,
    WEAK_BINDING,
    read_elf,
)
from kdelta.spec.errors import LabError, UserError

_ALL_BITS = (1 << 64) - 1
_MARK = re.compile(r"__(\w+?)_text_(start|end)")
_BOUNDS = ("_text", "_stext", "_etext")
_COLD = re.compile(r"\.cold(\.|$)")
_THUNK = re.compile(r"__x86_indirect_|__SCT__|hypercall_page$")
_LARGEST_ALIGNMENT = 64
_ALIGNED_SHARE = 0.95
_MIXED_SHARE = 0.7  # before unlikely text is distinguished: at most a seventh of a Debian kernel's
_PAGE_BYTES = 4096
_FEW = 8  # functions of a kind: too few for their addresses to tell an alignment
_LEAST_ALIGNED = 8  # below this, an address says nothing of what the compiler asked for

# What arch/x86/kernel/head_64.S and head64.c put into .head.text, which no symbol ends (6.1, 6.12);
# it is a few KiB.
_HEAD = re.compile(r"(__)?startup_64|startup_64_\w+|pvh_start_xen|sme_\w+|start_cpu0|verify_cpu")
_HEAD_BYTES = 0x4000


class TextPiece(msgspec.Struct, gc=False):
    """A function of .text: [start, end) with the padding before it; `entry` is where it is called.

    `why_not` is empty where a relink can move it; `kind` is then "hot", "main" or "unlikely".
    `joined`: it is a label inside of what begins with the piece before. `alignment`: of a page, if
    the padding before it says that it asks for that; else 0.
    """

    name: str
    aliases: tuple[str, ...]
    start: int
    entry: int
    end: int
    why_not: str = ""
    kind: str = ""
    joined: bool = False
    alignment: int = 0


class KernelText(msgspec.Struct):
    """The functions of [start, end) by address, no two overlapping, names all different.

    `alignments`: by kind, what (nearly) all addresses of it are multiples of.
    """

    start: int
    end: int
    pieces: list[TextPiece]
    alignments: dict[str, int]


class Details(msgspec.Struct, frozen=True):
    """What a digest says of sections, by the name of a function.

    alignments   what the address of its own section is a multiple of, or its assembler object's
    leads        the bytes of its section that lie before it, without a name
    heads        of one that lies within the extent of another: that one
    fixups       the bytes of code without a name that its object has in a section alone
    compiled     the names of what no assembler object has
    weak         the bytes of each function that its object has behind it, of names that others have
    """

    alignments: dict[str, int] = {}
    leads: dict[str, int] = {}
    heads: dict[str, str] = {}
    fixups: dict[str, int] = {}
    compiled: frozenset[str] = frozenset()
    weak: dict[str, tuple[int, ...]] = {}


def nameless(after: str) -> str:
    """What stands for the name of code that has none, as linked after that function: of a weak
    function, say, whose name is that of the strong one.
    """
    return f"[after {after}]"


def after_what(name: str) -> str:
    """The function that nameless code is linked after, by a linker's name; "" of named code."""
    return linker_name(name.partition("]")[0][len("[after ") :]) if is_nameless(name) else ""


def is_nameless(name: str) -> bool:
    """Whether no linker can be asked for what is called so."""
    return name.startswith("[")


def linker_name(name: str) -> str:
    """The name that a linker knows: without the number of one of several functions."""
    return name.partition("#")[0]


def vmlinux_symbols(vmlinux: Path) -> list[Symbol]:
    """All symbols of a vmlinux that still has them, in the order of the objects that were linked,
    whatever the order of their functions. LabError when it is no ELF file.
    """
    elf = read_elf(vmlinux)
    if elf is None:
        raise LabError(f"{vmlinux} is no ELF file of a kernel", "build it again")
    is_code = [bool(section.flags & EXECUTABLE) for section in elf.sections]
    columns = (elf.symbols.section, elf.symbols.value, elf.symbols.kind, elf.symbols.binding)
    rows = zip(elf.symbols.names, *(column.tolist() for column in columns), strict=True)
    found = []
    for name, section, value, kind, binding in rows:
        if name and section != UNDEFINED and kind not in (SECTION, FILE):
            code = section < RESERVED and is_code[section]
            letter = ("w" if binding == WEAK_BINDING else "t") if code else "d"
            found.append((value & _ALL_BITS, letter.upper() if binding else letter, name, KERNEL))
    return found


def kernel_text(
    symbols: Iterable[Symbol],
    sections: Mapping[str, str] | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
    alignment: int | None = None,
    details: Details | None = None,
) -> KernelText:
    """The functions between _stext and _etext, and which of them a relink can move.

    sections: from a digest, for names that stand for one function, the one that it has. sizes: the
    bytes of each function of a name, ascending; that of a piece is the largest for which there is
    room. Without any a function reaches to the next. alignment: the most that the compiler can have
    been asked for.
    UserError without symbols that say where the text is.
    """
    kernel = [row for row in symbols if row[3] == KERNEL]
    start, end = _bounds(kernel)
    rows = sorted(row for row in kernel if start <= row[0] < end and row[1] in CODE_TYPES)
    pieces = _pieces(rows, end, sizes or {})
    _name_apart(pieces, kernel)
    marks = {n: at for at, _, n, _ in kernel if start <= at <= end and _MARK.fullmatch(n)}
    sections = sections or {}
    details = details or Details()
    _begin_earlier(pieces, sizes or {}, details)
    _keep_ranges(pieces, marks)
    _keep_outside(pieces, _main_span(pieces, marks, (start, end)), sections)
    _keep_special(pieces, start, sections)
    alignments = _kinds(pieces, sections, alignment or _LARGEST_ALIGNMENT)
    for piece in pieces:
        piece.joined = piece.joined and linker_name(piece.name) not in details.alignments
    trimmed = _trimmed(pieces, sizes or {}, alignments, details)
    return KernelText(start, end, list(trimmed), alignments)


def _bounds(kernel: Iterable[Symbol]) -> tuple[int, int]:
    found = {name: address for address, _, name, _ in kernel if name in _BOUNDS}
    start, end = found.get("_stext", found.get("_text", 0)), found.get("_etext", 0)
    if not 0 < start < end:
        raise UserError(
            "the kernel's symbols do not say where its code is: no _stext and _etext",
            "the kernel needs CONFIG_KALLSYMS=y and its symbols must be read as root, or give the "
            "System.map of its build",
        )
    return start, end


def _pieces(
    rows: Iterable[Symbol], end: int, sizes: Mapping[str, Sequence[int]]
) -> list[TextPiece]:
    """sizes: has the names of functions; others may name the end of what lies before."""
    by_address = by_key(
        (address, ("0" if name in sizes else "1") + ("0" if kind in "TW" else "1") + name)
        for address, kind, name, _ in rows
    )
    found: list[TextPiece] = []
    padding: tuple[int, str] | None = None
    for address, ranked in by_address.items():
        names = [name[2:] for name in sorted(ranked, key=_preference)]
        # Others name a place, and no function of its own.
        functions = [
            n for n in names if not (_MARK.fullmatch(n) or n.startswith(".") or n in _BOUNDS)
        ]
        own = [name for name in functions if without_padding(name) == name]
        if not functions:
            if any(not name.startswith(".") for name in names):
                _end(found, address)
            continue
        if not own:
            _end(found, address)
            padding = address, without_padding(functions[0])
            continue
        begins = padding[0] if padding and padding[1] in own else address
        padding = None
        _end(found, begins)
        found.append(TextPiece(own[0], tuple(own[1:]), begins, address, 0))
    _end(found, end)
    return found


def _preference(ranked: str) -> tuple[bool, str, int, str]:
    """Of names for one address: native rather than compat, a function's, the global one, the least
    decorated.
    """
    name = ranked[2:]
    return name.startswith(("__ia32_", "__pfx_")), ranked[:2], len(name), name


def _end(found: list[TextPiece], address: int) -> None:
    if found and not found[-1].end:
        found[-1].end = address


def _name_apart(pieces: list[TextPiece], symbols: Iterable[Symbol]) -> None:
    """Functions of one name become name, name#2, ... in the order of the symbols."""
    named = by_key((piece.name, piece) for piece in pieces)
    alike = {name: held for name, held in named.items() if len(held) > 1}
    order: dict[tuple[int, str], int] = {}
    for number, (address, _, name, _) in enumerate(symbols if alike else ()):
        if name in alike:
            order.setdefault((address, name), number)
    for name, held in alike.items():
        held.sort(key=lambda piece: order[piece.entry, piece.name])
        for number, piece in enumerate(held[1:], 2):
            piece.name = f"{name}#{number}"


def _begin_earlier(
    pieces: list[TextPiece], sizes: Mapping[str, Sequence[int]], details: Details
) -> None:
    """Gives functions what is before them in their section, if it is not of the one before."""
    extents = _extents(pieces, sizes, details.heads)
    for (piece, after), size in zip(itertools.pairwise(pieces), extents, strict=False):
        start = after.entry - details.leads.get(linker_name(after.name), 0)
        if piece.entry + max(size, 1) <= start < after.start:
            piece.end = after.start = start


def _extents(
    pieces: Sequence[TextPiece], sizes: Mapping[str, Sequence[int]], heads: Mapping[str, str]
) -> list[int]:
    """The bytes of each piece from its entry on, as far as they are known; else 0."""
    found = []
    entries: dict[str, int] = {}
    for piece in pieces:
        name = linker_name(piece.name)
        entries[name] = piece.entry
        known = sizes.get(name, ())
        size = max((one for one in known if piece.entry + one <= piece.end), default=0)
        passed = piece.entry - entries.get(heads.get(name, name), piece.entry)
        found.append(size - passed if 0 < passed < size else size)
    return found


def _trimmed(
    pieces: list[TextPiece],
    sizes: Mapping[str, Sequence[int]],
    alignments: Mapping[str, int],
    details: Details,
) -> Iterator[TextPiece]:
    """The same without the padding after a function, where no more is there than aligns what
    follows: by its own section, as others, or to a page. What is more is code without a name, a
    piece of its own.
    """
    extents = _extents(pieces, sizes, details.heads)
    for (piece, after), size in zip(itertools.pairwise(pieces), extents, strict=False):
        yield piece
        if not size or after.joined:
            continue
        if not piece.kind:
            _end_before_page(piece, size, after)
            continue
        is_last = after.kind != piece.kind
        most = _LARGEST_ALIGNMENT if is_last else alignments[piece.kind]
        end = piece.entry + size
        padding = piece.end - end
        least = 0 if is_last else details.alignments.get(linker_name(after.name), 0)
        if least and -(-end // least) * least == piece.end:
            piece.end = end
            continue
        # Less before a page may be a short function that happens to lie there.
        at_page = padding >= _LARGEST_ALIGNMENT and after.start % _PAGE_BYTES == 0
        if at_page and not is_last:
            after.alignment = most = _PAGE_BYTES
        if padding < most and not least:
            piece.end = end
        elif padding and (least or most >= _LEAST_ALIGNED) and not is_last:
            step = min(most, least or most)
            begin = -(-end // step) * step
            fixup = details.fixups.get(linker_name(piece.name), 0)
            behind = details.weak.get(linker_name(piece.name), ())
            until = min(piece.end, begin + fixup) if fixup and not behind else piece.end
            for number, (low, high) in enumerate(_parts(begin, until, behind, step), 1):
                name = nameless(piece.name) + (f"#{number}" if number > 1 else "")
                yield TextPiece(name, (), low, low, high, kind=piece.kind)
            piece.end = end
    yield from pieces[-1:]


def _parts(begin: int, end: int, sizes: Sequence[int], step: int) -> list[tuple[int, int]]:
    """Functions of these sizes, each at a multiple, if they just fill the stretch; else it all."""
    found = []
    at = begin
    for size in sizes:
        found.append((at, at + size))
        at = -(-(at + size) // step) * step
    return found if found and found[-1][1] <= end <= at else [(begin, end)]


def _end_before_page(piece: TextPiece, size: int, after: TextPiece) -> None:
    """Ends what stays before its padding, where what may move after it is aligned to a page."""
    end = piece.entry + size
    at_page = after.start % _PAGE_BYTES == 0
    if after.kind and at_page and _LARGEST_ALIGNMENT <= piece.end - end < _PAGE_BYTES:
        after.alignment = _PAGE_BYTES
        piece.end = end


def _spans(marks: Mapping[str, int]) -> list[tuple[int, int, str]]:
    """(start, end, name) between boundary symbols, the inner ones first."""
    named = ((_MARK.fullmatch(mark), address) for mark, address in marks.items())
    places = {(found[1], found[2]): address for found, address in named if found}
    ends = {name: address for (name, edge), address in places.items() if edge == "end"}
    spans = [
        (address, ends[name], name)
        for (name, edge), address in places.items()
        if edge == "start" and ends.get(name, address) > address
    ]
    return sorted(spans, key=lambda span: (span[1] - span[0], span[0]))


def _between(pieces: list[TextPiece], start: int, end: int) -> list[TextPiece]:
    start_of = operator.attrgetter("start")
    low, high = (bisect.bisect_left(pieces, edge, key=start_of) for edge in (start, end))
    return pieces[low:high]


def _keep_ranges(pieces: list[TextPiece], marks: Mapping[str, int]) -> None:
    for start, end, name in _spans(marks):
        for piece in _between(pieces, start, end):
            piece.why_not = piece.why_not or f"in the {name} text"


def _main_span(
    pieces: list[TextPiece], marks: Mapping[str, int], text: tuple[int, int]
) -> tuple[int, int]:
    """The stretch of .text with most functions between two boundary symbols of no one section."""
    delimited = _spans(marks)
    stretches = [
        (low, high)
        for low, high in itertools.pairwise(sorted({*text, *marks.values()}))
        if not any(begin <= low and high <= until for begin, until, _ in delimited)
    ]
    return max(stretches, key=lambda span: len(_between(pieces, *span)), default=text)


def _keep_outside(
    pieces: list[TextPiece], main: tuple[int, int], sections: Mapping[str, str]
) -> None:
    for piece in pieces:
        section = sections.get(piece.name, "")
        if section and not re.match(r"\.text(\.|$)(?!\.)", section):
            piece.why_not = piece.why_not or f"in {section}"
        elif not main[0] <= piece.start < main[1]:
            piece.why_not = piece.why_not or "after the main text"


def _keep_special(pieces: list[TextPiece], start: int, sections: Mapping[str, str]) -> None:
    for piece in pieces:
        if _THUNK.match(piece.name):
            piece.why_not = piece.why_not or "a thunk"
    head = [
        index
        for index, piece in enumerate(_between(pieces, start, start + _HEAD_BYTES))
        if any(_HEAD.fullmatch(name) for name in (piece.name, *piece.aliases))
        and not sections.get(piece.name, "").startswith(".text")
    ]
    for piece in pieces[: head[-1] + 1] if head else ():
        piece.why_not = piece.why_not or "in the head"


def _kinds(pieces: list[TextPiece], sections: Mapping[str, str], most: int) -> dict[str, int]:
    """Tells hot, main and unlikely text apart; returns the alignment of each."""
    movable = [piece for piece in pieces if not piece.why_not]
    if not movable:
        return {}
    first = _peak([1 if _in_section(piece, sections, "hot") else -1 for piece in movable])
    rest = movable[first:]
    usual = _alignment(rest, most, _MIXED_SHARE)
    last = first + _peak([-1 if _looks_cold(piece, sections, usual) else 1 for piece in rest])
    parts = {"hot": movable[:first], "main": movable[first:last], "unlikely": movable[last:]}
    alignments = {kind: _alignment(held, most) for kind, held in parts.items() if held}
    for kind, held in parts.items():
        if 0 < len(held) < _FEW:
            alignments[kind] = min(alignments[kind], usual)
    for kind, held in parts.items():
        for piece in held:
            piece.kind = kind
            piece.joined = (
                alignments[kind] >= _LEAST_ALIGNED
                and piece.start % alignments[kind] != 0
                and piece is not held[0]
            )
    return alignments


def _peak(steps: list[int]) -> int:
    """How many of the steps lead to the highest point; none, if all lead below the start."""
    return int(np.argmax(np.cumsum([0, *steps])))


def _in_section(piece: TextPiece, sections: Mapping[str, str], word: str) -> bool:
    section = sections.get(piece.name, "")
    return section == f".text.{word}" or section.startswith(f".text.{word}.")


def _looks_cold(piece: TextPiece, sections: Mapping[str, str], alignment: int) -> bool:
    """gcc (before 14) does not align what it puts into .text.unlikely."""
    if piece.name in sections:
        return _in_section(piece, sections, "unlikely")
    return _COLD.search(piece.name) is not None or piece.start % alignment != 0


def _alignment(pieces: list[TextPiece], most: int, share: float = _ALIGNED_SHARE) -> int:
    """The largest power of two of which nearly all functions' addresses are multiples."""
    starts: U64 = np.array([piece.start for piece in pieces], dtype=np.uint64)
    found = 1
    while found < most:
        if np.count_nonzero(starts % np.uint64(found * 2) == 0) < share * len(starts):
            break
        found *= 2
    return found

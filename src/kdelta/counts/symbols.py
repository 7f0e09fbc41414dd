# SPDX-License-Identifier: GPL-2.0-or-later
"""Which function an address belongs to: the guest's /proc/kallsyms, and user binaries' symbols."""

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from kdelta.counts.arrays import I64, U64
from kdelta.counts.model import KERNEL
from kdelta.host.files import FileContent

END = "-"
"""The type of a mark that says where a symbol ends, for tables with gaps in them."""

NO_SYMBOL = "[no symbol]"

Symbol = tuple[int, str, str, str]
"""Address, type letter as nm prints it, name, origin: "kernel" or "[module]"."""

CODE_TYPES = frozenset("tTwW")
"""Of what is code."""

_PADDING = ("__pfx_", "__cfi_")  # what lies before a function is part of it
_FIELDS = 3


# Where sections of code begin and end: names of the kernel's linker script (vmlinux.lds.S), which
# an address can have besides that of the function there.
_BOUNDARY = re.compile(r"(?:__pi_)?_[se]?(?:init)?text|__\w+_text_(?:start|end)")


def _preference(kind: str, name: str) -> tuple[bool, bool, bool, bool, int, str]:
    """Rank names of one address: a function's, the global one, native rather than compat, the least
    decorated.
    """
    boundary = _BOUNDARY.fullmatch(name) is not None
    return (kind == END, boundary, kind not in "TW", name.startswith("__ia32_"), len(name), name)


class SymbolTable:
    """Start addresses with (origin, name); an address belongs to the nearest start not above it.

    `starts` is uint64 of shape (n,); `labels` holds n (origin, name) pairs.
    """

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        """Of symbols of one address, the name that says most is taken."""
        best: dict[int, tuple[str, str, str]] = {}
        for address, kind, name, origin in symbols:
            this = (kind, name, origin)
            known = best.setdefault(address, this)
            if known is not this and _preference(kind, name) < _preference(*known[:2]):
                best[address] = this
        addresses = sorted(best)
        self.starts: U64 = np.array(addresses, dtype=np.uint64)
        self.labels = [(best[address][2], best[address][1]) for address in addresses]

    def __len__(self) -> int:
        return len(self.labels)

    def indexes(self, addresses: U64) -> I64:
        """For each address the index into `labels`, or -1 below the first symbol."""
        return np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1


def without_padding(symbol: str) -> str:
    """The function that a symbol belongs to: its own name, unless it names the space before one."""
    if symbol.startswith(_PADDING):
        for prefix in _PADDING:
            symbol = symbol.removeprefix(prefix)
    return symbol


def parse_symbols(text: bytes) -> list[Symbol]:
    """All symbols of /proc/kallsyms or a System.map, padding, data and boundaries included.

    Functions of one name are distinguished by the order in which they stand here, which is that of
    addresses. Where another link of the same objects is compared,
    `replay.kernel_text.vmlinux_symbols` is better.
    """
    found = []
    for line in text.decode("ascii", "replace").splitlines():
        parts = line.split(None, 3)
        if len(parts) >= _FIELDS and len(parts[1]) == 1:
            try:
                address = int(parts[0], 16)
            except ValueError:
                continue
            found.append((address, parts[1], parts[2], parts[3] if parts[3:] else KERNEL))
    return found


def parse_kallsyms(text: bytes) -> list[Symbol]:
    """The text symbols of /proc/kallsyms: (address, type, name, origin "kernel" or "[module]")."""
    return list(_functions(parse_symbols(text)))


def _functions(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    for address, kind, name, origin in symbols:
        if kind in CODE_TYPES:
            yield address, kind, without_padding(name), origin


def code_table(symbols: Iterable[Symbol]) -> SymbolTable:
    """The table of what is code; of several names for one address the one that functions are
    counted by.
    """
    return SymbolTable(_functions(symbols))


def kallsyms_file(path: Path) -> tuple[Symbol, ...]:
    """`parse_kallsyms` of a file, kept in memory: a kernel's boots and runs share it."""
    return _parsed(FileContent(path))


@functools.lru_cache(maxsize=8)
def _parsed(file: FileContent) -> tuple[Symbol, ...]:
    return tuple(parse_kallsyms(file.path.read_bytes()))


def kallsyms_table(path: Path, modules: bytes) -> SymbolTable:
    """The table of that file and of the lines of modules, kept in memory likewise."""
    return _table(FileContent(path), modules)


@functools.lru_cache(maxsize=8)
def _table(file: FileContent, modules: bytes) -> SymbolTable:
    return SymbolTable((*_parsed(file), *parse_kallsyms(modules)))

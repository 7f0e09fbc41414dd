# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel keeps at an address: a variable, one of a CPU's own, an object, a page."""

import bisect
import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from kdelta.counts.btf import KernelTypes
from kdelta.counts.conflicts import Place
from kdelta.counts.model import KERNEL
from kdelta.counts.symbols import SymbolTable

PAGE_STRUCT_BYTES = 64
_PAGES_BYTES = 1 << 40  # of the area that describes pages, at most: 64 TiB of memory
_DIRECT_MAP_BYTES = 1 << 46
_KERNEL_HALF = 1 << 63
_MOST_OF = 0.75
"""Of accesses: a copy of a struct does not go by its fields."""
_MODULES_START = 0xFFFFFFFF_A0000000  # Documentation/arch/x86/x86_64/mm.rst, as bases below are

_WRAPPERS = re.compile(r"(?:\.(?:rlock|raw_lock|val|counter|refs|seqcount|sequence))+$")
"""What a lock or a counter consists of says nothing that its own name does not."""

# What takes no space has the address of whatever the linker puts there: the keys of locks without
# lockdep, and where sections begin and end.
_EMPTY = re.compile(
    r"__key(?:\.\d+)?|_[se](?:data|bss)|__(?:start|stop|begin|end)_\w+"
    r"|__\w+_(?:start|stop|begin|end)"
)

PAGE_TABLE = "ptdesc"
"""What describes a page of page tables in place of `struct page`, since Linux 6.6."""

_MOST_NAMES = 3
"""Of members of a union in one name."""

STACK = "kernel stack"

PAGE_CONTENT = "content of a page"
"""What is in a page that is no object's, as far as is known."""

_STRUCTS = {
    "filp": "file",
    "files_cache": "files_struct",
    "fs_cache": "fs_struct",
    "signal_cache": "signal_struct",
    "sighand_cache": "sighand_struct",
    "inode_cache": "inode",
    "shmem_inode_cache": "shmem_inode_info",
    "proc_inode_cache": "proc_inode",
    "sock_inode_cache": "socket_alloc",
    "ext4_inode_cache": "ext4_inode_info",
    "cred_jar": "cred",
    "radix_tree_node": "xa_node",
    "UDP": "udp_sock",
    "TCP": "tcp_sock",
    "UNIX": "unix_sock",
    "UNIX-STREAM": "unix_sock",
    "eventpoll_epi": "epitem",
    "eventpoll_pwq": "eppoll_entry",
    "skbuff_head_cache": "sk_buff",
    "mnt_cache": "mount",
    "file_lock_cache": "file_lock",
    "file_lease_cache": "file_lease",
    "kernfs_node_cache": "kernfs_node",
    "user_namespace": "user_namespace",
    "uid_cache": "user_struct",
    "posix_timers_cache": "k_itimer",
    "mqueue_inode_cache": "mqueue_inode_info",
    "bdev_cache": "bdev_inode",
}
"""The struct of caches that have another name: from the kernel's calls of kmem_cache_create()."""


class SlabCache(msgspec.Struct, frozen=True):
    """A cache of objects. `users`: how many caches the kernel made one of, as they are alike."""

    name: str
    object_bytes: int
    users: int


class Address(msgspec.Struct, frozen=True):
    """An address. cache: of the objects there, one of which starts at `start`; None for no heap.
    is_stack: it is in the kernel stack of a task.
    """

    vaddr: int
    cache: SlabCache | None = None
    start: int = 0
    is_stack: bool = False


class Named(msgspec.Struct, frozen=True):
    """What is at an address: `offset_bytes` after the start of what has the name, which is of that
    type.
    """

    place: Place
    name: str
    offset_bytes: int
    type: int | None = None


class MemoryMap(msgspec.Struct, frozen=True):
    """Where things are. `per_cpu`: by CPU, what is added to the address of a variable of its own;
    `pages`: where the first struct page is.
    """

    per_cpu: tuple[int, ...]
    direct_map: int
    pages: int


class MemoryNames:
    """Names of a kernel's memory, by its symbols and, where it has them, its types."""

    def __init__(
        self, symbols: Iterable[tuple[int, str, str, str]], types: KernelTypes | None
    ) -> None:
        """symbols: all of /proc/kallsyms, as `parse_symbols` returns them."""
        symbols = list(symbols)
        full = {one[0] for one in symbols if not _EMPTY.fullmatch(one[2])}
        variables = [one for one in symbols if one[0] not in full or not _EMPTY.fullmatch(one[2])]
        marks = {name: address for address, _, name, origin in symbols if origin == KERNEL}
        self._image = marks.get("_text", marks.get("_stext", 0)), marks.get("_end", 0)
        self._own = marks.get("__per_cpu_start", 0), marks.get("__per_cpu_end", 0)
        first, last = self._own
        own = [one for one in variables if first <= one[0] < last and one[3] == KERNEL]
        self._own_table = SymbolTable(own)
        self._table = SymbolTable(one for one in variables if one[0] >= _KERNEL_HALF)
        self._types = types

    def at(self, address: Address, memory: MemoryMap) -> Named:
        """Return what is at an address."""
        if address.vaddr < _KERNEL_HALF:
            return Named("memory", "user memory", 0)
        if address.is_stack:
            return Named("stack", STACK, 0)
        if address.cache is not None:
            return self._object(address, address.cache)
        own = self._own_variable(address.vaddr, memory.per_cpu)
        return own or self._variable(address.vaddr) or self._page(address.vaddr, memory)

    def _page(self, vaddr: int, memory: MemoryMap) -> Named:
        """What describes a page, or is in one."""
        if memory.pages <= vaddr < memory.pages + _PAGES_BYTES:
            offset = (vaddr - memory.pages) % PAGE_STRUCT_BYTES
            return Named("page", "page", offset, self._struct("page"))
        if memory.direct_map <= vaddr < memory.direct_map + _DIRECT_MAP_BYTES:
            return Named("memory", PAGE_CONTENT, 0)
        return Named("memory", "", 0)

    def _struct(self, name: str) -> int | None:
        return self._types.struct(name) if self._types else None

    def _object(self, address: Address, cache: SlabCache) -> Named:
        offset = (address.vaddr - address.start) % cache.object_bytes
        name = _STRUCTS.get(cache.name, cache.name)
        if cache.users <= 1 and (kind := self._struct(name)):
            return Named("object", name, offset, kind)
        says_size_alone = cache.name.startswith("kmalloc-")
        doubt = "?" if cache.users > 1 and not says_size_alone else ""
        return Named("object", cache.name + doubt, offset)

    def guessed(self, cache: SlabCache, accesses: Collection[tuple[int, int]]) -> int | None:
        """Return the struct of a cache's name, where the kernel made one of several caches and the
        fields of that struct begin and end as the accesses do: (offset, size) in bytes. None where
        they do not, or there is no such struct.
        """
        own = self._struct(_STRUCTS.get(cache.name, cache.name))
        return own if own is not None and self._fits(own, accesses) else None

    def _fits(self, kind: int, accesses: Collection[tuple[int, int]]) -> bool:
        return sum(self._fit(kind, *one) for one in accesses) >= _MOST_OF * len(accesses)

    def _fit(self, kind: int, offset: int, size: int) -> float:
        """How well an access goes with the fields of a struct: it is that of one or several, or of
        a part of one, as a test of a bit is.
        """
        if self._types is None:
            return 0.0
        widths = self._types.widths_at(kind, offset)
        if any(width <= size for width in widths):
            return 1.0
        return 0.5 if widths or size == 1 else 0.0

    @staticmethod
    def as_struct(named: Named, cache: SlabCache, kind: int) -> Named:
        """Return the same as the struct that was guessed."""
        name = _STRUCTS.get(cache.name, cache.name)
        return msgspec.structs.replace(named, name=f"{name}?", type=kind)

    def _own_variable(self, vaddr: int, per_cpu: Sequence[int]) -> Named | None:
        first, last = self._own
        for cpu, offset in enumerate(per_cpu):
            if first <= (at := vaddr - offset) < last and (
                found := self._nearest(self._own_table, at)
            ):
                name, rest = found
                kind = self._types.variables.get(name) if self._types else None
                return Named("per-CPU", f"{name} of CPU {cpu}", rest, kind)
        return None

    def _variable(self, vaddr: int) -> Named | None:
        first, last = self._image
        if not (first <= vaddr < last or vaddr >= _MODULES_START):
            return None
        found = self._nearest(self._table, vaddr)
        if not found:
            return None
        kind = self._types.variables.get(found[0]) if self._types else None
        return Named("variable", *found, kind)

    @staticmethod
    def _nearest(table: SymbolTable, vaddr: int) -> tuple[str, int] | None:
        """The symbol that an address follows, and by how many bytes."""
        starts = table.starts
        index = bisect.bisect_right(starts, vaddr) - 1
        return (table.labels[index][1], vaddr - int(starts[index])) if index >= 0 else None

    def place(self, named: Named, widths: Sequence[int]) -> tuple[str, bool]:
        """Return what was named with the field that is there, or, where that is not known, with the
        offset; and whether it is known by name. Of a union's members it is those that are as wide
        as the access, or as the next of these widths in bytes; all, where none is.
        """
        name = named.name or "unknown memory"
        if self._types is not None and named.type is not None:
            kinds = [(name, named.type)]
            if named.place == "page" and (overlay := self._types.struct(PAGE_TABLE)):
                kinds.append((PAGE_TABLE, overlay))
            if field := _field(self._types, kinds, named.offset_bytes, widths):
                return field, True
        if not named.offset_bytes:
            return name, named.place in {"variable", "per-CPU", "stack"}
        return f"{name}+{named.offset_bytes:#x}", False


def _field(
    types: KernelTypes, kinds: Iterable[tuple[str, int]], offset: int, widths: Iterable[int]
) -> str:
    """The name of the first of these types with the field that is there; empty without any."""
    found = [(name, types.fields_at(kind, offset)) for name, kind in kinds]
    name, fields = next(
        (
            (name, same)
            for width in widths
            for name, every in found
            if (same := [one for one in every if one.size_bytes == width])
        ),
        found[0],
    )
    several = list(dict.fromkeys(_WRAPPERS.sub("", one.name) for one in fields if one.name))
    if not several:
        return ""
    if len(several) > _MOST_NAMES:
        several[_MOST_NAMES:] = ["..."]
    return f"{name}{'' if several[0].startswith('[') else '.'}{'/'.join(several)}"

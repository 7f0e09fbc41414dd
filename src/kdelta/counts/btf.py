# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of a kernel as it describes them itself: BTF (Documentation/bpf/btf.rst)."""

import struct
from typing import NamedTuple

from kdelta.spec.errors import LabError

_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_MAGIC = 0xEB9F
_POINTER, _ARRAY, _STRUCT, _UNION = 2, 3, 4, 5
_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG = 8, 9, 10, 11, 18
_PROTOTYPE, _VARIABLE, _SECTION = 13, 14, 15
_ALIASES = {_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG}
_REST = {1: 4, _ARRAY: 12, _VARIABLE: 4, 17: 4}
_REST_EACH = {_STRUCT: 12, _UNION: 12, 6: 8, _PROTOTYPE: 8, _SECTION: 12, 19: 12}
_POINTER_BYTES = 8
_SIZED = {1, _STRUCT, _UNION, 6, 16, 19}


class StructMember(NamedTuple):
    """A member of a struct or union; its name is empty where it has none."""

    name: str
    type: int
    offset_bytes: int


class FieldAt(NamedTuple):
    """A field at an offset of a type. begins: it begins there."""

    name: str
    begins: bool
    size_bytes: int

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Return what of several is taken: that which begins there, and has most parts."""
        return self.begins, self.name.count("."), self.name.count("[")


class KernelTypes:
    """The types of a kernel by number."""

    def __init__(self, section: bytes) -> None:
        """Read the content of a .BTF section; LabError for what is none."""
        try:
            magic, _, _, size, types, types_size, names, names_size = _HEADER.unpack_from(section)
        except struct.error:
            magic = 0
        if magic != _MAGIC:
            raise LabError("the kernel's description of its types is damaged", "run again")
        start = size + types
        self._section = section[: start + types_size]
        self._names = section[size + names : size + names + names_size]
        self._at = [0]
        self._structs: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        """The types of variables that are described: those of each CPU, and since 6.13 others."""
        at = start
        while at < start + types_size:
            name, info, _ = _TYPE.unpack_from(section, at)
            kind = info >> 24 & 31
            if kind == _STRUCT:
                self._structs.setdefault(self._name(name), len(self._at))
            elif kind == _VARIABLE:
                self.variables[self._name(name)] = self._type(at)[2]
            self._at.append(at)
            at += _TYPE.size + _REST.get(kind, 0) + _REST_EACH.get(kind, 0) * (info & 0xFFFF)

    def _name(self, offset: int) -> str:
        end = self._names.index(b"\0", offset)
        return self._names[offset:end].decode("ascii", "replace")

    def _type(self, at: int) -> tuple[int, int, int]:
        """Its name's offset, its info, and its size or the type that it is of."""
        name, info, size = _TYPE.unpack_from(self._section, at)
        return name, info, size

    def struct(self, name: str) -> int | None:
        """Return the number of the struct of that name; None where there is none."""
        return self._structs.get(name)

    def _plain(self, number: int) -> int:
        """What a typedef or a qualifier stands for."""
        while number:
            _, info, of = self._type(self._at[number])
            if info >> 24 & 31 not in _ALIASES:
                break
            number = of
        return number

    def size_bytes(self, number: int) -> int:
        """Return the size of that type; 0 where it has none."""
        number = self._plain(number)
        if not number:
            return 0
        _, info, size = self._type(self._at[number])
        kind = info >> 24 & 31
        if kind == _ARRAY:
            element, _, count = self._array(number)
            return count * self.size_bytes(element)
        if kind == _POINTER:
            return _POINTER_BYTES
        return size if kind in _SIZED else 0

    def _array(self, number: int) -> tuple[int, int, int]:
        """The type of an array's elements, that of its index, and how many it has."""
        element, index, count = _TYPE.unpack_from(self._section, self._at[number] + _TYPE.size)
        return element, index, count

    def members(self, number: int) -> list[StructMember]:
        """Return the members of a struct or union; none of another type."""
        number = self._plain(number)
        if not number:
            return []
        _, info, _ = self._type(at := self._at[number])
        if info >> 24 & 31 not in {_STRUCT, _UNION}:
            return []
        mask = 0xFFFFFF if info >> 31 else 0xFFFFFFFF  # below the size of a bit field
        return [
            StructMember(self._name(name), kind, (offset & mask) // 8)
            for name, kind, offset in _TYPE.iter_unpack(
                self._section[at + _TYPE.size : at + _TYPE.size * (1 + (info & 0xFFFF))]
            )
        ]

    def widths_at(self, number: int, offset_bytes: int) -> set[int]:
        """Return how many bytes the fields have that begin at an offset of a type: several where it
        has unions.
        """
        number = self._plain(number)
        if not number:
            return set()
        if self._type(self._at[number])[1] >> 24 & 31 == _ARRAY:
            element = self._array(number)[0]
            size = self.size_bytes(element)
            return self.widths_at(element, offset_bytes % size) if size else set()
        if not (members := self.members(number)):
            return {self.size_bytes(number)} if offset_bytes == 0 else set()
        found: set[int] = set()
        for one in members:
            if one.offset_bytes <= offset_bytes < one.offset_bytes + self.size_bytes(one.type):
                found |= self.widths_at(one.type, offset_bytes - one.offset_bytes)
        return found

    def fields_at(self, number: int, offset_bytes: int) -> list[FieldAt]:
        """Return the innermost field of a type at an offset, as in "d_lockref.count"; one without a
        name for a type without fields, or between them. Of a union of one word it is the member
        that begins there, if one does, and has most parts; of a larger one, all that begin there.
        """
        found = self._fields(number, offset_bytes)
        return [one._replace(name=one.name.removeprefix(".")) for one in found]

    def _fields(self, number: int, offset: int) -> list[FieldAt]:
        """The fields with a dot before them."""
        number = self._plain(number)
        nothing = FieldAt("", offset == 0, self.size_bytes(number))
        if not number:
            return [nothing]
        kind = self._type(self._at[number])[1] >> 24 & 31
        if kind == _ARRAY:
            element = self._array(number)[0]
            if not (size := self.size_bytes(element)):
                return [FieldAt("", begins=False, size_bytes=0)]
            inner = self._fields(element, offset % size)
            return [one._replace(name=f"[{offset // size}]{one.name}") for one in inner]
        members = [
            [field._replace(name=(f".{one.name}" if one.name else "") + field.name) for field in of]
            for one in self.members(number)
            if one.offset_bytes <= offset < one.offset_bytes + max(1, self.size_bytes(one.type))
            and (of := self._fields(one.type, offset - one.offset_bytes))
        ]
        if not members:
            return [nothing]
        if kind == _UNION and self.size_bytes(number) > _POINTER_BYTES:
            found = [field for of in members for field in of]
            return [field for field in found if field.begins] or found
        return max(members, key=lambda of: max(field.rank for field in of))

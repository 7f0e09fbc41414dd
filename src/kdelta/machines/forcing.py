# SPDX-License-Identifier: GPL-2.0-or-later
"""How features of the CPU are forced in a guest's kernel before it looks at its CPU.

A kernel adds the words of `cpu_caps_set` to what it reads by CPUID (apply_forced_caps() in
arch/x86/kernel/cpu/common.c). They are zero at start_kernel(), before which nothing is set there,
and are written then. Where the kernel's symbols do not list that array (they list data only with
CONFIG_KALLSYMS_ALL), its parameter setcpuid= (Linux 6.15) does the same.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.cpus.forced import Feature, feature_words, features
from kdelta.machines.process import Debugger

_START, _ARRAY = "start_kernel", "cpu_caps_set"
_NAMES = "x86_cap_flags"
"""The kernel's array of pointers to the features' names, one for each bit of its words."""
_LINE = re.compile(rb"^([0-9a-f]+) .*$", re.MULTILINE)
_ADDRESS = re.compile(rb"^([0-9a-f]+) ", re.MULTILINE)
_WORD_BYTES, _WORD_BITS, _POINTER_BYTES = 4, 32, 8
_WORDS_OF_ALL = 19
"""Kernels have at least so many since Linux 4.15. A kernel without CONFIG_X86_FEATURE_NAMES, which
was an option until 6.4, does not show how many more."""
_NOWHERE = (0, 0)

LOOKED_AT = (_START, _ARRAY, _NAMES)
"""The symbols that say how features are forced in a kernel; each with the one after it."""
_LOOKED_AT = re.compile(rf"^([0-9a-f]+) \S ({'|'.join(LOOKED_AT)})$".encode(), re.MULTILINE)


class Forcing(msgspec.Struct, frozen=True):
    """What is forced in a kernel, and where. Without an `array` it is by setcpuid=.

    names   of the features, those left out that this kernel has no word for
    start   address of start_kernel()
    array   address of cpu_caps_set; 0 if it is not known
    """

    names: tuple[str, ...]
    start: int
    array: int

    @property
    def features(self) -> tuple[Feature, ...]:
        return tuple(features()[name] for name in self.names)

    @property
    def parameter(self) -> str:
        """The boot parameter that forces it; empty where memory is written."""
        if self.array:
            return ""
        return f"setcpuid={','.join(map(str, numbers_of(self.names).values()))}"

    async def write(self, debugger: Debugger) -> None:
        """Write the words; the guest is at start_kernel()."""
        for word, value in sorted(feature_words(self.features).items()):
            data = value.to_bytes(_WORD_BYTES, "little")
            await debugger.write(self.array + _WORD_BYTES * word, data)


def numbers_of(names: Sequence[str]) -> dict[str, int]:
    """Return the number of each feature, as the kernel counts the bits of its words."""
    return {name: features()[name].word * _WORD_BITS + features()[name].bit for name in names}


def forcing_in(names: Sequence[str], symbols: bytes) -> Forcing:
    """Return how these features are forced in the kernel with these symbols.

    symbols: lines as in /proc/kallsyms or System.map.
    """
    places = _places(symbols)
    start, array = (places.get(name, _NOWHERE)[0] for name in (_START, _ARRAY))
    if not start or not array:  # setcpuid= ignores numbers that a kernel has not
        return Forcing(tuple(names), start, 0)
    words = _words(places)
    return Forcing(tuple(one for one in names if features()[one].word < words), start, array)


def symbols_looked_at(symbols: bytes) -> bytes:
    """Return the lines that `forcing_in` looks at, whatever is to be forced."""
    wanted = {address for found in _places(symbols).values() for address in found}
    lines = (line for line in _LINE.finditer(symbols) if int(line[1], 16) in wanted)
    return b"".join(line[0] + b"\n" for line in lines)


def _places(symbols: bytes) -> dict[str, tuple[int, int]]:
    """The addresses of the symbols that matter, each with that of the next one."""
    every = _ADDRESS.findall(symbols)  # as many digits each
    return {
        name.decode(): (int(address, 16), int(min(filter(address.__lt__, every), default=b"0"), 16))
        for address, name in _LOOKED_AT.findall(symbols)
    }


def _words(places: Mapping[str, tuple[int, int]]) -> int:
    """How many words of features the kernel has: what follows them in the array are bits of bugs,
    of which there is at least one word.
    """
    if _NAMES not in places:
        return _WORDS_OF_ALL
    (names, after_names), (array, after_array) = places[_NAMES], places[_ARRAY]
    named = (after_names - names) // (_POINTER_BYTES * _WORD_BITS)
    return min(named, (after_array - array) // _WORD_BYTES - 1)


def symbols_of_build(image: str) -> bytes:
    """Return the System.map next to an image that was built; empty where none has the array."""
    try:
        symbols = Path(image).with_name("System.map").read_bytes()
    except OSError:
        return b""
    return symbols if f" {_ARRAY}\n".encode() in symbols else b""

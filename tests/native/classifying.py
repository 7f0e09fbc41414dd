# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plugin says of an architecture's instructions, and what its binutils say of them."""

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kdelta.host.emulator import binutils_command
from kdelta.host.native import native_folder
from kdelta.host.target import target as target_of

from .conftest import HERE, SANITIZERS, compile_c

_LINE = re.compile(r"^\s*[0-9a-f]+:\t([0-9a-f ]+?)\s*\t(.*)$")


class Facts(NamedTuple):
    """One line of the classifier's answer."""

    mark: int
    argument: int
    can_fault: int
    loads: int
    stores: int
    is_string: int
    repeats: int
    element_bytes: int
    leaves_kernel: int
    frame_return: int
    trap_counts: int
    jumps: int
    always_there: int
    calls: int
    optional: int
    switch_store: int
    switch_load: int
    calls_function: int
    returns: int
    special: str
    detail: str


class Insn(NamedTuple):
    code: bytes
    text: str


class Target(NamedTuple):
    """An instruction set: the plugin's words for it, the architecture that has it, and what its
    assembler is given.
    """

    words: tuple[str, ...]
    arch: str = "x86_64"
    assembler: tuple[str, ...] = ()
    head: str = ""
    unit_bytes: int = 1
    """objdump prints code by units of so many bytes, each with its highest byte first."""

    def tool(self, name: str) -> list[str]:
        """How a command line of its binutils begins."""
        return binutils_command(target_of(self.arch), name)


_FOLDER = TemporaryDirectory(prefix="kdelta-classify-")
X86 = Target(("x86_64",))


@cache
def classifier() -> Path:
    """The program, compiled once, with sanitizers."""
    plugin = native_folder() / "plugin"
    names = ("x86", "x86_kinds", "arm", "thumb", "aarch64", "riscv")
    sources = [HERE / "classify.c", *(plugin / f"{name}.c" for name in names)]
    return compile_c(Path(_FOLDER.name) / "classify", sources, f"-I{plugin}", *SANITIZERS)


def classify(target: Target, codes: Iterable[bytes], registers: str = "") -> list[Facts]:
    """What the plugin says of instructions. registers: as NAME=VALUE, of all of them."""
    said = subprocess.run(
        [classifier(), *target.words],
        input="".join(f"{code.hex()} {registers}\n" for code in codes),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = (line.rsplit(",", 2) for line in said.splitlines())
    return [Facts._make((*map(int, numbers.split(",")), *names)) for numbers, *names in rows]


def _bytes(shown: str, target: Target) -> bytes:
    units = re.findall("..?" * target.unit_bytes if target.unit_bytes == 1 else r"\S+", shown)
    return b"".join(bytes.fromhex(unit)[::-1] for unit in units)


def disassembled(target: Target, *argv: str | Path, repeated: bool = False) -> list[Insn]:
    """Every different instruction of what objdump shows; or all, in order."""
    said = subprocess.run(
        [*target.tool("objdump"), "-d", "-z", "-w", "--insn-width=16", *argv],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = _insns(said, target)
    return list(found) if repeated else list(dict.fromkeys(found))


def _insns(said: str, target: Target) -> Iterable[Insn]:
    for line in said.splitlines():
        if match := _LINE.match(line):
            shown = match[1].replace(" ", "") if target.unit_bytes == 1 else match[1]
            yield Insn(_bytes(shown, target), match[2])


def assembled(target: Target, folder: Path, lines: Iterable[str]) -> list[bytes]:
    """The bytes of each line of assembly."""
    lines = list(lines)
    source = target.head + "".join(f"i{n}: {line}\n" for n, line in enumerate(lines))
    (folder / "table.s").write_text(source + f"i{len(lines)}:\n")
    made, code = folder / "table.o", folder / "table.bin"
    assembler = [*target.tool("as"), *target.assembler]
    subprocess.run([*assembler, folder / "table.s", "-o", made], check=True)
    copy = [*target.tool("objcopy"), "-O", "binary", "-j", ".text"]
    subprocess.run([*copy, made, code], check=True)
    nm = subprocess.run([*target.tool("nm"), made], capture_output=True, text=True, check=True)
    places = {line.split()[2]: int(line.split()[0], 16) for line in nm.stdout.splitlines()}
    whole = code.read_bytes()
    return [whole[places[f"i{n}"] : places[f"i{n + 1}"]] for n in range(len(lines))]

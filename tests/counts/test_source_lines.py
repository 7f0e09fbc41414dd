# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of source by debug info: of programs, and of modules where the kernel put them."""

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.counts import source_lines
from kdelta.counts.source_lines import (
    DebugFile,
    Frame,
    SourceLines,
    has_debug_info,
    read_source_lines,
)
from kdelta.host.target import host_target
from kdelta.spec.errors import LabError

SOURCE = """
static inline __attribute__((always_inline)) int twice(int a)
{
    return a * 2 + 1;
}
__attribute__((noinline)) int outer(int a)
{
    asm volatile("nop");
    return twice(a);
}
int main(int argc, char **argv)
{
    return outer(argc) + !argv;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "it's $(one).c").write_text(SOURCE)
    return tmp_path


def compiled(folder: Path, *flags: str) -> Path:
    made = folder / "made"
    source = str(folder / "sub" / "it's $(one).c")
    subprocess.run(["gcc", "-O1", *flags, "-o", str(made), source], check=True)
    return made


def arch() -> str:
    found = host_target()
    assert found
    return found.name


def extent(path: Path, name: str) -> range:
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = table.get_symbol_by_name(name)
        assert symbols
        (symbol,) = symbols
        return range(symbol["st_value"], symbol["st_value"] + symbol["st_size"])


def frames_of(lines: SourceLines, origin: str, addresses: range) -> set[tuple[Frame, ...]]:
    return {lines.at(origin, address) for address in addresses} - {()}


def test_lines_of_a_program_and_what_was_inlined(folder: Path) -> None:
    made = compiled(folder, "-g")
    addresses = extent(made, "outer")
    file = DebugFile(made, roots=(str(folder),))
    lines = read_source_lines({"a'b $(c)": addresses}, {"a'b $(c)": file}, arch())
    name = "sub/it's $(one).c"
    found = frames_of(lines, "a'b $(c)", addresses)
    assert (Frame("outer", name, 8),) in found
    assert (Frame("twice", name, 4), Frame("outer", name, 9)) in found
    assert {frames[-1].function for frames in found} == {"outer"}
    line = lines.line("a'b $(c)", addresses[0])
    assert line
    assert line[0] == name
    assert line[1] in (6, 7, 8)
    # Without a root, the file has the name that the compiler was given.
    whole = read_source_lines({"a": addresses[:1]}, {"a": DebugFile(made)}, arch())
    assert whole.line("a", addresses[0]) == (str(folder / name), line[1])


def test_a_module_is_looked_up_where_the_kernel_put_it(folder: Path) -> None:
    made = compiled(folder, "-g", "-c", "-ffunction-sections")
    base = 0xFFFF_FFFF_C000_1000
    symbols = {"outer": base, "main": base + 0x1000, "elsewhere": 5}
    size = len(extent(made, "outer"))
    wanted = [base, base + size - 1, base + 0x1000, base + 0x900]
    lines = read_source_lines({"[m]": wanted}, {"[m]": DebugFile(made, (), symbols)}, arch())
    assert lines.at("[m]", base)[-1].function == "outer"
    assert lines.at("[m]", base + size - 1)[-1].function == "outer"
    assert lines.at("[m]", base + 0x1000)[-1].function == "main"
    assert lines.at("[m]", base + 0x900) == ()


def test_without_debug_info_nothing_is_known(folder: Path) -> None:
    made = compiled(folder)
    assert not has_debug_info(made)
    assert not has_debug_info(folder / "nowhere")
    assert not has_debug_info(folder / "sub" / "it's $(one).c")
    addresses = extent(made, "outer")
    lines = read_source_lines({"a": addresses, "b": [1]}, {"a": DebugFile(made)}, arch())
    assert not lines
    assert lines.at("a", addresses[0]) == ()
    assert lines.line("a", addresses[0]) is None


def test_what_is_not_code_has_no_line(folder: Path) -> None:
    made = compiled(folder, "-g")
    addresses = extent(made, "main")
    lines = read_source_lines({"a": [5, addresses[0]]}, {"a": DebugFile(made)}, arch())
    assert lines.at("a", 5) == ()
    assert lines.at("a", addresses[0])


def test_a_damaged_file(folder: Path) -> None:
    made = compiled(folder, "-g")
    whole = made.read_bytes()
    made.write_bytes(whole[: len(whole) // 2])
    assert not has_debug_info(made)
    with pytest.raises(LabError, match="addr2line cannot read"):
        source_lines._addr2line(made, "", [1], arch())

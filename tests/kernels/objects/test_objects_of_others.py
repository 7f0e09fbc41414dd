# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects of ARM, arm64 and RISC-V: the same facts as of x86, from the cross compilers' output."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.emulator import binutils_command
from kdelta.host.target import target
from kdelta.kernels.objects.elf import RELOCATABLE, parse_elf
from kdelta.kernels.objects.elf_machines import ELF_MACHINES
from kdelta.kernels.objects.objects import ObjectContent, read_object

COMPILERS = {
    "arm": ("arm-linux-gnueabihf-", ("-marm", "-march=armv7-a", "-msoft-float")),
    "arm64": ("aarch64-linux-gnu-", ("-mgeneral-regs-only",)),
    "riscv": ("riscv64-linux-gnu-", ("-mcmodel=medany",)),
}
FLAGS = (
    "-O2", "-c", "-ffreestanding", "-fno-pie", "-fno-asynchronous-unwind-tables",
    "-fno-jump-tables", "-fno-section-anchors",
)  # fmt: skip

SOURCE = """
extern int outer(const char *, int);
extern unsigned long jiffies;
static volatile int counter, table[16] = { 1, 2, 3 };
int shared;
struct ops { int (*run)(int); };
static __attribute__((noinline)) int helper(int x) { counter = 7; return outer("text", x) + 1; }
__attribute__((noinline))
int user(int x) { static int used; shared = 70000; return helper(x) + table[x] + used++; }
int other(int x) { static int used; return outer("more", used++) + (int)jiffies; }
const struct ops operations = { helper };
int tail(int x) { counter = 3; return helper(x ^ 5); }
static void *entry __attribute__((section(".initcall6.init"), used)) = user;
"""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) for name in COMPILERS])
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compiled(folder: Path, arch: str, source: str, *more: str) -> bytes:
    path = folder / "a.o"
    prefix, flags = COMPILERS[arch]
    argv = [f"{prefix}gcc", *FLAGS, *flags, *more, "-x", "c", "-", "-o", str(path)]
    subprocess.run(argv, input=source, text=True, check=True)
    return path.read_bytes()


def content(folder: Path, arch: str, source: str, *more: str) -> ObjectContent:
    found = read_object(compiled(folder, arch, source, *more))
    assert found is not None
    return found


def changed(before: ObjectContent, after: ObjectContent) -> set[str]:
    found = set()
    for old, new in ((before.functions, after.functions), (before.data, after.data)):
        found |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return found


def test_functions_and_data_are_those_of_nm(tmp_path: Path, arch: str) -> None:
    found = content(tmp_path, arch, SOURCE)
    nm = [f"{COMPILERS[arch][0]}nm", "-S", str(tmp_path / "a.o")]
    lines = subprocess.run(nm, capture_output=True, text=True, check=True).stdout.splitlines()
    sized = [line.split() for line in lines if len(line.split()) == 4]
    functions = {name: int(size, 16) for _, size, kind, name in sized if kind in "tT"}
    assert {name: code.size for name, code in found.functions.items()} == functions
    assert set(functions) == {"helper", "user", "other", "tail"}
    assert not any("$" in name for name in (*found.functions, *found.data))


def test_what_refers_to_what(tmp_path: Path, arch: str) -> None:
    found = content(tmp_path, arch, SOURCE)
    wanted = {
        "helper": {":counter", "outer"},
        "other": {":used@other", "jiffies", "outer"},
        "user": {":helper", ":table", ":used@user", "shared"},
        "tail": {":counter", ":helper"},
    }
    # An object of arm64 does not tell an anchor from a variable: what lies nearby counts.
    nearby = {":counter", ":used@other", ":used@user", "shared"} if arch == "arm64" else set()
    for name, refs in wanted.items():
        assert refs <= set(found.functions[name].refs) <= refs | nearby
    assert found.data["operations"].refs == (":helper",)
    assert found.collected[".initcall6.init"].refs == ("user",)


def test_relocations_are_those_of_readelf(tmp_path: Path, arch: str) -> None:
    """Where they are, and the symbols that they name."""
    elf = parse_elf(compiled(tmp_path, arch, SOURCE))
    assert elf is not None
    assert elf.type == RELOCATABLE
    assert not any(name.startswith("$") for name in elf.symbols.names)
    said = ["readelf", "-rW", str(tmp_path / "a.o")]
    lines = subprocess.run(said, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = sorted(
        int(line.split()[0], 16)
        for line in lines
        if " R_" in line
        and not any(void in line for void in ("_RELAX", "_ALIGN ", "R_ARM_V4BX", "_NONE"))
    )
    found = [offset for held in elf.relocations.values() for offset in held.offset.tolist()]
    assert sorted(found) == wanted
    assert len(wanted) > 10


@pytest.mark.parametrize("more", [(), ("-ffunction-sections",)])
@pytest.mark.slow
def test_a_change_shows_in_what_it_changes(
    tmp_path: Path, arch: str, more: tuple[str, ...]
) -> None:
    before = content(tmp_path, arch, SOURCE, *more)
    assert changed(before, content(tmp_path, arch, SOURCE, *more)) == set()
    # Code that grows moves all code behind it, and distances over it, and changes nothing else.
    grown = content(tmp_path, arch, SOURCE.replace("+ 1; }", "* 77777; }"), *more)
    assert changed(before, grown) == {"helper"}
    said = content(tmp_path, arch, SOURCE.replace('"more"', '"less"'), *more)
    assert changed(before, said) == {"other"}
    shorter = content(tmp_path, arch, SOURCE.replace('"text"', '"some more text"'), *more)
    assert changed(before, shorter) == {"helper"}
    table = content(tmp_path, arch, SOURCE.replace("{ 1, 2, 3 }", "{ 1, 2, 4 }"), *more)
    assert changed(before, table) == {":table"}


def test_an_addend_counts(tmp_path: Path, arch: str) -> None:
    """Also where it stands in the instruction itself."""
    source = (
        "static int held[64]; int *at(void) { return held + 3; } int *to(void) { return held; }"
    )
    before = content(tmp_path, arch, source)
    assert changed(before, content(tmp_path, arch, source.replace("+ 3", "+ 4"))) == {"at"}
    behind = content(
        tmp_path, arch, f"static int first[8]; int *x(void) {{ return first; }} {source}"
    )
    assert changed(before, behind) - ({"at", "to"} if arch == "arm64" else set()) == {"x", ":first"}
    same = {name: behind.functions[name].hash for name in ("at", "to")}
    assert same == {name: before.functions[name].hash for name in ("at", "to")}


def test_addends_that_stand_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.s"
    path.write_text("""
        .text
        movw r0, #:lower16:there - 0x1234
        movt r0, #:upper16:there + 0x1234
        bl there
        b there + 16
        .data
        .word there - 4
        .word there + 12 - .
    """)
    assembler = binutils_command(target("arm"), "as")
    subprocess.run([*assembler, "-march=armv7-a", path, "-o", tmp_path / "a.o"], check=True)
    elf = parse_elf((tmp_path / "a.o").read_bytes())
    assert elf is not None
    found = [
        addend
        for number, section in enumerate(elf.sections)
        if section.name in (".text", ".data")
        for addend in elf.relocations[number].addend.tolist()
    ]
    assert found == [-0x1234, 0x1234, -8, 8, -4, 12]


def test_alignments_of_sections(tmp_path: Path, arch: str) -> None:
    source = "int one(void) { return 1; }\n__attribute__((aligned(64))) int two(void) { return 2; }"
    found = content(tmp_path, arch, source, "-ffunction-sections", "-falign-functions=32")
    assert (found.alignments[".text.one"], found.alignments[".text.two"]) == (32, 64)


@pytest.mark.slow
def test_what_is_reached_by_an_anchor_is_referred_to(tmp_path: Path) -> None:
    """ARM's compilers take one address for several variables."""
    prefix, flags = COMPILERS["arm"]
    source = """
        static volatile int one = 1, two = 2, far[4096] = { 1 }, last = 3;
        int sum(void) { return one + two; }
        int more(void) { far[4000] = 1; return last; }
    """
    argv = [f"{prefix}gcc", "-O2", "-c", "-fno-pie", *flags, "-fsection-anchors", "-x", "c", "-"]
    path = tmp_path / "a.o"
    subprocess.run([*argv, "-o", str(path)], input=source, text=True, check=True)
    said = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True)
    assert ".LANCHOR" in said.stdout
    found = read_object(path.read_bytes())
    assert found is not None
    assert {":one", ":two"} <= set(found.functions["sum"].refs)
    assert {":far", ":last"} <= set(found.functions["more"].refs)


def test_other_architectures_are_not_read() -> None:
    assert {one.bits for one in ELF_MACHINES.values()} == {32, 64}
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + (1).to_bytes(2, "little")
    assert parse_elf(head + (22).to_bytes(2, "little") + bytes(100)) is None
    # 32-bit ARM in a file of 64 bits.
    assert parse_elf(head + (40).to_bytes(2, "little") + bytes(100)) is None

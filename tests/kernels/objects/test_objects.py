# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects by symbol: against binutils, and what a hash does and does not depend on."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kdelta.kernels.objects.objects import ObjectContent, read_object
from kdelta.kernels.objects.references import immediate_bytes

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "nm", "objdump"))), reason="needs gcc and binutils"
)

FLAGS = (
    "-O2", "-c", "-mcmodel=kernel", "-mno-red-zone", "-fno-pie", "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables", "-fno-jump-tables", "-ffreestanding",
)  # fmt: skip

SOURCE = """
extern int outer(const char *, int);
extern unsigned long jiffies;
static volatile int counter, other_counter, table[16] = { 1, 2, 3 };
int shared;
static const char *const words[] = { "one", "two" };
struct ops { int (*run)(int); };
static __attribute__((noinline)) int helper(int x) { counter = 7; return outer("text", x) + 1; }
__attribute__((noinline))
int user(int x) { static int used; shared = 70000; return helper(x) + table[x] + used++; }
int other(int x) { static int used; return outer(words[x & 1], used++) + (int)jiffies; }
const struct ops operations = { helper };
int tail(int x) { counter = 3; return helper(x ^ 5); }
asm(".pushsection __ex_table,\\"a\\"\\n .long user - .\\n .long user + 4 - .\\n .long 1\\n"
    " .long other - .\\n .long other + 4 - .\\n .long 2\\n .popsection");
static void *entry __attribute__((section(".initcall6.init"), used)) = user;
"""


def compiled(folder: Path, source: str, name: str = "a") -> Path:
    path = folder / f"{name}.o"
    argv = ["gcc", *FLAGS, "-x", "c", "-", "-o", str(path)]
    subprocess.run(argv, input=source, text=True, check=True)
    return path


def content(folder: Path, source: str, name: str = "a") -> ObjectContent:
    found = read_object(compiled(folder, source, name).read_bytes())
    assert found is not None
    return found


def changed(before: ObjectContent, after: ObjectContent) -> set[str]:
    """The functions and data that differ, by name."""
    found = set()
    for old, new in ((before.functions, after.functions), (before.data, after.data)):
        found |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return found


def test_functions_and_data_are_those_of_nm(tmp_path: Path) -> None:
    path = compiled(tmp_path, SOURCE)
    lines = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
    sized = [line.split() for line in lines.splitlines() if len(line.split()) == 4]
    found = read_object(path.read_bytes())
    assert found is not None
    functions = {name: int(size, 16) for _, size, kind, name in sized if kind in "tT"}
    assert {name: code.size for name, code in found.functions.items()} == functions
    named = {name.lstrip(":").partition("@")[0] for name in found.data}
    assert {name.partition(".")[0] for _, _, kind, name in sized if kind not in "tT"} <= named


def test_references_are_those_of_objdump(tmp_path: Path) -> None:
    """Per function the targets of relocations; those to sections are named by what lies there."""
    path = compiled(tmp_path, SOURCE)
    lines = subprocess.run(["objdump", "-dr", path], capture_output=True, text=True, check=True)
    wanted: dict[str, set[str]] = {}
    function = ""
    for line in lines.stdout.splitlines():
        if line.endswith(">:"):
            function = line.split("<")[1].rstrip(">:")
        elif "R_X86_64" in line:
            name = line.split()[-1]
            target = name.split("+")[0].split("-")[0]
            if not target.startswith("."):
                wanted.setdefault(function, set()).add(target)
    found = read_object(path.read_bytes())
    assert found is not None
    for name, targets in wanted.items():
        refs = {ref.lstrip(":").partition("@")[0] for ref in found.functions[name].refs}
        assert targets <= refs | {name}
    assert {":counter", "outer"} <= set(found.functions["helper"].refs)
    assert {":helper", ":table", "shared", ":used@user"} <= set(found.functions["user"].refs)
    assert {":words", "outer", "jiffies", ":used@other"} <= set(found.functions["other"].refs)
    assert {":helper", ":counter"} <= set(found.functions["tail"].refs)
    assert found.data["operations"].refs == (":helper",)
    assert ":table" not in found.functions["other"].refs


def test_same_source_gives_the_same(tmp_path: Path) -> None:
    assert content(tmp_path, SOURCE, "a") == content(tmp_path, SOURCE, "b")


@pytest.mark.parametrize(
    "more",
    [
        'int in_front(int x) { return outer("other text", x) * 3; }',
        "static int used_in_front[100]; int *in_front(void) { return used_in_front; }",
        "int in_front(void) { static int used; static int counter; return used++ + counter++; }",
    ],
)
def test_what_stands_in_front_changes_nothing_else(tmp_path: Path, more: str) -> None:
    """Calls within a section, offsets into sections, strings and numbered statics all shift."""
    first, rest = SOURCE.split("static volatile int counter", 1)
    moved = content(tmp_path, f"{first}{more}\nstatic volatile int counter{rest}", "b")
    names = changed(content(tmp_path, SOURCE), moved)
    assert {name for name in names if "in_front" not in name} == set()
    assert "in_front" in names


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"text"', '"toxt"', {"helper"}),
        ("counter = 3", "counter = 4", {"tail"}),
        ("counter = 3", "counter = 300", {"tail"}),
        ("helper(x ^ 5)", "helper(x ^ 6)", {"tail"}),
        ("helper(x ^ 5)", "user(x ^ 5)", {"tail"}),
        ("counter = 7", "other_counter = 7", {"helper"}),
        ("{ 1, 2, 3 }", "{ 1, 2, 4 }", {":table"}),
        ("{ helper }", "{ user }", {"operations"}),
        ('"two"', '"tww"', {":words"}),
        (".long 1", ".long 3", {"user"}),
        (".long other + 4", ".long other + 5", {"other"}),
        ("other + 4 - .", "user + 9 - .", {"other"}),
    ],
)
def test_what_changes_is_named(tmp_path: Path, old: str, new: str, expected: set[str]) -> None:
    assert SOURCE.count(old) == 1
    after = content(tmp_path, SOURCE.replace(old, new), "b")
    assert changed(content(tmp_path, SOURCE), after) == expected


def test_immediates_do_not_hide_which_variable_is_meant(tmp_path: Path) -> None:
    """`movb $1, b(%rip)` counts from behind its immediate: by 4 alone it would seem to mean a."""
    source = (
        "static volatile char a[4], b, c; void f(void) { %s = 1; } void g(void) { a[0] = b = c; }"
    )
    first = content(tmp_path, source % "b", "b")
    second = content(tmp_path, source % "c", "c")
    assert first.functions["f"].hash != second.functions["f"].hash
    assert ":b" in first.functions["f"].refs
    assert ":c" in second.functions["f"].refs


def test_where_bytes_do_not_tell_both_variables_are_referred_to(tmp_path: Path) -> None:
    """After an instruction that ends in 0x66, `movl` looks as if it were `movw`."""
    source = (
        "static volatile int b, a; int g(void) { return a + b; }\n"
        'void f(void) { asm volatile("movb $0x66, %%al; movl $1, %0" : "=m"(b) :: "al"); }'
    )
    refs = content(tmp_path, source).functions["f"].refs
    assert refs == (":a", ":b")


@pytest.mark.parametrize(
    ("code", "least", "most"),
    [
        ("8b 05", 0, 0),  # mov mem,%eax
        ("c7 05", 4, 4),  # movl $imm32,mem
        ("48 c7 05", 4, 4),
        ("66 c7 05", 2, 4),  # 0x66 may be the end of what is before
        ("66 41 c7 05", 2, 4),
        ("66 90 c7 05", 4, 4),
        ("c6 05", 1, 1),
        ("83 3d", 1, 1),  # cmpl $imm8,mem
        ("f6 05", 1, 1),  # testb $imm8,mem
        ("f7 05", 4, 4),
        ("f7 25", 0, 0),  # mull mem
        ("f7 1d", 0, 0),  # negl mem
        ("0f b6 05", 0, 0),  # movzbl mem,%eax
        ("0f ba 2d", 0, 1),  # btsl $imm8,mem, or what is before ends in 0x0f
        ("0f c7 0d", 0, 4),  # cmpxchg8b mem, or 0x0f is the end of what is before
        ("0f 3a 0f 05", 0, 1),
        ("e8", 0, 0),
        ("0f 85", 0, 0),  # jne
    ],
)
def test_immediates_behind_operands(code: str, least: int, most: int) -> None:
    held = bytes.fromhex("00 00 00 00" + code + "00 00 00 00")
    at = np.array([len(held) - 4])
    found = immediate_bytes(np.frombuffer(held, np.uint8), at)
    assert [int(column[0]) for column in found] == [least, most]


def test_collected_sections(tmp_path: Path) -> None:
    found = content(tmp_path, SOURCE)
    assert set(found.collected) == {"__ex_table", ".initcall6.init"}
    assert found.collected["__ex_table"].size == 24
    assert set(found.collected["__ex_table"].refs) == {"user", "other"}
    assert found.collected[".initcall6.init"].refs == ("user",)


RECORD = """.pushsection .altinstructions,\\"a\\"\\n .long 1b - ., 2f - .\\n .long 3\\n"
        " .byte 1, 1\\n .popsection\\n"
        ".pushsection .altinstr_replacement,\\"ax\\"\\n2: %s\\n .popsection\\n"""
PATCHED = f"""
int key, other_key;
int user(void) {{
    asm volatile("1: nop\\n .pushsection __jump_table,\\"a\\"\\n .balign 8\\n .long 1b - .\\n"
        " .long 1b - .\\n .quad KEY - .\\n .popsection\\n"
        "{RECORD % "REPLACEMENT"}");
    return 1;
}}
int next(void) {{
    asm volatile("1: nop\\n {RECORD % "clc"}");
    return 2;
}}
"""


def test_how_code_is_patched_is_part_of_it(tmp_path: Path) -> None:
    def variant(name: str, key: str, replacement: str) -> ObjectContent:
        text = PATCHED.replace("KEY", key).replace("REPLACEMENT", replacement)
        return content(tmp_path, text, name)

    plain = variant("a", "key", "cld")
    assert "key" in plain.functions["user"].refs
    assert changed(plain, variant("same", "key", "cld")) == set()
    assert "user" in changed(plain, variant("b", "key", "cli"))
    longer = changed(plain, variant("c", "key", "lfence"))
    assert ("user" in longer, "next" in longer) == (True, False)
    assert changed(plain, variant("d", "other_key", "cld")) == {"user"}


def test_aliases_and_weak_functions_have_all_their_names(tmp_path: Path) -> None:
    source = (
        "int real(int x) { return x * 3; }\n"
        'int also(int) __attribute__((alias("real")));\n'
        "__attribute__((weak)) int maybe(int x) { return x; }\n"
    )
    found = content(tmp_path, source)
    assert set(found.functions) == {"real", "also", "maybe"}
    assert found.functions["real"] == found.functions["also"]


def test_assembler_without_symbols_is_not_lost(tmp_path: Path) -> None:
    source = 'asm("label: movl $%d, %%eax\\n ret"); int f(void) { return 1; }'
    before, after = content(tmp_path, source % 1), content(tmp_path, source % 2, "b")
    assert {name.partition("#")[0] for name in changed(before, after)} == {":.text"}


ENDS = """
asm(".globl first\\n .type first, @function\\n first: BODY\\n call never\\n .Lend:\\n"
    ".size first, . - first\\n"
    ".p2align 4\\n .globl next\\n .type next, @function\\n next: ret\\n .size next, . - next\\n"
    ".pushsection __bug_table,\\"aw\\"\\n .long .Lend - .\\n .popsection");
"""


def test_space_behind_a_function_may_grow_and_shrink(tmp_path: Path) -> None:
    found = [
        content(tmp_path, ENDS.replace("BODY", body), name)
        for name, body in (("a", "cld"), ("b", "lfence"))
    ]
    before, after = ({**one.functions, **one.data, **one.collected} for one in found)
    assert ":.text#first" in before
    differing = {
        name for name in before.keys() | after.keys() if before[name].hash != after[name].hash
    }
    assert differing == {"first"}


@pytest.mark.parametrize(
    "text", [b"", b"BC\xc0\xde bitcode", b"\x7fELF\x02\x01", b"\x7fELF\x01\x01" * 9]
)
def test_other_files_are_none(text: bytes) -> None:
    assert read_object(text) is None


def test_programs_and_cut_objects_are_none(tmp_path: Path) -> None:
    path = compiled(tmp_path, SOURCE)
    whole = path.read_bytes()
    assert all(read_object(whole[:cut]) is None for cut in (20, 64, len(whole) // 2))
    assert read_object(Path("/bin/sh").read_bytes()) is None

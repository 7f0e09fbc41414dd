# SPDX-License-Identifier: GPL-2.0-or-later
"""A linker script that takes functions' own sections: which names go where."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernels.kbuild.linker_script import (
    all_but,
    with_data_sections,
    with_function_sections,
)

# As include/asm-generic/vmlinux.lds.h has it: its shape from 6.12 and from 4.14.
NEW = """
#if defined(CONFIG_LD_DEAD_CODE_DATA_ELIMINATION)
#define TEXT_MAIN .text .text.[0-9a-zA-Z_]*
#define DATA_MAIN .data .data.[0-9a-zA-Z_]*
#else
#define TEXT_MAIN .text
#define DATA_MAIN .data
#endif
/* TEXT_MAIN takes .text.commented too */
#define TEXT_TEXT \\
\t\tALIGN_FUNCTION(); \\
\t\t*(.text.hot .text.hot.*) \\
\t\t*(TEXT_MAIN .text.fixup) \\
\t\t*(.text.unlikely .text.unlikely.*) \\
\t\tNOINSTR_TEXT \\
\t\t*(.text.asan.* .text.tsan.*)

#define INIT_TEXT \\
\t*(.init.text .init.text.*) \\
\t*(.text.startup)
"""
OLD = """
#define TEXT_MAIN .text
#define TEXT_TEXT \\
\t\tALIGN_FUNCTION(); \\
\t\t*(.text.hot TEXT_MAIN .text.fixup .text.unlikely) \\
\t\t*(.ref.text)
"""
LATER = """
#define TEXT_MAIN \\
\t.text \\
\t.text.[_0-9A-Za-df-rt-z]* \\
\t.text.s[_0-9A-Za-su-z]*
#define TEXT_UNLIKELY *(.text.unlikely .text.unlikely.*)
#define TEXT_TEXT \\
\t\tTEXT_UNLIKELY \\
\t\t*(.text.hot .text.hot.*) \\
\t\t*(TEXT_MAIN .text.fixup)
#define INIT_TEXT *(.text.startup .text.startup.*)
"""
# The shape from 6.12: what once warned is zeroed between two symbols.
DATA = """
#define DATA_MAIN .data
#define SDATA_MAIN .sdata
#define BSS_MAIN .bss
#define DATA_DATA \\
\t*(.xiptext) \\
\t*(DATA_MAIN) \\
\t*(.data.decrypted) \\
\t*(.data..shared_aligned) \\
\t__start_once = .; \\
\t*(.data.once) \\
\t__end_once = .;
#define BSS(bss_align) .bss : { *(.bss..page_aligned) *(.bss.prominit*) *(BSS_MAIN) *(COMMON) }
"""
THUNKS = "SECTIONS { .text : { TEXT_TEXT *(.text.__x86.indirect_thunk) *(.text..__x86.*) } }"

WORDS = st.text(alphabet="abx_.", min_size=1, max_size=6)
NAMES = st.from_regex(r"[abx_0Z][abx_.0Z]{0,7}", fullmatch=True)


def main_patterns(script: str) -> list[str]:
    """What the script's TEXT_MAIN takes; all of its definitions must take the same."""
    found = {str(match).strip() for match in re.findall(r"define TEXT_MAIN(.*)", script)}
    assert len(found) == 1
    words: str = found.pop()
    return words.split()


def takes(patterns: list[str], section: str) -> bool:
    return any(fnmatchcase(section, pattern) for pattern in patterns)


def description(script: str, word: str) -> str:
    """The input-section description in TEXT_TEXT that has this word."""
    found: list[str] = re.findall(r"\*\(([^()]*)\)", script)
    return next(one for one in found if word in one.split())


@pytest.mark.slow
@given(st.sets(WORDS), st.sets(WORDS), NAMES)
def test_all_but_some_words(words: set[str], starts: set[str], name: str) -> None:
    patterns = list(all_but(words, starts))
    matching = [pattern for pattern in patterns if fnmatchcase(name, pattern)]
    left = name not in words and not name.startswith(tuple(starts))
    assert len(matching) == (1 if left else 0)


@pytest.mark.parametrize("script", [NEW, OLD, LATER])
@pytest.mark.parametrize(
    "name",
    ["do_sys_open", "hotplug", "unlikely_one", "un", "u.isra.0", "asan", "startup", "exit",
     "x86_init", "__x86", "split_page", "fixup_exception.part.0", "Zstd"],
)  # fmt: skip
def test_functions_are_main_text(script: str, name: str) -> None:
    changed = with_function_sections(script, [THUNKS])
    assert changed is not None
    assert takes(main_patterns(changed), f".text.{name}")


@pytest.mark.parametrize("script", [NEW, OLD, LATER])
@pytest.mark.parametrize(
    "section",
    [".text.hot", ".text.hot.schedule", ".text.unlikely", ".text.unlikely.panic",
     ".text.split.f", ".text.startup.main", ".text.exit.f",
     ".text.__x86.indirect_thunk", ".text..__x86.return_thunk", ".init.text", ".text..refcount"],
)  # fmt: skip
def test_what_is_not_main_text(script: str, section: str) -> None:
    changed = with_function_sections(script, [THUNKS])
    assert changed is not None
    assert not takes(main_patterns(changed), section)


def test_instrumented_code_stays_where_the_script_has_it() -> None:
    changed = with_function_sections(NEW)
    assert changed is not None
    assert not takes(main_patterns(changed), ".text.asan.module_ctor")
    assert takes(main_patterns(changed), ".text.commented"), "a comment takes nothing"


@pytest.mark.parametrize("script", [NEW, OLD, LATER])
def test_cold_functions_go_with_the_cold_ones_of_no_name(script: str) -> None:
    changed = with_function_sections(script)
    assert changed is not None
    cold = description(changed, ".text.unlikely").split()
    for word in ("unlikely", "split", "exit"):
        assert takes(cold, f".text.{word}.f")
    assert takes(description(changed, ".text.hot").split(), ".text.hot.f")


@pytest.mark.parametrize("script", [NEW, OLD, LATER])
def test_hot_main_and_cold_text_are_apart(script: str) -> None:
    changed = with_function_sections(script)
    assert changed is not None
    main = description(changed, "TEXT_MAIN")
    assert main == "TEXT_MAIN .text.fixup"
    assert changed.index("(.text.hot") < changed.index(main)


def test_startup_code_stays_where_the_script_takes_it() -> None:
    later, new = with_function_sections(LATER), with_function_sections(NEW)
    assert later is not None
    assert new is not None
    assert not takes(description(later, ".text.unlikely").split(), ".text.startup.f")
    assert takes(description(new, ".text.unlikely").split(), ".text.startup.f")


def test_nothing_else_changes() -> None:
    changed = with_function_sections(NEW)
    assert changed is not None
    before, after = NEW.splitlines(), changed.splitlines()
    assert len(before) == len(after)
    differing = [old for old, new in zip(before, after, strict=True) if old != new]
    assert differing == [
        "#define TEXT_MAIN .text .text.[0-9a-zA-Z_]*",
        "#define TEXT_MAIN .text",
        "\t\t*(.text.unlikely .text.unlikely.*) \\",
    ]


def test_changing_it_twice_changes_nothing_more() -> None:
    once = with_function_sections(NEW)
    assert once is not None
    assert with_function_sections(once) == once


@pytest.mark.parametrize("script", ["", "#define TEXT_MAIN .text\n", OLD.replace("MAIN", "OTHER")])
def test_a_script_of_another_kind(script: str) -> None:
    assert with_function_sections(script) is None


def data_patterns(script: str) -> list[str]:
    return [
        word
        for name in ("DATA_MAIN", "BSS_MAIN")
        for word in re.findall(rf"define {name}(.*)", script)[0].split()
    ]


@pytest.mark.parametrize(
    ("section", "is_main"),
    [
        (".data", True), (".data.jiffies_lock", True), (".data.once_only", True),
        (".data.__already_done.5", True), (".bss.buffer", True), (".bss.prom", True),
        (".data.once", False), (".data.decrypted", False), (".data..percpu", False),
        (".data.rel.ro", False), (".bss..page_aligned", False), (".bss.prominit_one", False),
    ],
)  # fmt: skip
def test_variables_are_main_data(section: str, is_main: bool) -> None:
    changed = with_data_sections(DATA)
    assert changed is not None
    assert takes(data_patterns(changed), section) == is_main
    assert with_data_sections(changed) == changed


def test_what_another_script_names_is_no_main_data() -> None:
    changed = with_data_sections(DATA, [".data : { *(.data.init_task) }"])
    assert changed is not None
    assert not takes(data_patterns(changed), ".data.init_task")
    assert with_data_sections(DATA.replace("BSS_MAIN .bss", "BSS .bss")) is None

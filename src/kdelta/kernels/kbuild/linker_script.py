# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's linker script made to take functions that are sections of their own (.text.NAME),
and variables (.data.NAME, .bss.NAME).

Compilers put a function that is rarely called into .text.unlikely.NAME, and linker scripts give
meanings to more such names. What the script takes as main text must leave those alone, and a
linker script has no way to say "all but"; so it lists what is left.
"""

import re
import string
from collections.abc import Collection, Iterable, Iterator

SCRIPT = "include/asm-generic/vmlinux.lds.h"
ARCH_SCRIPTS = ("arch/{arch}/kernel/vmlinux.lds.S", "arch/{arch}/include/asm/vmlinux.lds.h")
"""Those of an architecture; not all have the second."""

_MAIN = re.compile(r"^(#[ \t]*define[ \t]+TEXT_MAIN\b)(?:.*\\\n)*.*$", re.MULTILINE)
_NAMED = r"(?<![\w.])\.{kind}\.(\w[\w.]*?)(\.?\*)?(?=[\s)\\]|$)"
_DATA = {
    kind: re.compile(rf"^(#[ \t]*define[ \t]+{kind.upper()}_MAIN\b)(?:.*\\\n)*.*$", re.MULTILINE)
    for kind in ("data", "bss")
}
# What compilers call so besides variables, in code that can be moved.
_DATA_BY_COMPILER = ("rel",)
_TEXT = re.compile(r"^#[ \t]*define[ \t]+TEXT_TEXT\b(?:.*\\\n)*.*$", re.MULTILINE)
_TEXT_PART = re.compile(r"^#[ \t]*define[ \t]+TEXT_\w+(?:.*\\\n)*.*$", re.MULTILINE)

# What gcc puts before the name of a function, -ffunction-sections given: default_function_section
# and unlikely_text_section_p of gcc 12, and what clang adds.
_COLD = ("unlikely", "split", "startup", "exit")
_BY_COMPILER = ("hot", *_COLD)
# Without a dot behind, these are functions of that name: what the compiler puts there has one.
_ALSO_FUNCTIONS = ("startup", "exit", "fixup")
_WITH_MAIN = re.compile(r"\*\(([^()]*\bTEXT_MAIN\b[^()]*)\)")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FIRST = string.digits + string.ascii_uppercase + "_" + string.ascii_lowercase


def with_function_sections(script: str, others: Iterable[str] = ()) -> str | None:
    """Return the text of include/asm-generic/vmlinux.lds.h with a TEXT_MAIN that also takes
    .text.NAME of each function; None if it has no TEXT_MAIN and TEXT_TEXT (kernels before 4.14).

    others: texts of scripts that use it. Section names that one of these texts has stay where they
    are, and cold functions (.text.unlikely.NAME) get to where the cold ones of no name are.
    """
    if not _MAIN.search(script) or not _TEXT.search(script):
        return None
    words, starts = _taken("text", [_MAIN.sub("", script), *others], _BY_COMPILER)
    words.difference_update(_ALSO_FUNCTIONS)
    patterns = " ".join([".text", *(f".text.{one}" for one in all_but(words, starts))])
    changed = _WITH_MAIN.sub(lambda match: _apart(match[1].split()), script)
    changed = _TEXT_PART.sub(lambda match: _with_named(match[0], script), changed)
    return _MAIN.sub(lambda match: f"{match[1]} {patterns}", changed)


def with_data_sections(script: str, others: Iterable[str] = ()) -> str | None:
    """Return that text with a DATA_MAIN and a BSS_MAIN that also take .data.NAME and .bss.NAME of
    each variable; None if it lacks one of them. others: as above.
    """
    texts, changed = [script, *others], script
    for kind, main in _DATA.items():
        if not main.search(changed):
            return None
        words, starts = _taken(kind, [main.sub("", text) for text in texts], _DATA_BY_COMPILER)
        names = " ".join([f".{kind}", *(f".{kind}.{one}" for one in all_but(words, starts))])
        changed = main.sub(rf"\1 {names}", changed)
    return changed


def _taken(
    kind: str, scripts: Iterable[str], by_compiler: Iterable[str]
) -> tuple[set[str], set[str]]:
    """What has a place of its own among the sections .KIND.NAME: whole names, and how names start;
    those of the compiler have a dot behind.
    """
    words: set[str] = set()
    starts = {f"{word}." for word in by_compiler}
    named = re.compile(_NAMED.format(kind=kind), re.MULTILINE)
    for script in scripts:
        for word, star in named.findall(_COMMENT.sub("", script)):
            if star == "*":
                starts.add(word)
            elif star:
                starts.add(f"{word}.")
            else:
                words.add(word)
    return words, starts


def _with_named(macro: str, script: str) -> str:
    """A part of TEXT_TEXT that takes hot and cold functions with their names, too, where no part of
    the script does so yet.
    """

    def with_names(match: re.Match[str]) -> str:
        patterns = (f".text.{one}.*" for one in (_COLD if match[1] == "unlikely" else [match[1]]))
        return " ".join([match[0], *(one for one in patterns if one not in script)])

    return re.sub(r"(?<![\w.])\.text\.(hot|unlikely)(?=[\s)\\])", with_names, macro)


def _apart(words: list[str]) -> str:
    """Hot, main and cold text, each in a description of its own: what is in one with main text is
    mixed with it (kernels before 4.20).
    """
    hot = [word for word in words if word.startswith(".text.hot")]
    cold = [word for word in words if word.startswith(".text.unlikely")]
    main = [word for word in words if word not in (*hot, *cold)]
    return " ".join(f"*({' '.join(held)})" for held in (hot, main, cold) if held)


def all_but(words: Collection[str], starts: Collection[str]) -> Iterator[str]:
    """Glob patterns that match all names of functions but these words and what starts so.

    They need *, ? and [...] only, and no two of them match the same name.
    """
    yield from _below("", set(words), [one for one in starts if one])


def _below(path: str, words: set[str], starts: list[str]) -> Iterator[str]:
    depth = len(path)
    nearby = [one for one in (*words, *starts) if one.startswith(path) and len(one) > depth]
    following = sorted({one[depth] for one in nearby})
    if path and path not in words:
        yield path
    if not path:
        yield f"[{''.join(c for c in _FIRST if c not in following)}]*"
    elif following:
        yield f"{path}[!{''.join(following)}]*"
    else:
        yield f"{path}?*"
    for one in following:
        if path + one not in starts:
            yield from _below(path + one, words, starts)

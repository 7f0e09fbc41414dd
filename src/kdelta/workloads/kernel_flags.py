# SPDX-License-Identifier: GPL-2.0-or-later
"""The flags by which kbuild compiled a file, as far as they mean something to a user program.

What shapes the code of a function is kept: optimisation, alignment, stack protection, padding, and
which registers and instructions may be used. Left out is what

- says where headers and symbols are (-I, -D, -include, -nostdinc) or only warns (-W);
- needs what only the kernel has: thunks for indirect jumps and returns, which a kernel that runs
  on the lab's machine has patched away (-mindirect-branch, -mfunction-return), the places of a
  stack guard (-mstack-protector-guard; user space has one of its own, at the same price), run-time
  libraries of sanitizers and profilers, compiler plugins, the code model of high addresses;
- leaves no machine code (-flto).

Calls to a tracer at the start of each function are kept as what the kernel makes of them: NOPs.
"""

import re
import shlex

import msgspec

_SHAPES_CODE = re.compile(r"-(O.*|f.*|m.*|std=.*|-param=.*|-target=.*|pg)")
_NOT_FOR_USERS = re.compile(
    r"-m(indirect-branch|function-return|retpoline|stack-protector-guard|cmodel=).*"
    r"|-f(no-)?sanitize.*|-fprofile.*|-ftest-coverage|-fplugin.*|-finstrument.*|-flto.*"
    r"|-f(macro|file|debug)-prefix-map.*|-fmodules?.*|-mllvm"
)
_TRACER = frozenset({"-pg", "-mfentry", "-mrecord-mcount", "-mnop-mcount"})
_WITH_VALUE = frozenset({"-include", "-isystem", "-I", "-D", "-U", "-mllvm", "-Xclang", "-o", "-x"})
_WRAPPERS = frozenset({"ccache", "sccache", "distcc"})  # which have caches of their own


class UserFlags(msgspec.Struct, frozen=True):
    """The words that start the compiler, the flags to use, and those of f and m left out."""

    compiler: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[str, ...]


def user_flags(command: str) -> UserFlags:
    """Reads the command of a .cmd file. ValueError when it is not that of a compiler."""
    words = shlex.split(command.replace("$$", "$").replace("$(pound)", "#"))
    if ";" in words:
        words = words[: words.index(";")]
    start = next((at for at, word in enumerate(words) if word.startswith("-")), 0)
    if not start:
        raise ValueError(f"not a compiler's command: {command[:80]}")
    compiler = tuple(word for word in words[:start] if word not in _WRAPPERS)
    shaping = [flag for flag in _without_values(words[start:]) if _SHAPES_CODE.fullmatch(flag)]
    traced = "-mfentry" in shaping
    shaping = [flag for flag in shaping if flag not in _TRACER]
    kept = [flag for flag in shaping if not _NOT_FOR_USERS.fullmatch(flag)]
    left_out = [flag for flag in shaping if flag not in kept]
    if traced and "clang" not in compiler[-1]:  # which has no such NOPs on x86
        kept += ("-pg", "-mfentry", "-mnop-mcount")
    return UserFlags(compiler, tuple(kept), tuple(dict.fromkeys(left_out)))


def _without_values(words: list[str]) -> list[str]:
    """The flags without those whose value is a word of its own, and without those values."""
    flags, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in _WITH_VALUE:
            skip = True
        else:
            flags.append(word)
    return flags

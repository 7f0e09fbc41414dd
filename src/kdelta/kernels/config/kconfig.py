# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of a .config: read, written, compared. An option is named with its CONFIG_ prefix."""

import re
from collections.abc import Callable, Mapping

import msgspec

Config = dict[str, str]
"""An option's name -> its value as written: y, m, n, a number or a text with its quotes."""

Normalize = Callable[[Mapping[str, str]], Config]
"""What the tree's own olddefconfig makes of a config."""

OFF = "n"
PREFIX = "CONFIG_"

_SET = re.compile(r"(CONFIG_\w+)=(.*)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")
_HEAD = re.compile(r"^# .*\bKernel Configuration$", re.MULTILINE)
_COMPILER = re.compile(r"^CONFIG_CC_(?:VERSION_TEXT=|IS_(?:GCC|CLANG)=y)", re.MULTILINE)
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)")

# allnoconfig with what the lab needs has 1,400; a fragment that is cut from a config has a few.
# Before Linux 4.18 no line names the compiler.
_WHOLE_FROM = 500
_OLD_WHOLE_FROM = 1000


class OptionFlip(msgspec.Struct, frozen=True, order=True):
    """An option that differs between two configs; a value is "n" where there is no such line."""

    option: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.option.removeprefix(PREFIX)} {self.before} -> {self.after}"


def parse_config(text: str) -> Config:
    """The options of a .config or a fragment, "n" for those said to be not set.

    As in kconfig the last line about an option wins, and is the one whose place counts.
    """
    found: Config = {}
    for raw in text.splitlines():
        line = raw.strip()
        if match := _SET.fullmatch(line):
            name, value = match[1], match[2].strip()
        elif match := _UNSET.fullmatch(line):
            name, value = match[1], OFF
        else:
            continue
        found.pop(name, None)
        found[name] = value
    return found


def render_config(config: Mapping[str, str]) -> str:
    """The lines that say these options, in their order; parse_config gives an equal mapping."""
    return "".join(f"{line_of(name, value)}\n" for name, value in config.items())


def line_of(option: str, value: str) -> str:
    """The line of a .config that says this."""
    return f"# {option} is not set" if value == OFF else f"{option}={value}"


def in_words(value: str) -> str:
    """A value as a sentence has it: off, on, a module, or itself."""
    return {"n": "off", "y": "on", "m": "a module"}.get(value, value)


def value_of(config: Mapping[str, str], option: str) -> str:
    """An option's value; "n" for one that the config does not mention, which means the same."""
    return config.get(option, OFF)


def same_value(one: str, other: str) -> bool:
    """Whether two values mean the same: numbers may be written in more than one way."""
    return one == other or (
        is_number(one) and is_number(other) and option_number(one) == option_number(other)
    )


def is_number(value: str) -> bool:
    """Whether this is how an int or hex option's value is written."""
    return bool(_NUMBER.fullmatch(value))


def option_number(value: str) -> int:
    """The value of an int or hex option; ValueError for other kinds."""
    return int(value, 16 if "x" in value.lower() else 10)


def quoted(value: str) -> str:
    """A value as it has to be written: a text that lost its quotes in a shell gets them back."""
    if value in ("y", "m", "n", "") or value.startswith('"') or is_number(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_generated(text: str) -> bool:
    """Whether kbuild wrote all of it, which means that every option is in it: it names the
    compiler, and has far more options than a fragment that was cut from it.
    """
    options = len(parse_config(text))
    return (options >= _WHOLE_FROM and bool(_COMPILER.search(text))) or (
        options >= _OLD_WHOLE_FROM and bool(_HEAD.search(text))
    )


def without_modules(config: Mapping[str, str]) -> Config:
    """The config with what would be a module left out instead, as mod2noconfig does."""
    return {name: OFF if value == "m" else value for name, value in config.items()}


def modules_of(config: Mapping[str, str]) -> tuple[str, ...]:
    """The options that are built as modules."""
    return tuple(name for name, value in config.items() if value == "m")


def explain_diff(before: Mapping[str, str], after: Mapping[str, str]) -> list[OptionFlip]:
    """The options whose values differ, by name. What is off in one and unknown to the other is
    the same.
    """
    return [
        OptionFlip(name, value_of(before, name), value_of(after, name))
        for name in sorted({*before, *after})
        if not same_value(value_of(before, name), value_of(after, name))
    ]

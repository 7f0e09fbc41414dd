#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes src/kdelta/cli/words.json, by which shells complete command lines; see cli/words.py."""

import json
import sys
import typing
from pathlib import Path

from kdelta.cli.command import ArgumentParam, OptionParam
from kdelta.cli.commands import COMMANDS, load_command
from kdelta.cli.words import TABLE


def table() -> dict[str, dict[str, list[str] | str]]:
    """Return, by command, what its options and (under "") its arguments take."""
    found: dict[str, dict[str, list[str] | str]] = {}
    for name in COMMANDS:
        row = found[name] = {}
        for param in load_command(name).params:
            if isinstance(param, ArgumentParam):
                row[""] = _listed(
                    param.declared.values or ("KERNEL" if param.declared.kernels else "")
                )
            else:
                row.update(dict.fromkeys(param.opts, "" if param.is_flag else _value(param)))
    return found


def _value(param: OptionParam) -> list[str] | str:
    """The values of an option, or their kind; "?" if these are not known."""
    if param.declared.values:
        return _listed(param.declared.values)
    if typing.get_origin(param.item) is typing.Literal:
        return [*typing.get_args(param.item)]
    if isinstance(param.item, type) and issubclass(param.item, Path):
        return "FILE"
    if choices := getattr(param.type, "choices", None):
        return [str(one) for one in choices]
    return "?"


def _listed(values: str) -> list[str] | str:
    """The kinds of words in capitals as they are, else the words themselves."""
    return values if values.isupper() or not values else values.split("|")


def text() -> str:
    """Return the file: a command a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table().items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write the file; with --check, see that it is as it would be written."""
    if "--check" not in sys.argv:
        TABLE.write_text(text())
    elif TABLE.read_text() != text():
        sys.exit(f"{TABLE} is not that of the commands: scripts/make_words.py writes it")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes src/kdelta/cli/words.json, by which shells complete command lines; see cli/words.py."""

import json
import sys
from typing import Any

from kdelta.cli.main import COMMANDS, load_command
from kdelta.cli.words import TABLE
from kdelta.report.exports import EXPORTS
from kdelta.spec.run import MODES
from kdelta.studies.documents import DOCUMENTS
from kdelta.studies.forms import FORMS

_LISTED: dict[str, list[str]] = {
    "--mode": [*MODES],
    "--format": [*FORMS],
    "--export": [*EXPORTS],
    "--qemu": ["host", "pin"],
}
_KINDS = {
    "--workload": "WORKLOAD",
    "--operation": "OPERATION",
    "--region": "OPERATION",
    "--cpu": "CPU",
    "--arch": "ARCH",
    "--with": "KERNEL",
    "--kernel": "KERNEL",
}
_FILES = ("FILE", "PATH", "DIR", "RESULTS", ".config", "OLD", "PROGRAM")
_ARGUMENTS: dict[str, list[str] | str] = {
    "show": "STUDY|RUN",
    "report": "STUDY",
    "rm": "STUDY|RUN",
    "profile": "RUN|KERNEL",
    "diff": "RUN|KERNEL",
    "cpus": "CPU|FILE",
    "series": "KERNEL|FILE",
    "pin": ["show", "fetch", "pack"],
    "completion": ["bash", "zsh", "fish"],
    "schema": [*DOCUMENTS],
    "log": "",
    "kernels": "",
}


def table() -> dict[str, dict[str, list[str] | str]]:
    """Return, by command, what its options and (under "") its arguments take."""
    found: dict[str, dict[str, list[str] | str]] = {}
    for name in COMMANDS:
        row = found[name] = {}
        for param in load_command(name).params:
            is_argument = param.param_type_name == "argument"
            for one in ("",) if is_argument else param.opts:
                value = _ARGUMENTS.get(name, "KERNEL") if is_argument else _value(param)
                row[one] = "" if not is_argument and param.is_flag else value
    return found


def _value(param: Any) -> list[str] | str:
    """The values of an option, or their kind; "?" if these are not known."""
    name, shown = param.opts[-1], param.metavar or ""
    if choices := getattr(param.type, "choices", None):
        return [str(one) for one in choices]
    if name in _LISTED:
        return _LISTED[name]
    if "|" in shown:
        return [*shown.split("|")]
    if name in _KINDS:
        return _KINDS[name]
    return "FILE" if any(word in shown for word in _FILES) else "?"


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

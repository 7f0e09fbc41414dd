#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes man pages from the program's help: `make man` writes them to build/man/man1."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from kdelta import __version__  # noqa: E402
from scripts.docs_pages import all_commands, paragraphs  # noqa: E402

_EXIT = "Exit codes"
_FILES = {
    "~/.cache/kdelta": "what can be made again: kernels, snapshots, the pinned QEMU, builds",
    "~/.local/share/kdelta": "the store: all runs and studies",
    "~/.config/kdelta/defaults.toml": "defaults of options",
    "~/.config/kdelta/cpus": "your own CPU files",
}
_RELATED = {
    "compare": ("gate", "diff", "report"),
    "gate": ("compare", "bisect"),
    "run": ("profile", "show", "runs"),
    "bisect": ("series", "ablate"),
    "ablate": ("bisect", "series"),
    "series": ("bisect", "ablate"),
    "layout": ("place", "cpus"),
    "place": ("layout", "cpus"),
    "profile": ("diff", "run"),
    "diff": ("profile", "compare"),
    "report": ("show", "rm"),
}


def pages() -> dict[str, str]:
    """Return the pages by the names of their files."""
    group, context, commands = all_commands()
    every = [f"kdelta-{name}" for name in commands]
    found = {"kdelta.1": "\n".join(_main_page(group, commands)) + "\n"}
    for name, command in commands.items():
        own = command.make_context(name, [], parent=context, resilient_parsing=True)
        near = ["kdelta", *(f"kdelta-{one}" for one in _RELATED.get(name, ()))]
        assert set(near) <= {"kdelta", *every}, name
        lines = [
            *_head(f"kdelta-{name}", command.help),
            *_synopsis([f"kdelta {name}", *command.collect_usage_pieces(own)]),
            *_description(command.help),
            *_options(param.get_help_record(own) for param in command.get_params(own)),
            *_ends(command.epilog, group.epilog, near),
        ]
        found[f"kdelta-{name}.1"] = "\n".join(lines) + "\n"
    return found


def _main_page(group: Any, commands: dict[str, Any]) -> Iterator[str]:
    yield from _head("kdelta", group.help)
    yield from _synopsis(["kdelta", "COMMAND", "[ARGS]..."])
    yield from _description(group.help)
    yield ".SH COMMANDS"
    for name, command in commands.items():
        yield from (".TP", rf".BR kdelta\-{name} (1)", _text(_first(command.help)))
    yield from _options([("--version", "Show the version."), ("-h, --help", "Show the help.")])
    yield from _ends("", group.epilog, [f"kdelta-{name}" for name in commands])


def _head(name: str, text: str) -> Iterator[str]:
    yield r".\" Made by scripts/man_pages.py from the help of kdelta."
    yield f'.TH "{name.upper()}" 1 "" "kdelta {__version__}" "kdelta"'
    yield from (".SH NAME", rf"{_plain(name)} \- {_text(_first(text).rstrip('.'))}")


def _first(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _synopsis(pieces: Iterable[str]) -> Iterator[str]:
    command, *others = pieces
    yield from (".SH SYNOPSIS", f".B {_plain(command)}", _plain(" ".join(others)))


def _description(text: str) -> Iterator[str]:
    yield ".SH DESCRIPTION"
    for at, part in enumerate(text.split("\n\n")):
        yield from ([".PP"] if at else [])
        yield _text(" ".join(part.split()))


def _options(records: Iterable[tuple[str, str] | None]) -> Iterator[str]:
    yield ".SH OPTIONS"
    for record in records:
        if record:
            words, effect = record
            yield from (".TP", f".B {_plain(words)}", _text(" ".join(effect.split()) or "-"))


def _ends(own: str | None, general: str, near: Iterable[str]) -> Iterator[str]:
    """The sections behind the options: what the help ends with, and what all pages have."""
    exits = [part for part in paragraphs(own) if part.startswith(_EXIT)]
    for part in paragraphs(own):
        if part not in exits:
            title, _, lines = part.partition("\n")
            if lines and title.endswith(":"):
                yield from (f'.SS "{_text(title[:-1])}"', *_verbatim(lines))
            else:
                yield from (".PP", *_verbatim(part))
    yield ".SH EXIT STATUS"
    is_own = any(part.startswith(f"{_EXIT}:") for part in exits)
    if not is_own:
        for code, meaning in re.findall(r"(\d+) ([^,.]+)", general):
            yield from (".TP", f".B {code}", _text(meaning))
    for at, part in enumerate(exits):
        title, _, lines = part.partition("\n")
        yield from ([".PP"] if at or not is_own else [])
        yield from (_text(title), *(_verbatim(lines) if lines else ()))
    yield ".SH ENVIRONMENT"
    for name, effect in environment():
        yield from (".TP", f".B {name}", _text(effect))
    yield ".SH FILES"
    for path, what in _FILES.items():
        yield from (".TP", f".I {_plain(path)}", _text(what))
    yield ".SH SEE ALSO"
    yield ",\n".join(f".BR {_plain(one)} (1)" for one in near).replace(",\n", " ,\n")


def environment() -> list[tuple[str, str]]:
    """Return the variables that kdelta reads, and what they do: the table of the documentation."""
    page = (ROOT / "docs" / "environment.md").read_text()
    table = page.partition("## Read by kdelta")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    return [(name, re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", effect)) for name, effect in rows]


def _verbatim(text: str) -> list[str]:
    return [".nf", *(_plain(line) for line in text.splitlines()), ".fi"]


def _text(text: str) -> str:
    """Prose: a dash in front of a word is one that is typed."""
    escaped = text.replace("\\", r"\e").replace("`", "")
    return _guarded(re.sub(r"(?<!\w)-(?=[\w-])|--", lambda found: r"\-" * len(found[0]), escaped))


def _plain(text: str) -> str:
    """What is typed as it is."""
    return _guarded(text.replace("\\", r"\e").replace("-", r"\-"))


def _guarded(line: str) -> str:
    """A line that groff takes for no request."""
    return rf"\&{line}" if line[:1] in {".", "'"} else line


def main() -> None:
    """Write all pages to build/man/man1."""
    folder = ROOT / "build" / "man" / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
    print(f"{folder}: {len(list(folder.iterdir()))} pages; man -M {folder.parent} kdelta")


if __name__ == "__main__":
    main()

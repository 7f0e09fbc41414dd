# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that complete a command line, for a shell: nothing is fetched, built or imported that
takes long, and nothing is ever an error.
"""

import contextlib
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_ROOMS = _HERE.parent
TABLE = _HERE / "words.json"
"""By command: its options, each with its values, or with what its value is called in the help; and
its arguments, by the same words. scripts/make_words.py writes it.
"""

_SPECS = ("deb:", "deb-src:", "git:", "tree:", "image:", "rpm:", "pkg:")
_CHANGES = (
    *("+cmdline:", "+CONFIG_", "+defconfig", "+kvm_guest.config", "+KCFLAGS=", "+base:"),
    *(
        "+order:",
        "+shuffle:",
        "+dshuffle:",
        "+align:",
        "+sections",
        "+kernel-mode",
        "+allow-unknown",
        "+fuzz:",
        "ARCH=",
        "LLVM=1",
    ),
)
_PATHS = ("tree:", "git:", "image:", "rpm:", "pkg:", "+base:", "+order:")
_LATEST_IDS = 30
_APT_SECONDS = 1.0
_ID_LETTERS = 8
_UNSAFE = re.compile(r"[^\w@%+=:,./~-]")


def print_words(arguments: Sequence[str]) -> None:
    """Print what may complete a command line, a line each.

    arguments: `bash`, the line as far as the cursor, and the characters that end words there; or
    `words` and the words, of which the last is to be completed.
    """
    with contextlib.suppress(Exception):
        if arguments[0] == "bash":
            found = for_bash(arguments[1], arguments[2])
        else:
            found = completed(arguments[1:])
        # A file's name may have what acts on a terminal, and a shell prints words as they are.
        sys.stdout.write("".join(f"{word}\n" for word in found if word.isprintable()))
        sys.stdout.flush()


def for_bash(line: str, breaks: str) -> list[str]:
    """Return the words without what bash holds for finished: all before the last colon."""
    words, quote = _split(line)
    done = max((words[-1].rfind(mark) + 1 for mark in ":=" if mark in breaks), default=0)
    found = [word[done:] for word in completed(words[1:])]
    return found if quote else [_UNSAFE.sub(r"\\\g<0>", word) for word in found]


def _split(line: str) -> tuple[list[str], str]:
    """The words of a line as a shell reads them, of which the last is empty after a blank, and the
    quote that the last one is in.
    """
    for quote in ("", '"', "'"):
        with contextlib.suppress(ValueError):
            words = shlex.split(line + quote)
            return ([*words, ""] if not quote and line[-1:].isspace() else words), quote
    return line.split(), ""


def completed(words: Sequence[str]) -> list[str]:
    """Return what may stand in place of the last of these words, which follow `kdelta`."""
    *before, word = words
    table: dict[str, dict[str, list[str] | str]] = json.loads(TABLE.read_text())
    name = next((one for one in before if not one.startswith("-")), "")
    if name not in table:
        return [] if name else _begin_so([*table, "--help", "--version"], word)
    if "--" in before:
        return list(_files(word))
    options = table[name]
    option, is_value, value = word.partition("=")
    if is_value and option in options:
        return [f"{option}={one}" for one in _values(options[option], value, before)]
    if before[-1] in options and options[before[-1]]:
        return list(_values(options[before[-1]], word, before))
    if word.startswith("-"):
        return _begin_so([one for one in (*options, "--help") if one.startswith("-")], word)
    return list(dict.fromkeys(_values(options.get("", ""), word, before)))


def _begin_so(known: Iterable[str], word: str) -> list[str]:
    return [one for one in known if one.startswith(word)]


def _values(kind: list[str] | str, word: str, before: Sequence[str]) -> Iterator[str]:
    """Those of an option or argument whose values are listed, or called so."""
    if not isinstance(kind, str):
        yield from _begin_so(kind, word)
        return
    for one in kind.split("|"):
        if one in _KINDS:
            yield from (found for found in _KINDS[one](word, before) if found.startswith(word))


def _kernels(word: str, _: Sequence[str]) -> Iterator[str]:
    """Kernel specs: kinds of them, what is here, and files."""
    kind = next((one for one in _PATHS if word.startswith(one)), "")
    if word.startswith("ARCH="):
        yield from (f"ARCH={one}" for one in _stems("arch"))
    elif word.startswith("deb:"):
        yield from _here()
        yield from (f"deb:{one}" for one in _packages(word.removeprefix("deb:")))
    elif kind:
        yield from (f"{kind}{path}" for path in _files(word.removeprefix(kind)))
        yield from _here()
    elif word.startswith("+"):
        yield from _CHANGES
        yield from (f"+{path}" for path in _files(word[1:]))
    else:
        yield from _SPECS
        yield from _CHANGES
        yield from _files(word)


def _here() -> Iterator[str]:
    """The specs of the kernels in the cache, and of those in the store."""
    for path in sorted(_folder("CACHE", ".cache").glob("kernels/*/kernel.json")):
        if not path.is_file():  # reading a pipe would wait
            continue
        with contextlib.suppress(OSError, ValueError):
            entry = json.loads(path.read_text())
            of = f":{entry['architecture']}" if entry.get("architecture") else ""
            yield entry.get("spec") or f"deb:{entry['package']}{of}={entry['version']}"
    yield from _rows("SELECT DISTINCT kernel_spec FROM runs")


def _packages(word: str) -> Iterator[str]:
    """The kernel packages that apt's lists on this host have."""
    wanted = "linux-image-"
    if not (word.startswith(wanted) or wanted.startswith(word)):
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        yield from sorted(
            subprocess.run(
                ["apt-cache", "--no-generate", "pkgnames", max(word, wanted, key=len)],
                capture_output=True,
                check=True,
                text=True,
                timeout=_APT_SECONDS,
            ).stdout.split()
        )


def _workloads(_: str, __: Sequence[str]) -> Iterator[str]:
    yield from (str(one["name"]) for one in _described())


def _operations(_: str, before: Sequence[str]) -> Iterator[str]:
    """Those of the workload that the line names."""
    named = {before[at] for at in range(1, len(before)) if before[at - 1] in {"-w", "--workload"}}
    for one in _described():
        if one["name"] in (named or {"syscalls"}):
            yield from (str(operation["name"]) for operation in one.get("operation", ()))


def _described() -> Iterator[dict[str, Any]]:
    """What describes workloads."""
    import tomllib  # noqa: PLC0415  (which other words do not need)

    for path in sorted(_ROOMS.glob("workloads/*/workload*.toml")):
        yield tomllib.loads(path.read_text())


def _cpus(_: str, __: Sequence[str]) -> Iterator[str]:
    yield "host"
    yield from _stems("cpus")
    yield from (path.stem for path in sorted(_folder("CONFIG", ".config").glob("cpus/*.toml")))


def _arches(_: str, __: Sequence[str]) -> Iterator[str]:
    yield from _stems("arch")


def _stems(room: str) -> list[str]:
    return sorted(path.stem for path in (_ROOMS / room).glob("*.toml"))


def _studies(_: str, __: Sequence[str]) -> Iterator[str]:
    yield from ("last", *_ids("studies"))


def _runs(_: str, __: Sequence[str]) -> Iterator[str]:
    yield from ("last", *_ids("runs"))


def _ids(table: str) -> Iterator[str]:
    latest = f"SELECT id FROM {table} ORDER BY started DESC LIMIT {_LATEST_IDS}"
    yield from (one[:_ID_LETTERS] for one in _rows(latest))


def _rows(query: str) -> list[str]:
    """Words of the store, which is only read; none if there is none."""
    path = _folder("DATA", ".local/share") / "store.db"
    if not path.exists():
        return []
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)
        with contextlib.closing(connection):
            return [str(row[0]) for row in connection.execute(query) if row[0]]
    return []


def _folder(kind: str, below_home: str) -> Path:
    """A folder as host/dirs.py has it, which takes as long to import as all else here."""
    if named := os.environ.get(f"KDELTA_{kind}_DIR"):
        return Path(named).absolute()
    given = Path(os.environ.get(f"XDG_{kind}_HOME", ""))
    return (given if given.is_absolute() else Path.home() / below_home) / "kdelta"


def _paths(word: str, _: Sequence[str]) -> Iterator[str]:
    yield from _files(word)


def _files(word: str) -> Iterator[str]:
    """Files and folders that begin so; a folder's name ends with a slash."""
    begin = word.rpartition("/")[2]
    head = word[: len(word) - len(begin)]
    with contextlib.suppress(OSError, RuntimeError):
        found = Path(head or ".").expanduser() if head != "/" else Path("/")
        for path in sorted(found.iterdir()):
            if path.name.startswith(begin) and (begin or not path.name.startswith(".")):
                yield f"{head}{path.name}{'/' if path.is_dir() else ''}"


_KINDS: Mapping[str, Callable[[str, Sequence[str]], Iterable[str]]] = {
    "ARCH": _arches,
    "CPU": _cpus,
    "FILE": _paths,
    "KERNEL": _kernels,
    "OPERATION": _operations,
    "RUN": _runs,
    "STUDY": _studies,
    "WORKLOAD": _workloads,
}
"""What values are called, and the function that lists those that may begin with a word."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that changes and series name: what each is, by its content, and what it holds."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kdelta.host.command import Log, log_once
from kdelta.host.dirs import cache_dir
from kdelta.host.files import expanded, user_errors
from kdelta.kernels.config.configure import is_whole_target
from kdelta.kernels.config.kconfig import is_generated, parse_config
from kdelta.kernels.sources.content import container, looks_like, read_content
from kdelta.kernels.sources.mailbox import is_mailbox, read_mailbox
from kdelta.kernels.sources.patches import Patch, has_diff, plain_patch
from kdelta.kernels.sources.quilt import SERIES, bare_name, folder_patches, is_series, series_files
from kdelta.spec.change import BaseConfigChange, Change, FileChange, OptionChange
from kdelta.spec.errors import UserError
from kdelta.spec.limits import GIVEN_LIST_BYTES
from kdelta.spec.note import SpecNote

_COMMENT = re.compile(r"(?!#\s*CONFIG_\w+\s+is\s+not\s+set\b)#.*")
_OPTION = re.compile(r'CONFIG_\w+=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)|# CONFIG_\w+ is not set', re.ASCII)
_COMMENTED = re.compile(rf"({_OPTION.pattern})\s+#.*", re.ASCII)
_ALMOST_OPTION = re.compile(r"\bCONFIG_\w+\s*=|\bCONFIG_\w+ is not set")
_OTHER_PROGRAM = re.compile(
    r"^# Automatically generated (?:file; DO NOT EDIT\.|make config: don't edit)\n"
    r"# (?!Linux\b|CONFIG_)(.* Configuration|.* version: .*)$",
    re.IGNORECASE | re.MULTILINE,
)
"""The head of what another program's Kconfig wrote, and its title."""
_TEXT_LINES = 5
"""Lines of another form for each that sets an option, from which on a file is no config."""
_SHOWN = 5
_SHOWN_CHARACTERS = 60


class GivenFile(msgspec.Struct, frozen=True):
    """A file that was read. `patches` of a patch, a mailbox or a series; `text` of a config: a
    fragment, or a whole one (a base). `left_out`: what of a mailbox was, in a clause each.
    """

    kind: Literal["patch", "mailbox", "series", "fragment", "base"]
    patches: tuple[Patch, ...] = ()
    text: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """What it was taken for, for people."""
        if self.kind in ("fragment", "base"):
            kind = "a config fragment" if self.kind == "fragment" else "a whole config"
            return f"{kind} with {_counted(len(parse_config(self.text)), 'option')}"
        kind = {"patch": "a patch", "mailbox": "a mailbox", "series": "a series"}[self.kind]
        if self.kind != "patch":
            kind += f" with {_counted(len(self.patches), 'patch', 'es')}"
        more = len(self.left_out) - _SHOWN
        left_out = [*self.left_out[:_SHOWN], *([f"{more} more"] if more > 0 else [])]
        return f"{kind}; left out: {'; '.join(left_out)}" if left_out else kind


def given_in(change: Change) -> GivenFile | None:
    """Return the file that a change names; None if it names none, or a target of the tree's make.
    UserError for what is neither patches nor a config.
    """
    if not isinstance(change, FileChange | BaseConfigChange):
        return None
    path = expanded(change.path)
    with user_errors(path):
        if isinstance(change, BaseConfigChange):
            return msgspec.structs.replace(_read_config(path), kind="base")
        is_target = change.may_be_target and not path.is_file()
        return None if is_target else given_at(path)


ReadChanges = Sequence[tuple[Change, GivenFile | None]]
"""One kernel's changes, and the file that each names."""


def read_changes(changes: Sequence[Change]) -> ReadChanges:
    """The changes with their files, as these are now. UserError as above."""
    return [(change, given_in(change)) for change in changes]


def announce(changes: Sequence[Change], log: Log) -> None:
    """Reports what each of the files that one kernel's changes name was taken for, and what does
    not count in the order that it has, once in a process; kdelta's own files are not worth a line.
    UserError as above.
    """
    for line in given_lines(read_changes(changes)):
        log_once(line, log)


def given_lines(read: ReadChanges) -> list[str]:
    """What `announce` reports of one kernel's changes."""
    return [*_kinds(read), *(note.text for note in _order(read))]


def order_notes(read: ReadChanges) -> list[SpecNote]:
    """What of one kernel's changes does not count, or not in the order that they have."""
    return list(_order(read))


def _kinds(read: ReadChanges) -> Iterator[str]:
    for change, given in read:
        if not isinstance(change, FileChange | BaseConfigChange) or _is_own(change):
            continue
        if given is None:
            yield f"{change}: a target of the tree's make"
        elif given.kind == "fragment":
            hint = f"if it is a whole config: +base:{change.path}"
            yield f"{change}: {given.described}, over the base; {hint}"
        else:
            yield f"{change}: {given.described}"


def _order(read: ReadChanges) -> Iterator[SpecNote]:
    """The base counts that is last, and what stands before it is applied over it."""
    bases = [number for number, one in enumerate(read) if _is_base(*one)]
    if not bases or _is_own(base := read[bases[-1]][0]):
        return
    for number, (change, given) in enumerate(read[: bases[-1]]):
        if number in bases:
            text = f"{change} does not count: the base is {base}, which comes later"
            yield SpecNote(text, lost=True)
        elif isinstance(change, OptionChange) or (given and given.kind == "fragment"):
            yield SpecNote(f"{change} stands before the base {base}, and is applied over it")


def _is_base(change: Change, given: GivenFile | None) -> bool:
    if given is None:
        return isinstance(change, FileChange) and is_whole_target(change.path)
    return given.kind == "base"


def _is_own(change: Change) -> bool:
    return isinstance(change, FileChange | BaseConfigChange) and Path(change.path).is_relative_to(
        cache_dir()
    )


def given_at(path: Path) -> GivenFile:
    """What a file, or a folder of patches, holds. UserError for one that cannot be used."""
    with user_errors(path):
        if path.is_dir():
            return _read_folder(path)
    content = read_content(path)
    found = None
    if not container(content):
        found = _patches_in(path, content)
        if not found and len(content) <= GIVEN_LIST_BYTES:
            found = _config_in(path, content) or _series_in(path, content)
    if found is None:
        raise UserError(
            f"{path} is neither a patch, a mailbox, a series nor a config: it looks like "
            f"{looks_like(content)}",
            "a patch is what git diff or diff -u prints, and a config has lines CONFIG_X=y",
        )
    return found


def read_patches(path: Path) -> GivenFile:
    """The patches of a file or a folder. UserError for one that holds none."""
    found = given_at(path)
    if not found.patches:
        raise UserError(
            f"{path} holds no patch: it is {found.described}",
            "a patch is what git diff or diff -u prints",
        )
    return found


def _read_config(path: Path) -> GivenFile:
    content = read_content(path)
    found = _config_in(path, content) if len(content) <= GIVEN_LIST_BYTES else None
    if found is None:
        kind = _patches_in(path, content)
        raise UserError(
            f"{path} is no config: it looks like {kind.described if kind else looks_like(content)}",
            f"for a patch write +{path}" if kind else "a config has lines CONFIG_X=y",
        )
    return found


def _patches_in(path: Path, content: bytes) -> GivenFile | None:
    if is_mailbox(content):
        mailbox = read_mailbox(path, content)
        alone = len(mailbox.patches) == 1 and not mailbox.left_out
        kind: Literal["patch", "mailbox"] = "patch" if alone else "mailbox"
        return GivenFile(kind, mailbox.patches, left_out=mailbox.left_out)
    return GivenFile("patch", (plain_patch(path.name, content),)) if has_diff(content) else None


def _config_in(path: Path, content: bytes) -> GivenFile | None:
    """The config, if all that is no comment is options. UserError for options among other lines,
    unless these are many times as many: kbuild would leave out those lines without a word. So is
    another program's config refused.
    """
    if b"\0" in content:
        return None
    lines = [_bare(line) for line in content.decode("utf-8", "replace").splitlines()]
    other = [
        (number, line)
        for number, line in enumerate(lines, start=1)
        if line and not _COMMENT.fullmatch(line) and not _OPTION.fullmatch(line)
    ]
    text = "".join(f"{line}\n" for line in lines)
    options = [line for line in lines if _OPTION.fullmatch(line)]
    almost = [line for _, line in other if _ALMOST_OPTION.search(line)]
    # A text about configs has some such lines; a config with slips, or with the marks of a merge,
    # is options for the most part.
    if other and len(other) - len(almost) < _TEXT_LINES * (len(options) + len(almost)):
        raise _no_option(path, other)
    if other or not options:
        return None
    if match := _OTHER_PROGRAM.search(text):
        raise UserError(
            f"{path} is the config of another program: its head says {match[1]!r}",
            "name a config of the kernel",
        )
    whole = bare_name(path).endswith("defconfig") or is_generated(text)
    return GivenFile("base" if whole else "fragment", text=text)


def _bare(line: str) -> str:
    """A line without the comment behind an option: what kbuild makes of it depends on the tree."""
    line = line.strip()
    return match[1] if (match := _COMMENTED.fullmatch(line)) else line


def _no_option(path: Path, lines: Sequence[tuple[int, str]]) -> UserError:
    number, line = next((one for one in lines if _ALMOST_OPTION.search(one[1])), lines[0])
    shown = line if len(line) <= _SHOWN_CHARACTERS else f"{line[: _SHOWN_CHARACTERS - 3]}..."
    verb = "is" if len(lines) == 2 else "are"
    more = f"; nor {verb} {_counted(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
    return UserError(
        f"{path}, line {number}: neither an option nor a comment: {shown!r}{more}",
        "an option is CONFIG_X=y, without blanks, or # CONFIG_X is not set",
    )


def _series_in(path: Path, content: bytes) -> GivenFile | None:
    text = content.decode("utf-8", "replace")
    if path.name != SERIES and not is_series(path, text):
        return None
    return _series(series_files(path, text))


def _read_folder(folder: Path) -> GivenFile:
    series = folder / SERIES
    if series.is_file():
        text = read_content(series).decode("utf-8", "replace")
        return _series(series_files(series, text))
    return _series(folder_patches(folder))


def _series(files: Sequence[Path]) -> GivenFile:
    found = [(file, _member(file)) for file in files]
    left_out = (f"of {file.name} {one}" for file, given in found for one in given.left_out)
    patches = (patch for _, given in found for patch in given.patches)
    return GivenFile("series", tuple(patches), left_out=tuple(left_out))


def _member(file: Path) -> GivenFile:
    content = read_content(file)
    if (found := _patches_in(file, content)) is None:
        raise UserError(
            f"{file} holds no patch: it looks like {looks_like(content)}",
            "a patch is what git diff or diff -u prints",
        )
    return found


def _counted(count: int, one: str, ending: str = "s") -> str:
    return f"{count} {one}{'' if count == 1 else ending}"

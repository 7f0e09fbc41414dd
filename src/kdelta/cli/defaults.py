# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's file of defaults: values of options where the command line gives none."""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kdelta.cli import removed
from kdelta.host.dirs import config_dir
from kdelta.host.files import read_given
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import DEFAULTS_FILE_BYTES
from kdelta.spec.toml import check_toml

ALL = "all"
"""The section whose values hold for every command that has the option."""

_BOOL, _TEXT = "true or false", "text in quotes"
_NUMBERS = {"int": (int, "a whole number"), "flo": (int | float, "a number")}
"""By the beginning of what click calls a type, which its versions end in different ways."""


def defaults_file() -> Path | None:
    """Return the path of the file, which need not exist; None if the user wants none."""
    named = os.environ.get("KDELTA_DEFAULTS")
    if named is not None:
        return Path(named).absolute() if named else None
    try:
        return config_dir() / "defaults.toml"
    except LabError:  # there is no home
        return None


def has_defaults() -> bool:
    """Return whether there is such a file."""
    path = defaults_file()
    return path is not None and path.exists()


def defaults_of(name: str, command: Any, commands: Iterable[str]) -> dict[str, Any]:
    """Return a command's values of the file, by parameter. UserError for a file that cannot be
    read, and for an option that the command does not have. commands: the names of all.
    """
    path = defaults_file()
    sections = _sections(path, [*commands])
    options = options_of(command)
    found = {}
    for section in (ALL, name):
        for key, value in sections.get(section, {}).items():
            if key in options:
                where = f"{key} in [{section}] of {path}"
                found[options[key].name] = _checked(options[key], value, where)
            elif section == name:
                raise _unknown(key, options, f"[{section}] of {path}", f"kdelta {name} has no")
    return found


def check_defaults(commands: Mapping[str, Any]) -> list[str]:
    """Return the whole file as lines such as "[all] jobs = 2"; UserError for what is wrong in it.
    commands: all, by name.
    """
    path = defaults_file()
    sections = _sections(path, commands)
    everywhere = {key: one for command in commands.values() for key, one in _items(command)}
    for key in sections.get(ALL, {}):
        if key not in everywhere:
            raise _unknown(key, everywhere, f"[{ALL}] of {path}", "no command has the")
    for name, command in commands.items():
        defaults_of(name, command, commands)
    return [
        f"[{section}] {key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for section, values in sections.items()
        for key, value in values.items()
    ]


def options_of(command: Any) -> dict[str, Any]:
    """Return the options that can have a default, by what they are called in the file."""
    return dict(_items(command))


def _items(command: Any) -> Iterable[tuple[str, Any]]:
    for param in command.params:
        if param.opts[-1].startswith("--"):
            yield param.opts[-1].removeprefix("--"), param


def _sections(path: Path | None, commands: Iterable[str]) -> dict[str, dict[str, Any]]:
    if path is None or not os.path.lexists(path):
        return {}
    try:
        content = read_given(path, DEFAULTS_FILE_BYTES)
    except UserError as error:
        raise UserError(error.message, _WITHOUT) from error
    if not content:
        return {}
    import tomllib  # noqa: PLC0415  (most have no need of it)

    try:
        check_toml(text := content.decode())
        sections: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:  # of TOML, or of UTF-8
        raise UserError(f"cannot read {path}: {error}", _WITHOUT) from error
    except RecursionError as error:
        raise UserError(
            f"cannot read {path}: its brackets are nested too deeply", _WITHOUT
        ) from error
    known = [ALL, *commands]
    for name, values in sections.items():
        if not isinstance(values, dict):
            raise UserError(
                f"cannot use {name} in {path}: it is in no section",
                f"write [{ALL}] or the name of a command, such as [compare], above it",
            )
        if gone := removed.COMMANDS.get(name):
            message = f"cannot use [{name}] in {path}: it was removed, since {gone.reason}"
            raise UserError(message, gone.instead)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UserError(
                f"cannot use [{name}] in {path}: there is no such command",
                f"did you mean [{near[0]}]?" if near else "kdelta --help lists the commands",
            )
    return sections


_WITHOUT = "correct it; KDELTA_DEFAULTS= in front of a command does without the file"


def _unknown(key: str, options: Iterable[str], where: str, lacking: str) -> UserError:
    if gone := removed.OPTIONS.get(f"--{key}"):
        message = f"cannot use {key} in {where}: it was removed, since {gone.reason}"
        return UserError(message, gone.instead)
    if now := removed.RENAMED.get(f"--{key}"):
        name = now.removeprefix("--")
        return UserError(f"cannot use {key} in {where}: it is called {name} now", f"{name} = ...")
    near = difflib.get_close_matches(key, [*options], n=1)
    return UserError(
        f"cannot use {key} in {where}: {lacking} option --{key}",
        f"did you mean {near[0]}?" if near else "kdelta COMMAND --help lists the options",
    )


def _checked(option: Any, value: Any, where: str) -> Any:
    """The value as click takes it; UserError for one of another type, or out of bounds."""
    values = value if option.multiple and isinstance(value, list) else [value]
    wanted, words = _NUMBERS.get(
        option.type.name[:3], (bool, _BOOL) if option.is_flag else (str, _TEXT)
    )
    for one in values:
        if not isinstance(one, wanted) or (isinstance(one, bool) and not option.is_flag):
            raise UserError(f"cannot use {where}: it takes {words}, not {one!r}", _WITHOUT)
        try:
            option.type.convert(one, option, None)
        except Exception as error:
            raise UserError(f"cannot use {where}: {getattr(error, 'message', error)}") from error
    return values if option.multiple else value

# SPDX-License-Identifier: GPL-2.0-or-later
"""How a field of a request is set on a command line: written once, at the field."""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

SHORT = 60
"""The most characters of an option's help."""


class HelpSection(enum.StrEnum):
    """The headings under which a command's help lists its options."""

    MEASURED = "What to measure"
    SURE = "How sure"
    MACHINE = "Machine and runs"
    SHOWN = "What to print and where"


class OptionKind(enum.StrEnum):
    """What a text of a command line stands for, where the field's type does not say it."""

    CPU = "CPU"  # a name that `kdelta cpus` lists, or a file; None for an option without its value
    PERCENT = "PERCENT"  # a fraction of 1
    TIME = "TIME"  # seconds, as in 40s or 5m
    TRACE = "TRACE"  # items of a trace, of four bytes, in GiB
    WEIGHT = "WEIGHT"  # NAME=NUMBER
    LIST = "LIST"  # words with commas between
    PAGE = "PAGE"  # a file to be written, in a folder that is there


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """How a field is set on a command line.

    names    as they are typed, the long one last; "--on/--off" has both values of a flag
    help     what it does, in at most 60 characters
    metavar  what its value is called in the help
    group    under which heading it is listed
    kind     what its text stands for; None: the field's type says it
    least, most  bounds of a number
    usual    the default in words, where the value itself says less
    off      a flag that sets the field to False
    bare     it may stand without its value
    required it has to be given
    values   what completes it: a kind of words of cli/words.py, or words with | between
    """

    names: tuple[str, ...]
    help: str
    metavar: str = ""
    group: HelpSection = HelpSection.MEASURED
    kind: OptionKind | None = None
    least: float | None = None
    most: float | None = None
    usual: str = ""
    off: bool = False
    bare: bool = False
    required: bool = False
    values: str = ""


def option(*names: str, help: str, **more: object) -> Option:  # noqa: A002  (as in every parser)
    """Return the option of these names; see Option for the rest."""
    return msgspec.convert({"names": names, "help": help, **more}, Option)


class Without(msgspec.Struct, frozen=True):
    """Fields of a nested request that a command has no options for."""

    fields: tuple[str, ...]


def without(*fields: str) -> Without:
    """Return the annotation of a nested request of which these fields have no options."""
    return Without(fields)


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a command line that are no options.

    kernels   they are kernel specs, to which the options for changes apply
    one_tree  all changes among them are those of one tree, which need not have any
    values    as of Option
    """

    metavar: str
    help: str
    kernels: bool = False
    one_tree: bool = False
    values: str = ""


class AfterDashes(NamedTuple):
    """What follows -- on a command line.

    of    the request that has the words' options
    made  (the words or None, the command's own words, the options given) -> what they stand for
    instead  the options that say what they say in another way, and so are refused with them
    """

    of: type[msgspec.Struct]
    made: Callable[..., Any]
    instead: tuple[str, ...] = ()

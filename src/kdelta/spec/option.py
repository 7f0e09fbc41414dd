# SPDX-License-Identifier: GPL-2.0-or-later
"""How a field of a request is set on a command line: written once, at the field."""

import enum
from collections.abc import Callable, Mapping
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


_COUNT: Mapping[str, object] = {"metavar": "N", "least": 1, "most": 1000, "group": HelpSection.SURE}
SHARED: Mapping[str, Mapping[str, object]] = {
    "--arch": {"metavar": "ARCH", "values": "ARCH"},
    "--cpu": {"metavar": "CPU", "values": "CPU", "kind": OptionKind.CPU},
    "--functions": {"metavar": "N", "least": 0, "group": HelpSection.SHOWN},
    "--layouts": {**_COUNT, "least": 2, "most": 100_000},
    "--limit": {"metavar": "N", "least": 1},
    "--margin": {"metavar": "PCT", "kind": OptionKind.PERCENT, "group": HelpSection.SURE},
    "--operation": {"metavar": "NAME", "values": "OPERATION"},
    "--output": {"metavar": "FILE", "values": "FILE"},
    "--pairs": {**_COUNT, "least": 2},
    "--perturb": _COUNT,
    "--workload": {"metavar": "NAME", "values": "WORKLOAD"},
}
"""What options of one name have in common in all commands that have one."""


def option(*names: str, help: str, **more: object) -> Option:  # noqa: A002  (as in every parser)
    """Return the option of these names, with what it shares; see Option for the rest."""
    shared = SHARED.get(names[-1], {})
    return msgspec.convert({"names": names, "help": help, **shared, **more}, Option)


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

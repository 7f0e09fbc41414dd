# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes: the +WORDS that say in what a kernel differs from the source tree it is built from."""

import re
import shlex
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from kdelta.spec.errors import UserError
from kdelta.spec.parameters import split_parameters

CHANGE_FORMS = (
    "+CONFIG_X=y, +'# CONFIG_X is not set', +FILE (a patch, a mailbox or a quilt series, a config "
    "fragment or a generated .config; also packed), +base:FILE (a whole config), "
    "+defconfig (a target of the tree's make), "
    "+KCFLAGS=..., +CC=..., +LLVM=1, +kernel-mode (programs in ring 0), +allow-unknown (leave out "
    "options that the tree does not have), +fuzz:N (patches as by patch -F N); "
    "for a relink +sections, +order:FILE, +shuffle:SEED, +dshuffle:SEED (variables), +align:N; "
    "of any kernel, built or not, +cmdline:PARAMETER (what it is booted with)"
)

_OPTION = re.compile(r"CONFIG_[A-Za-z0-9_]+")
_SET = re.compile(r"(CONFIG_[A-Za-z0-9_]+)=(.*)")
_NOT_SET = re.compile(r"#\s*(CONFIG_[A-Za-z0-9_]+) is not set\s*")
_NUMBER = re.compile(r"-?\d+|0[xX][0-9A-Fa-f]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_VARIABLE = re.compile(r"([A-Z][A-Za-z0-9_.]*)=(.*)")
_FILE = re.compile(
    r".*/.*|.*\.(?:patch|diff|mbox|mbx|eml|conf|cfg|gz|xz|zst|bz2)|(?:.*[.-])?config"
    r"|(?:config|patch)-.*"
)
_BASE = "base:"
_CONFIG_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*config")
_RELINK = re.compile(r"(sections|order|shuffle|dshuffle|align)(?::(.*))?")
_FUZZ = re.compile(r"fuzz(?::(.*))?")
_CMDLINE = re.compile(r"cmdline(?::(.*))?")
_BOOT_PARAMETER = re.compile(r"[a-z_][\w.-]*(?:=.*)?")
# These ask questions, or depend on the machine that they run on.
_ASKING_TARGETS = ("menuconfig", "nconfig", "xconfig", "gconfig", "oldconfig", "localmodconfig")

_OWN_FOLDERS = "kdelta keeps output folders of its own; KDELTA_CACHE_DIR says where"
_REFUSED_VARIABLES = {
    "O": _OWN_FOLDERS,
    "KBUILD_OUTPUT": _OWN_FOLDERS,
    "KCONFIG_CONFIG": "name the config as a change: +FILE.config",
    "M": "kdelta builds kernels, not single modules",
    "KBUILD_EXTMOD": "kdelta builds kernels, not single modules",
}

KERNEL_MODE = "kernel-mode"
ALLOW_UNKNOWN = "allow-unknown"
MOST_FUZZ = 99
"""Of +fuzz. Diffs have three lines of context as a rule, and more fuzz than context is no more."""
LAST_SEED = 2**32 - 2
"""Of +shuffle and +dshuffle. To ld.lld, zero means a seed by chance, and 2**32 - 1 the reverse
order.
"""
ALIGNMENTS = (16, 32, 64, 128, 256)


class _Change(msgspec.Struct, frozen=True, tag_field="kind"):
    """A change, whose text is TEXT with the fields in it."""

    TEXT: ClassVar[str]

    def __str__(self) -> str:
        """The change's text, which parses to an equal change."""
        return self.TEXT.format(**msgspec.structs.asdict(self))


class OptionChange(_Change, frozen=True, tag="option"):
    """One config option. `value` is as in a .config: y, m, n (not set), a number, or a string in
    double quotes with its escapes.
    """

    TEXT = "+{name}={value}"

    name: str
    value: str


class FileChange(_Change, frozen=True, tag="file"):
    """A file: patches or a config, which its content decides when it is read.

    A plain name such as tinyconfig or kvm_guest.config (see `may_be_target`) is the file of that
    name if the current folder has one, and else that target of the tree's own make.
    """

    TEXT = "+{path}"

    path: str

    @property
    def may_be_target(self) -> bool:
        """Whether the name can also be a target of the tree's make."""
        return self.path not in _ASKING_TARGETS and bool(_CONFIG_TARGET.fullmatch(self.path))


class BaseConfigChange(_Change, frozen=True, tag="base"):
    """A file with a whole config, however few options it sets: the others are as by default."""

    TEXT = "+base:{path}"

    path: str


class VariableChange(_Change, frozen=True, tag="variable"):
    """A variable of make: KCFLAGS, CC, LLVM, ARCH, CROSS_COMPILE, LD and the like."""

    TEXT = "+{name}={value}"

    name: str
    value: str


class KernelModeChange(_Change, frozen=True, tag="kernel-mode"):
    """kdelta's own patches with which programs can run in the kernel's mode, and the options that
    these need. What is asked for besides them comes after them, wherever it stands.
    """

    TEXT = f"+{KERNEL_MODE}"


class AllowUnknownChange(_Change, frozen=True, tag="allow-unknown"):
    """Options that the tree does not have are left out, instead of being refused."""

    TEXT = f"+{ALLOW_UNKNOWN}"


class FuzzChange(_Change, frozen=True, tag="fuzz"):
    """Patches are applied with up to so many lines of context less, at both ends of a hunk, where
    they do not apply exactly: as by patch -F. It holds for all files, wherever it stands.
    """

    TEXT = "+fuzz:{lines}"

    lines: int


class SectionsChange(_Change, frozen=True, tag="sections"):
    """Each function is a section of its own, and the linker leaves them in their order: the same
    objects as with the three changes below, and what these are to be compared with.
    """

    TEXT = "+sections"


class OrderChange(_Change, frozen=True, tag="order"):
    """A file with the names of functions, a line each, in the order they are linked in; others
    follow them as they were.
    """

    TEXT = "+order:{path}"

    path: str


class ShuffleChange(_Change, frozen=True, tag="shuffle"):
    """Functions in random order, the same for a seed from 1 to LAST_SEED."""

    TEXT = "+shuffle:{seed}"

    seed: int


class DataShuffleChange(_Change, frozen=True, tag="dshuffle"):
    """Variables in random order, the same for a seed from 1 to LAST_SEED."""

    TEXT = "+dshuffle:{seed}"

    seed: int


class AlignChange(_Change, frozen=True, tag="align"):
    """Functions begin at multiples of that many bytes, one of ALIGNMENTS."""

    TEXT = "+align:{bytes}"

    bytes: int


class CmdlineChange(_Change, frozen=True, tag="cmdline"):
    """Boot parameters, as they stand on the kernel's command line after kdelta's own. The only
    change that a kernel can have which is built already: it is not built again.
    """

    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"+cmdline:{' '.join(self.parameters)}"


RelinkChange = SectionsChange | OrderChange | ShuffleChange | DataShuffleChange | AlignChange
SourceChange = (
    OptionChange
    | FileChange
    | BaseConfigChange
    | VariableChange
    | KernelModeChange
    | AllowUnknownChange
    | FuzzChange
)
Change = SourceChange | RelinkChange | CmdlineChange


def parse_change(text: str) -> Change:
    """Reads a change's text, with its + or without; UserError if it is none.

    That a word names a file is decided by the name alone: nothing is looked up.
    """
    word = text.removeprefix("+")
    if "\0" in word or "\n" in word:
        raise UserError(f"not a change: {text!r}", "it must be one line of text")
    if word.startswith(("tree:", "git:", "deb:", "deb-src:", "image:")):
        raise UserError(f"not a change: {text!r}", f"a kernel stands without +: {word}")
    if match := _NOT_SET.fullmatch(word):
        return OptionChange(match.group(1), "n")
    if match := _SET.fullmatch(word):
        return OptionChange(match.group(1), _option_value(match.group(2), text))
    if own := _own_change(word, text):
        return own
    if variable := parse_variable(word):
        return variable
    if _FILE.fullmatch(word) or _CONFIG_TARGET.fullmatch(word):
        return FileChange(word)
    raise _unknown(word, text)


def fuzz_of(changes: Iterable[Change]) -> int:
    """With how much fuzz the patches of a kernel are applied: the last word on it counts."""
    return next(reversed([one.lines for one in changes if isinstance(one, FuzzChange)]), 0)


def _own_change(word: str, text: str) -> Change | None:
    """A change that kdelta itself has a name for."""
    if word == ALLOW_UNKNOWN:
        return AllowUnknownChange()
    if word == KERNEL_MODE:
        return KernelModeChange()
    if word.startswith(_BASE):
        if word == _BASE:
            raise UserError(f"no file in {text!r}", "for example +base:board.config")
        return BaseConfigChange(word.removeprefix(_BASE))
    if match := _CMDLINE.fullmatch(word):
        return CmdlineChange(split_parameters(match.group(1) or ""))
    if match := _FUZZ.fullmatch(word):
        if not re.fullmatch(r"[0-9]{1,2}", match.group(1) or ""):
            raise UserError(f"not a number of lines: {text!r}", f"+fuzz:0 to +fuzz:{MOST_FUZZ}")
        return FuzzChange(int(match.group(1)))
    match = _RELINK.fullmatch(word)
    return _relink(match.group(1), match.group(2), text) if match else None


def _relink(kind: str, value: str | None, text: str) -> RelinkChange:
    if kind == "sections":
        if value is not None:
            raise UserError(f"+sections takes no value: {text!r}", "write +sections")
        return SectionsChange()
    if not value:
        examples = {"order": "order:FILE", "align": "align:64"}
        raise UserError(f"no value in {text!r}", f"for example +{examples.get(kind, f'{kind}:1')}")
    if kind == "order":
        return OrderChange(value)
    number = int(value) if re.fullmatch(r"[0-9]{1,10}", value) else 0
    if kind == "align":
        if number not in ALIGNMENTS:
            one_of = ", ".join(map(str, ALIGNMENTS))
            raise UserError(f"not an alignment of functions: {text!r}", f"one of {one_of} bytes")
        return AlignChange(number)
    if not 1 <= number <= LAST_SEED:
        raise UserError(
            f"not a seed: {text!r}",
            f"a number from 1 to {LAST_SEED}; the order that the kernel is linked in is +sections",
        )
    return ShuffleChange(number) if kind == "shuffle" else DataShuffleChange(number)


def parse_variable(word: str) -> VariableChange | None:
    """Reads NAME=VALUE, a variable of make; None if it is none, or an option. UserError for one
    that kdelta needs for itself.
    """
    match = _VARIABLE.fullmatch(word)
    if match is None or _SET.fullmatch(word):
        return None
    name, value = match.groups()
    if value in ("y", "m", "n"):
        raise UserError(f"not a variable of make: {word}", f"for an option write +CONFIG_{word}")
    if name in _REFUSED_VARIABLES:
        raise UserError(f"{name}= cannot be given: {word}", _REFUSED_VARIABLES[name])
    return VariableChange(name, value)


def _option_value(value: str, text: str) -> str:
    if value in ("y", "m", "n") or _NUMBER.fullmatch(value) or _QUOTED.fullmatch(value):
        return value
    if not value:
        raise UserError(f"no value in {text!r}", 'y, m, n, a number, or a string ("" if empty)')
    if value in ("Y", "M", "N"):
        raise UserError(f"not a value: {value!r} in {text!r}", f"write {value.lower()}")
    # The shell has taken the quotes of +CONFIG_CMDLINE="quiet".
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unknown(word: str, text: str) -> UserError:
    if _OPTION.fullmatch(word):
        return UserError(f"not a change: {text!r}", f"for an option write +{word}=y or +{word}=n")
    meant = {}
    if _BOOT_PARAMETER.fullmatch(word):
        meant["a boot parameter"] = f"+cmdline:{word}"
    if re.fullmatch(r"[\w.-]+", word):
        meant["a file"] = f"+./{word}"
    hint = "; ".join(f"for {what} write {right}" for what, right in meant.items())
    instead = (text, next(iter(meant.values()))) if meant else None
    return UserError(f"not a change: {text!r}", hint or f"there is: {CHANGE_FORMS}", instead)


def split_changes(text: str) -> tuple[str, tuple[Change, ...]]:
    """Splits a spec's text into that of the kernel and its changes, which are quoted as in a shell
    where they hold spaces.
    """
    if text[:1] in ("'", '"'):
        base, *rest = _shell_words(text)
    else:
        base, *tail = re.split(r" (?=['\"]?\+)", text, maxsplit=1)
        rest = _shell_words(tail[0]) if tail else []
    for word in rest:
        if not word.startswith("+") or word == "+":
            raise UserError(f"not a change: {word!r} in {text!r}", f"there is: {CHANGE_FORMS}")
    return base, tuple(map(parse_change, rest))


def join_changes(base: str, changes: tuple[Change, ...]) -> str:
    """The text that `split_changes` splits into these."""
    if re.search(r" ['\"]?\+", base):
        base = shlex.quote(base)
    return " ".join([base, *(shlex.quote(str(change)) for change in changes)])


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"not a kernel spec: {text!r}: {error}", "close the quotes") from error

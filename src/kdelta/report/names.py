# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of kernels in reports: each by what it differs in from those that it is compared with."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from kdelta.report import words
from kdelta.spec.change import (
    AllowUnknownChange,
    BaseConfigChange,
    Change,
    CmdlineChange,
    FileChange,
    FuzzChange,
    OptionChange,
    OrderChange,
    VariableChange,
)
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import (
    DebSpec,
    DebSrcSpec,
    FilesSpec,
    GitSpec,
    ImageSpec,
    KernelSpec,
    RepositorySpec,
    TreeSpec,
    parse_kernel_spec,
    without_changes,
)

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-rc\d+)?")
# NAME-VERSION-RELEASE.ARCH.rpm, and NAME-VERSION-RELEASE-ARCH.pkg.tar.zst.
_IN_FILE_NAME = {
    "rpm": re.compile(r"-(\d[^-/]*-[^-/]+)\.[^.-]+\.rpm$"),
    "pkg": re.compile(r"-(\d[^-/]*-[^-/]+)-[^-/]+\.pkg\.tar(?:\.\w+)?$"),
}
_WORDS = re.compile(r"[+~_-]")
_HASH = re.compile(r"[0-9a-f]{13,40}")
_HASH_DIGITS = 12
_NAMED = 3
_COLUMN = 20
_NARROW_COLUMN = 12
_LONG = 60


class Side(Protocol):
    """A kernel that is named: its spec, and its release where it is known."""

    @property
    def spec(self) -> str: ...

    @property
    def release(self) -> str: ...


class SideNames(msgspec.Struct, frozen=True):
    """Names of kernels, in their order: for sentences, and for columns. `common`: the changes that
    all of them have, in words; empty if there are none.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    common: str

    def against(self, other: int = 1) -> str:
        """Return what is compared, the first kernel being the base."""
        base, name = self.names[0], self.names[other]
        text = f"{name} against {'itself' if name == base else base}"
        return text + (f", both with {self.common}" if self.common else "")


class _Parts(msgspec.Struct, frozen=True):
    """A spec in parts: its kernel without changes, the changes, and what the kernel is called: its
    version (of its package, if it is `packaged`), its release, where it is from, and the commit of
    a repository.
    """

    base: str
    changes: tuple[Change, ...]
    version: str
    release: str
    place: str
    is_source: bool
    revision: str = ""
    packaged: bool = False


def side_names(sides: Sequence[Side]) -> SideNames:
    """Return names for kernels that are compared, each by what it alone has or is."""
    parts = [_parts(side.spec, side.release) for side in sides]
    bases = _base_names(parts)
    common, own = _own_changes([one.changes for one in parts])
    has_own = {base for base, changes in zip(bases, own, strict=True) if changes}
    names = [
        f"{base} with {changes}" if changes else f"{base} without" if base in has_own else base
        for base, changes in zip(bases, own, strict=True)
    ]
    return SideNames(tuple(names), tuple(_columns(_heads(parts, bases), own)), common)


def kernel_name(spec: str, release: str) -> str:
    """Return the name of a kernel that is looked at alone: its package's version or its release,
    and how it was changed.
    """
    parts = _parts(spec, release)
    _, (own, _) = _own_changes([parts.changes, ()])
    name = parts.version if parts.packaged else parts.release
    return (name or _shortened(parts.base)) + (f" with {own}" if own else "")


def base_spec(side: Side) -> str:
    """Return the spec of the kernel that a side is a change of."""
    return _parts(side.spec, side.release).base


@functools.lru_cache(1000)
def _parts(text: str, release: str) -> _Parts:
    try:
        spec = parse_kernel_spec(text)
    except UserError:  # of a former version, say
        return _Parts(text, (), _version(release), release, text, is_source=False)
    base = without_changes(spec)
    version = _package_version(spec)
    return _Parts(
        str(base),
        tuple(one for one in spec.changes if not isinstance(one, AllowUnknownChange | FuzzChange)),
        version or _version(release),
        release,
        _place(spec),
        isinstance(spec, TreeSpec | GitSpec),
        _revision(spec) if isinstance(spec, GitSpec) else "",
        packaged=bool(version),
    )


def _package_version(spec: KernelSpec) -> str:
    """The version of the package that a kernel or its source is from; empty if it is not known."""
    match spec:
        case DebSpec() | DebSrcSpec() | RepositorySpec():
            return spec.version or ""
        case FilesSpec():
            found = _IN_FILE_NAME[spec.kind].search(spec.places[0])
            return found[1] if found else ""
        case _:
            return ""


def _version(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else ""


def _place(spec: KernelSpec) -> str:
    """Where a kernel is from, in short."""
    match spec:
        case DebSpec() | DebSrcSpec() | RepositorySpec():
            return spec.package
        case GitSpec():
            return f"{spec.path} at {_revision(spec)}"
        case FilesSpec():
            return spec.places[0].rpartition("/")[2]
        case ImageSpec() | TreeSpec():
            return spec.path


def _revision(spec: GitSpec) -> str:
    is_hash = _HASH.fullmatch(spec.revision)
    return spec.revision[:_HASH_DIGITS] if is_hash else spec.revision


def _base_names(parts: Sequence[_Parts]) -> list[str]:
    """A name of each kernel without its changes; equal ones have the same."""
    keys = [one.base for one in parts]
    if len({(one.base, one.changes) for one in parts}) < len(
        {(one.base, one.changes, one.release) for one in parts}
    ):
        keys = [one.release or one.base for one in parts]  # a tree that was changed meanwhile
    count = len(set(keys))
    forms: tuple[Callable[[_Parts], str], ...] = (
        lambda one: one.revision,
        lambda one: one.version,
        lambda one: one.release,
        lambda one: one.revision or one.version,
        lambda one: one.place,
        lambda one: f"{one.place} {one.version}".rstrip(),
    )
    if count == 1 and parts[0].is_source:
        forms = (lambda one: one.place,)
    for form in forms:
        names = [_shortened(form(one)) for one in parts]
        pairs = set(zip(keys, names, strict=True))
        if all(names) and len(set(names)) == count == len(pairs):
            return names
    return [one.base for one in parts]


def _heads(parts: Sequence[_Parts], bases: Sequence[str]) -> Sequence[str]:
    """Return the names with long versions of packages cut to those of upstream, if these differ."""
    heads = [
        _version(base) if one.packaged and len(base) > _NARROW_COLUMN else base
        for one, base in zip(parts, bases, strict=True)
    ]
    return heads if all(heads) and len(set(heads)) == len(set(bases)) else bases


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"...{text[-_LONG:]}"


def _own_changes(sides: Sequence[tuple[Change, ...]]) -> tuple[str, list[str]]:
    """What all have, and what each has besides, in words."""
    shared, own = _split(sides)
    texts = [_changes_text(changes, brief=True) for changes in own]
    if len(set(texts)) < len(set(map(tuple, own))):  # files of one name in two folders
        texts = [_changes_text(changes, brief=False) for changes in own]
    return _changes_text(shared, brief=True), texts


def _split(sides: Sequence[tuple[Change, ...]]) -> tuple[list[Change], list[list[Change]]]:
    """The changes that all have, and those that each has besides."""
    shared = functools.reduce(Counter.__and__, map(Counter, sides))
    own = []
    for changes in sides:
        left = Counter(shared)
        found = []
        for one in changes:
            if left[one]:
                left[one] -= 1
            else:
                found.append(one)
        own.append(found)
    return list(shared.elements()), own


def _changes_text(changes: Sequence[Change], *, brief: bool) -> str:
    most = _NAMED if brief else len(changes)
    return words.some([_change_name(one, brief=brief) for one in changes], most)


def _change_name(change: Change, *, brief: bool = True) -> str:
    """Return what a change is called; brief: a file by its name, without its folder."""
    if isinstance(change, CmdlineChange):
        return " ".join(change.parameters)
    if brief and isinstance(change, FileChange | BaseConfigChange | OrderChange):
        return change.path.rpartition("/")[2]
    return str(change).removeprefix("+")


def _columns(bases: Sequence[str], own: Sequence[str]) -> list[str]:
    """Titles of columns that are as short as they can be, and differ."""
    if len(set(zip(bases, own, strict=True))) < len(bases):
        return _numbered(len(bases))
    if len(set(bases)) == 1:
        begin = _shared_begin([one for one in own if one])
        stripped = [one[begin:] or "without" for one in own]
        forms = (
            *([stripped] if len(own) > 2 else []),
            [f"with {one}" if one and not all(own) else one or "without" for one in own],
            [one or "without" for one in own],
            stripped,
            ["with" if one else "without" for one in own],
        )
        for names in forms:
            if len(set(names)) == len(bases) and all(len(one) <= _COLUMN for one in names):
                return names
        return stripped
    if all(len(one) <= _COLUMN for one in bases) and len(set(bases)) == len(bases):
        return list(bases)
    split = [_WORDS.split(one.rpartition("/")[2]) for one in bases]
    shared = set.intersection(*map(set, split))
    names = ["-".join(word for word in found if word not in shared) for found in split]
    if len(set(names)) == len(names) and all(0 < len(one) <= _COLUMN for one in names):
        return names
    return _numbered(len(bases))


def _shared_begin(texts: Sequence[str]) -> int:
    """How much of texts is the same at their beginning, up to the end of a name."""
    if len(texts) < 2:
        return 0
    signs = itertools.takewhile(lambda found: len(set(found)) == 1, zip(*texts, strict=False))
    shared = "".join(found[0] for found in signs)
    return max(shared.rfind(sign) + 1 for sign in "=:/")


def _numbered(count: int) -> list[str]:
    return ["base", *(["other"] if count == 2 else [f"other {n}" for n in range(1, count)])]


_PATCHES = re.compile(r"\.(?:patch|diff|mbox|mbx|eml)(?:\.\w+)?$|(?:^|/)(?:patch-[^/]*|series)$")
_BUILT = "how it is built"
_UNCHANGED = "nothing: the config is the same, although changes of it were asked for"
_CONFIG = "config"
_COMPILER = "CONFIG_CC_VERSION_TEXT"
_KINDS: dict[type, str] = {
    CmdlineChange: "boot parameters",
    VariableChange: "variables of make",
    OptionChange: _CONFIG,
    BaseConfigChange: _CONFIG,
}
"""By kind of change what differs; any other is one of how the kernel is linked or run."""


def _kind(change: Change) -> str:
    """Return what a change changes, of a file as far as its name shows it."""
    if not isinstance(change, FileChange):
        return _KINDS.get(type(change), _BUILT)
    if _PATCHES.search(change.path):
        return "patches"
    return _CONFIG if "conf" in change.path or change.path.endswith(".cfg") else "patches or config"


def differences(base: Side, other: Side, options: Sequence[str] | None) -> str:
    """Return in what two kernels differ; options: those whose values do, None if not known."""
    sides = [_parts(side.spec, side.release) for side in (base, other)]
    _, own = _split([one.changes for one in sides])
    kinds = dict.fromkeys(_kind(one) for changes in own for one in changes)
    found = []
    if len({one.base for one in sides}) > 1:
        names = ("version", "release", "place")
        ours, theirs = ([getattr(side, name) for name in names] for side in sides)
        both = zip(names, ours, theirs, strict=True)
        differ = (name for name, one, two in both if one and two and one != two)
        name = next(differ, "place")
        if name == "version" and len({_version(one.version) for one in sides}) == 1:
            name = "package version"
        found.append("source" if name == "place" else name)
    asked = bool(kinds)
    if not asked and sides[0].changes != sides[1].changes:
        found.append("the order of changes")
    if options is not None:
        kinds.pop(_CONFIG, None)
        found += _config_texts(options)
    found += kinds
    return ", ".join(found) or (_UNCHANGED if asked else "nothing: it is the same kernel")


def own_parameters(base: str, other: str) -> tuple[list[str], list[str]]:
    """Return the boot parameters that each of two specs has alone, if they differ in nothing else;
    else none.
    """
    sides = [_parts(spec, "") for spec in (base, other)]
    _, own = _split([one.changes for one in sides])
    found = [[one for one in changes if isinstance(one, CmdlineChange)] for changes in own]
    if found != own or len({one.base for one in sides}) > 1:
        return [], []
    ours, theirs = ([word for one in changes for word in one.parameters] for changes in found)
    return ours, theirs


def _config_texts(options: Sequence[str]) -> list[str]:
    """How many options differ, which they are if they are few; the compiler is one."""
    names = [name for name in options if name != _COMPILER]
    few = f": {', '.join(names)}" if len(names) <= _NAMED else ""
    texts = [f"config ({words.counted(len(names), 'option')}{few})"] if names else []
    return [*texts, *(["compiler"] if len(names) < len(options) else [])]

# SPDX-License-Identifier: GPL-2.0-or-later
"""How a kernel's .config comes about: base, what the lab needs, what the user asks, olddefconfig;
and what became of each wish.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kdelta.host.command import Result
from kdelta.host.files import lab_errors, make_folder
from kdelta.kernels.arches import NO_CONFIG, KernelArch, kernel_arch
from kdelta.kernels.config.kconfig import (
    OFF,
    PREFIX,
    Config,
    Normalize,
    OptionFlip,
    explain_diff,
    is_generated,
    parse_config,
    quoted,
    render_config,
)
from kdelta.kernels.config.kconfig_files import Kconfig, read_kconfig
from kdelta.kernels.config.lab_config import (
    LabOption,
    MissingOption,
    lab_options,
    missing_options,
)
from kdelta.kernels.config.reasons import Refused, refused
from kdelta.spec.errors import LabError
from kdelta.spec.note import SpecNote

Make = Callable[[Sequence[str]], Result]
"""Runs configuration targets of the tree's make on the .config of an output folder."""


# Targets that make a whole config again, whatever there was; so do all whose name ends in
# defconfig.
_WHOLE_TARGETS = {
    *("allnoconfig", "allyesconfig", "allmodconfig", "alldefconfig", "randconfig", "tinyconfig")
}


_CHECKS = {"RUST_IS_AVAILABLE": "rustavailable"}
"""Options by which Kconfig asks for a tool, and the target of make that says what is missing."""


class ConfigStep(msgspec.Struct, frozen=True):
    """One change of a config that the user asks for. `value` is an option's value or the text of a
    fragment or of a whole config (a base); `name` an option's name, a file's path for people, or a
    target of the tree's make.
    """

    kind: Literal["option", "fragment", "base", "target"]
    name: str
    value: str = ""

    @property
    def whole(self) -> bool:
        """Whether it replaces all that there was before."""
        if self.kind == "target":
            return is_whole_target(self.name)
        return self.kind == "base"

    def asked(self) -> Config:
        """The options that it asks for one by one."""
        if self.kind == "option":
            return {self.name: quoted(self.value)}
        return parse_config(self.value) if self.kind == "fragment" else {}


def is_whole_target(name: str) -> bool:
    """Whether a target of make replaces all of a config."""
    return name in _WHOLE_TARGETS or name.endswith("defconfig")


class Configured(msgspec.Struct, frozen=True):
    """A config and how it came about. What the base and the steps ask for and what was granted
    differ by `lab`, `changed`, `derived`, `refused` and `unknown`, and by nothing else.

    text      the .config that kbuild granted
    base      what it started from, for people
    asked     options and fragments that the user asked for
    refused   those of them that came out otherwise
    lab       what the lab needed otherwise than the base had it
    missing   what the lab needs and did not get
    changed   options of a whole base config that came out otherwise, though that was not asked for
    derived   what else differs from the base: options that cannot be set, and those new to it
    unknown   options that were asked for, and that the tree does not have
    idle      options and fragments that set only what is set without them
    """

    text: str
    base: str
    asked: Config
    refused: tuple[Refused, ...]
    lab: tuple[OptionFlip, ...]
    missing: tuple[MissingOption, ...]
    changed: tuple[OptionFlip, ...]
    derived: tuple[OptionFlip, ...] = ()
    unknown: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    @property
    def notes(self) -> Iterator[SpecNote]:
        """What may surprise the user."""
        for name in self.idle:
            yield SpecNote(f"{name} changes nothing: what it sets is so already")
        if self.unknown:
            yield SpecNote(f"this tree does not have {few_items(self.unknown)}", lost=True)
        if self.changed:
            text = f"of {self.base}, not granted as it has them: {few_items(self.changed)}"
            yield SpecNote(text, lost=True)


def few_items(items: Sequence[object], most: int = 5) -> str:
    """The first items, and how many more there are."""
    more = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {more} more" if more > 0 else "")


class ConfigFailed(msgspec.Struct, frozen=True):
    """A configuration target of the tree that failed, and what it said."""

    target: str
    detail: str


class _TargetError(Exception):
    """Carries out of a step which target failed; its text is what that said."""

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(detail)
        self.target = target


def configure(
    out: Path,
    tree: Path,
    steps: Sequence[ConfigStep],
    make: Make,
    *,
    arch: str = "x86",
    own_config: str | None = None,
    allow_unknown: bool = False,
) -> Configured | ConfigFailed:
    """Writes out/.config: the last whole config among the steps, or the tree's own (`own_config`,
    its text), or that of the architecture (allnoconfig with small.config, or a target of the
    tree); over it the lab's fragment; then what the steps ask for one by one, in their order.
    `arch` is the architecture's folder. With `allow_unknown`, options that the tree does not have
    are not refused. LabError when the folder cannot be written.
    """
    make_folder(out)
    try:
        found = _configure(_Folder(out, make), tree, steps, kernel_arch(arch), own_config)
    except _TargetError as error:
        return ConfigFailed(error.target, str(error))
    if not allow_unknown:
        return found
    unknown = frozenset(found.unknown)
    known = tuple(one for one in found.refused if one.option not in unknown)
    return msgspec.structs.replace(found, refused=known)


def olddefconfig(out: Path, make: Make) -> Normalize:
    """What the tree makes of a config, asked in an output folder; LabError when it fails."""
    folder = _Folder(out, make)

    def normalize(config: Mapping[str, str]) -> Config:
        folder.write(render_config(config))
        try:
            return parse_config(folder.finish())
        except _TargetError as error:
            raise LabError(f"make {error.target} failed: {error}") from error

    return normalize


class _Folder:
    """An output folder with the .config in it."""

    def __init__(self, out: Path, make: Make) -> None:
        self._file = out / ".config"
        self._make = make

    def write(self, text: str) -> None:
        with lab_errors("writing", self._file):
            self._file.write_text(text, encoding="utf-8")

    def start_empty(self, arch: KernelArch) -> None:
        """allnoconfig, but for what makes a small kernel and what the lab needs."""
        given = self._file.with_name("kdelta-small.config")
        options = (*lab_options(arch.folder, "small"), *lab_options(arch.folder))
        with lab_errors("writing", given):
            given.write_text(_lines(options), encoding="utf-8")
        self.run(NO_CONFIG, f"KCONFIG_ALLCONFIG={given}")

    def append(self, text: str) -> None:
        # kconfig takes the last line about an option, and of a choice the last member that is y.
        with lab_errors("writing", self._file), self._file.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")

    def read(self) -> str:
        with lab_errors("reading", self._file):
            return self._file.read_text(encoding="utf-8", errors="replace")

    def run(self, target: str, *variables: str) -> None:
        result = self._make([*variables, target])
        if not result.ok:
            raise _TargetError(target, _complaint(result))

    def ask(self, option: str) -> str:
        """Why the tree's own check of a tool says no to an option; empty if there is none."""
        if (target := _CHECKS.get(option)) is None:
            return ""
        result = self._make([target])
        said = [line.lstrip("* ") for line in result.stderr.splitlines() if line[:4] == "*** "]
        return "" if result.ok else next(iter(said), f"make {target} fails")

    def finish(self) -> str:
        self.run("olddefconfig")
        return self.read()


def _configure(
    folder: _Folder,
    tree: Path,
    steps: Sequence[ConfigStep],
    arch: KernelArch,
    own_config: str | None,
) -> Configured:
    whole = [step for step in steps if step.whole]
    base, stated = _start(folder, whole[-1] if whole else None, own_config, arch)
    before = parse_config(folder.read()) | stated
    lab = lab_options(arch.folder)
    folder.append(_lines(lab))
    labs = {one.option: one.value for one in lab}
    asked, idle = _apply(folder, steps, {**before, **labs})
    text = folder.finish()
    granted = parse_config(text)
    kconfig = read_kconfig(tree, arch.folder)
    flips = [flip for flip in explain_diff(before, granted) if flip.option not in asked]
    of_lab, changed, derived = _by_cause(flips, before, labs, kconfig)
    denied = refused(asked, granted, kconfig, folder.ask)
    return Configured(
        text=text,
        base=base,
        asked=asked,
        refused=denied,
        lab=of_lab,
        missing=tuple(missing_options(text, arch=arch.folder)),
        changed=changed,
        derived=derived,
        unknown=tuple(
            name
            for name in asked
            if name.removeprefix(PREFIX) not in kconfig.entries and name not in granted
        ),
        # What is refused is not so already: it was, until a step before it.
        idle=tuple(step for step in idle if not any(one.option in idle[step] for one in denied)),
    )


def _apply(
    folder: _Folder, steps: Sequence[ConfigStep], so_far: Config
) -> tuple[Config, dict[str, Config]]:
    """Takes the steps over a config; the options that they ask for one by one, and those of the
    steps that set only what is set before them, by a step's name.
    """
    asked: Config = {}
    idle = {}
    for step in (one for one in steps if not one.whole):
        if step.kind == "target":
            folder.run(step.name)
            so_far = parse_config(folder.read())
        else:
            wishes = step.asked()
            if not explain_diff(so_far, {**so_far, **wishes}):
                idle[step.name] = wishes
            so_far = {**so_far, **wishes}
            folder.append(render_config(wishes))
            # A later wish counts as later, also for the choice that it is part of.
            asked = {name: asked[name] for name in asked if name not in wishes} | wishes
    return asked, idle


def _by_cause(
    flips: Sequence[OptionFlip], before: Config, labs: Config, kconfig: Kconfig
) -> tuple[tuple[OptionFlip, ...], ...]:
    """What differs from the base: that the lab set, that the base had otherwise, and the rest."""
    of_lab, changed, derived = [], [], []
    for flip in flips:
        # Between an empty text and an option that is not there is no difference to tell.
        if {flip.before, flip.after} == {OFF, '""'}:
            continue
        if labs.get(flip.option) == flip.after:
            of_lab.append(flip)
        elif flip.option in before and kconfig.may_be_set(flip.option.removeprefix(PREFIX)):
            changed.append(flip)
        else:
            derived.append(flip)
    return tuple(of_lab), tuple(changed), tuple(derived)


def _start(
    folder: _Folder, step: ConfigStep | None, own_config: str | None, arch: KernelArch
) -> tuple[str, Config]:
    """Writes the base config; its name for people, and what it says itself."""
    if step is None and own_config is None and arch.base == NO_CONFIG:
        folder.start_empty(arch)
        return NO_CONFIG, {}
    if (step is None and own_config is None) or (step is not None and step.kind == "target"):
        target = arch.base if step is None else step.name
        folder.run(target)
        return target, {}
    text = own_config or "" if step is None else step.value
    folder.write(text)
    if not is_generated(text):
        # A defconfig leaves out what is so by default: it has to be whole to be compared.
        folder.finish()
    return "the tree's .config" if step is None else step.name, parse_config(text)


def _complaint(result: Result) -> str:
    """What make said first: what follows only tells which makes had called it."""
    for line in result.stderr.splitlines():
        if line.strip() and not line.startswith(("make:", "make[", "#")):
            return re.sub(r"^\S+:\d+: (\*\*\* )?", "", line).removesuffix(".  Stop.")
    return result.last_words(1)


def _lines(options: Sequence[LabOption]) -> str:
    return render_config({lab.option: lab.value for lab in options})

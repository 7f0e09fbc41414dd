# SPDX-License-Identifier: GPL-2.0-or-later
"""The differences between two configs as option groups that can be flipped alone."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from kdelta.host.command import Log
from kdelta.kernels.config.kconfig import (
    OFF,
    PREFIX,
    Config,
    Normalize,
    OptionFlip,
    explain_diff,
    same_value,
    value_of,
)
from kdelta.kernels.config.kconfig_files import Kconfig
from kdelta.kernels.config.ties import Ties, following
from kdelta.spec.errors import LabError

_MOST_REPAIRS = 40


class OptionGroup(msgspec.Struct, frozen=True):
    """Options that can only be flipped together, from their values in A to those in B.

    name      its leading option without CONFIG_
    options   what changes when it is flipped after its needs: set by hand, or seen to follow
    asked     the names of those that are set by hand
    needs     the names of all option groups that must be flipped before this one can be
    shared    what follows from several option groups, and may flip only once others of them have
    """

    name: str
    options: tuple[OptionFlip, ...]
    asked: tuple[str, ...]
    needs: tuple[str, ...] = ()
    shared: tuple[OptionFlip, ...] = ()


def closed(units: Iterable[OptionGroup], chosen: Collection[str]) -> frozenset[str]:
    """The names of the chosen option groups and of all that they need."""
    return frozenset(chosen).union(*(unit.needs for unit in units if unit.name in chosen))


def flipped(
    before: Mapping[str, str],
    after: Mapping[str, str],
    units: Sequence[OptionGroup],
    chosen: Collection[str],
    normalize: Normalize,
) -> Config:
    """The config of A with these option groups flipped, and those that they need. Where the tree
    grants that only with more of them, which a combination of option groups may bring, it has those
    too: `flipped_units` tells.
    """
    names = closed(units, chosen)
    options = frozenset(option for unit in units if unit.name in names for option in unit.asked)
    mixer = _Mixer(before, after, normalize, {option for unit in units for option in unit.asked})
    return mixer.mixed(mixer.reachable(options, options)).config


def flipped_units(
    before: Mapping[str, str], units: Iterable[OptionGroup], config: Mapping[str, str]
) -> frozenset[str]:
    """The names of the option groups that are flipped in a config which `flipped` gave."""
    return frozenset(
        unit.name
        for unit in units
        if all(not same_value(value_of(config, o), value_of(before, o)) for o in unit.asked)
    )


def find_units(
    before: Mapping[str, str],
    after: Mapping[str, str],
    normalize: Normalize,
    kconfig: Kconfig,
    log: Log | None = None,
) -> tuple[OptionGroup, ...]:
    """The option groups of the differences between two granted configs, those needed before those
    that need them. Each is checked: A with the option group and its needs flipped is granted, and
    all together give B. LabError if the tree grants neither of the two configs as they are.

    `kconfig` only proposes; with an empty one the same is found with more calls of `normalize`.
    """
    flips = explain_diff(before, after)
    ties = Ties(before, after, flips, kconfig)
    mixer = _settled(before, after, normalize, ties.settable)
    closures: dict[str, frozenset[str]] = {}
    for at, option in enumerate(sorted(mixer.settable)):
        if log is not None:
            log(f"option {at + 1} of {len(mixer.settable)}: {option}")
        guess = ties.closure(option) & mixer.settable
        # What was found out about the guess's members corrects it.
        known = (closures.get(member, frozenset[str]()) for member in guess)
        closures[option] = mixer.reachable(frozenset({option}), guess.union(*known))
    return _units(mixer, _complete(mixer, closures), flips, ties)


class _Mixed(msgspec.Struct, frozen=True):
    """What the tree made of a mix: the config, and the settable options that have B's value."""

    config: Config
    flipped: frozenset[str]


class _Mixer:
    """Configs between A and B: each settable option has the value of one or of the other."""

    def __init__(
        self,
        before: Mapping[str, str],
        after: Mapping[str, str],
        normalize: Normalize,
        settable: set[str],
    ) -> None:
        self.before = before
        self.after = after
        self.settable = settable
        self.kept_off: set[str] = set()
        self._normalize = normalize
        self._cache: dict[frozenset[str], _Mixed] = {}

    def mixed(self, options: Collection[str]) -> _Mixed:
        """What comes of flipping these options; cached."""
        key = frozenset(options)
        if key not in self._cache:
            self._cache[key] = self._mix(key)
        return self._cache[key]

    def flips(self, options: Collection[str]) -> set[str]:
        """All options, followers too, that have another value than in A after flipping these."""
        return {flip.option for flip in explain_diff(self.before, self.mixed(options).config)}

    def _mix(self, options: frozenset[str]) -> _Mixed:
        config = self._normalize(self.asked(options))
        # What appears only between the two configs comes on by default: it is kept off.
        new = {
            option
            for option, value in config.items()
            if value in ("y", "m") and option not in self.before and option not in self.after
        }
        if new - self.kept_off:
            self.kept_off |= new
            config = self._normalize(self.asked(options))
        flipped = (
            option
            for option in self.settable
            if not same_value(value_of(config, option), value_of(self.before, option))
        )
        return _Mixed(config, frozenset(flipped))

    def asked(self, options: Collection[str]) -> Config:
        """The lines that ask for flipping these."""
        asked = dict.fromkeys(sorted(self.kept_off), OFF)
        for option in {**self.before, **self.after}:
            before, after = value_of(self.before, option), value_of(self.after, option)
            if same_value(before, after):
                asked[option] = before
            elif option in self.settable:
                asked[option] = after if option in options else before
            else:
                asked |= following(self.before, self.after, option)
        return asked

    def reachable(self, wanted: frozenset[str], guess: frozenset[str]) -> frozenset[str]:
        """The least set of options, as far as found, that has the wanted ones and that the tree
        grants as a whole; `guess` is tried first.
        """
        options = guess | wanted
        for _ in range(_MOST_REPAIRS):
            found = self.mixed(options).flipped
            if found == options:
                return options
            if options < found:
                options = found
            else:
                options |= self._missing(options)
        return frozenset(self.settable)

    def _missing(self, wanted: frozenset[str]) -> frozenset[str]:
        """What else must be flipped for all the wanted ones to be: halves are left out while that
        can be (delta debugging: Zeller and Hildebrandt, 2002).
        """
        rest = sorted(self.settable - wanted)
        parts = 2
        while len(rest) > 1:
            size = -(-len(rest) // parts)
            for start in range(0, len(rest), size):
                fewer = rest[:start] + rest[start + size :]
                if wanted <= self.mixed(wanted.union(fewer)).flipped:
                    rest, parts = fewer, max(2, parts - 1)
                    break
            else:
                if size == 1:
                    break
                parts = min(len(rest), parts * 2)
        if rest and wanted <= self.mixed(wanted).flipped:
            rest = []
        return frozenset(rest)


def _settled(
    before: Mapping[str, str], after: Mapping[str, str], normalize: Normalize, settable: set[str]
) -> _Mixer:
    """A mixer that gives A for nothing flipped and B for all: what does not follow automatically,
    as was thought, is set by hand.
    """
    settable = set(settable)
    for _ in range(_MOST_REPAIRS):
        mixer = _Mixer(before, after, normalize, settable)
        ends = ((before, mixer.mixed(())), (after, mixer.mixed(settable)))
        wrong = {flip.option for end, mixed in ends for flip in explain_diff(end, mixed.config)}
        if not wrong:
            return mixer
        if wrong <= settable:
            break
        settable |= wrong
    named = ", ".join(sorted(wrong)[:5])
    raise LabError(
        f"the tree does not grant a config that it has granted before: {named}",
        "was it configured by another compiler, or has the tree changed since?",
    )


def _complete(mixer: _Mixer, closures: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Closures that hold those of all their members. They need not at first: where one of two
    will do, each option may have found another.
    """
    found = dict(closures)
    changed = True
    while changed:
        changed = False
        for option, needed in found.items():
            union = needed.union(*(found[other] for other in needed))
            if union != needed:
                found[option] = mixer.reachable(union, union)
                changed = True
    return found


def _units(
    mixer: _Mixer,
    closures: Mapping[str, frozenset[str]],
    flips: Sequence[OptionFlip],
    ties: Ties,
) -> tuple[OptionGroup, ...]:
    """Options with the same closure are one option group."""
    groups: dict[frozenset[str], list[str]] = {}
    for option, needed in closures.items():
        groups.setdefault(needed, []).append(option)
    order = sorted(groups, key=lambda needed: (len(needed), sorted(needed)))
    owned: dict[frozenset[str], set[str]] = {}
    needs: dict[frozenset[str], list[frozenset[str]]] = {}
    for needed in order:
        needs[needed] = [other for other in order if other < needed]
        owned[needed] = mixer.flips(needed).difference(*(owned[other] for other in needs[needed]))
    shared = _shared(groups, owned, flips, ties)
    by_option = {flip.option: flip for flip in flips}
    names = {needed: _leading(groups[needed], mixer, ties) for needed in order}
    return tuple(
        OptionGroup(
            name=names[needed],
            options=tuple(by_option[o] for o in sorted(owned[needed]) if o in by_option),
            asked=tuple(sorted(groups[needed])),
            needs=tuple(sorted(names[other] for other in needs[needed])),
            shared=tuple(
                by_option[option]
                for option in sorted(shared[needed])
                if not any(option in owned[other] for other in needs[needed])
            ),
        )
        for needed in order
    )


def _shared(
    groups: Mapping[frozenset[str], Collection[str]],
    owned: Mapping[frozenset[str], Collection[str]],
    flips: Iterable[OptionFlip],
    ties: Ties,
) -> dict[frozenset[str], set[str]]:
    """The options that each option group may bring together with others, though not on its own."""
    settable = {option for options in groups.values() for option in options}
    found: dict[frozenset[str], set[str]] = {needed: set() for needed in groups}
    for flip in flips:
        option = flip.option
        if option in settable:
            continue
        support = ties.support(option) & settable
        unbrought = not support and not any(option in options for options in owned.values())
        for needed, members in groups.items():
            # What no option is known to bring may be brought by any.
            if option not in owned[needed] and (unbrought or support.intersection(members)):
                found[needed].add(option)
    return found


def _leading(options: Sequence[str], mixer: _Mixer, ties: Ties) -> str:
    """What a person would call them: the option that most depend on, and rather one that A has."""
    leading = min(
        options,
        key=lambda option: (
            -sum(option in ties.support(other) for other in options),
            value_of(mixer.before, option) == OFF,
            len(option),
            option,
        ),
    )
    return leading.removeprefix(PREFIX)

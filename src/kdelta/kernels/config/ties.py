# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the options that differ between two configs must be flipped along with which: a guess
from the Kconfig files, to be checked by the tree's own conf.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from kdelta.kernels.config.kconfig import OFF, PREFIX, Config, OptionFlip, same_value, value_of
from kdelta.kernels.config.kconfig_expr import Tri, evaluate, parse_expr, value_text
from kdelta.kernels.config.kconfig_files import Kconfig, KconfigEntry

_WORDS: tuple[str, str, str] = ("n", "m", "y")
_SWITCHES = ("bool", "tristate")
_MOST_ROUNDS = 20


class Ties:
    """The differences between two configs: who is set by hand, who follows, who needs whom."""

    def __init__(
        self,
        before: Mapping[str, str],
        after: Mapping[str, str],
        flips: Iterable[OptionFlip],
        kconfig: Kconfig,
    ) -> None:
        self._kconfig = kconfig
        self._before = dict(before)
        self._after = dict(after)
        self._flips = {flip.option: flip for flip in flips}
        self._depended = {option: self._conditions(option) for option in self._flips}
        self.settable = {option for option in self._flips if self._set_by_hand(option)}
        self._mentioned = {option: set(self._mentions(option)) for option in self._flips}
        self._followers = [option for option in self._flips if option not in self.settable]

    def _set_by_hand(self, option: str) -> bool:
        """Whether its value is somebody's choice on either side.

        It comes and goes with another option if that one selects it, or if one side cannot have
        it and the other has it as it is when it is not set. Where it depends on two options
        that have nothing to do with each other, neither can stand for it.
        """
        name = option.removeprefix(PREFIX)
        if name not in self._kconfig.entries:
            return True
        seen = [self._asked(name, config) for config in (self._before, self._after)]
        if all(seen):
            return not self._selected_only(name)
        if not any(seen):
            return False
        config = self._before if seen[0] else self._after
        is_kept = same_value(value_of(config, option), self._unasked(name, config))
        return not is_kept or len(self._parents(option)) > 1

    def _selected_only(self, name: str) -> bool:
        """Whether it is on only where something that differs selects it."""
        return self._kconfig.kind(name) in _SWITCHES and all(
            value_of(config, PREFIX + name) == OFF or self._selected(name, config)
            for config in (self._before, self._after)
        )

    def _parents(self, option: str) -> set[str]:
        """The differing options that it depends on, without those that others of them imply."""
        found = self._depended[option] & self._flips.keys()
        return {
            parent
            for parent in found
            if not any(parent in self._depended[other] for other in found - {parent})
        }

    def closure(self, option: str) -> frozenset[str]:
        """The settable options that must be flipped, from before to after, for this one to be."""
        chosen = {option, *self._choice(option)}
        for _ in range(_MOST_ROUNDS):
            wanted = self._wanted(chosen)
            if wanted <= chosen:
                break
            chosen |= wanted
        return frozenset(self._least(option, chosen))

    def _least(self, option: str, chosen: set[str]) -> set[str]:
        """Without those that can be spared: the guess takes all alternatives of a condition."""
        kept = {option, *self._choice(option)}
        while True:
            for spared in sorted(chosen - kept):
                fewer = chosen - {spared, *self._choice(spared)}
                if not self._wanted(fewer):
                    chosen = fewer
                    break
            else:
                return chosen

    def support(self, option: str) -> set[str]:
        """The settable options that one which follows depends on, also by way of others."""
        seen: set[str] = set()
        waiting = [option]
        while waiting:
            new = self._mentioned[waiting.pop()] - seen
            seen |= new
            waiting += new - self.settable
        return seen & self.settable

    def _choice(self, option: str) -> set[str]:
        members = self._kconfig.choice_of(option.removeprefix(PREFIX))
        return {PREFIX + member for member in members} & self.settable

    def _wanted(self, chosen: set[str]) -> set[str]:
        """What must be flipped besides the chosen ones, as it looks after one step."""
        config = self.state(chosen)
        wanted: set[str] = set()
        for option in self.settable:
            if not same_value(self._value(option, config), value_of(config, option)):
                wanted |= {option, *self._choice(option)}
                wanted |= self.support(option) if option in chosen else set()
        return wanted - chosen

    def state(self, chosen: Collection[str]) -> Config:
        """The config that flipping these should give, as far as the files show."""
        config = dict(self._before)
        for option, flip in self._flips.items():
            config[option] = flip.after if option in chosen else flip.before
        for _ in range(_MOST_ROUNDS):
            before = dict(config)
            for option in self._followers:
                value = self._value(option, config)
                if not same_value(value, value_of(config, option)):
                    config[option] = value
            if config == before:
                break
        return config

    def _conditions(self, option: str) -> set[str]:
        """The differing options in the conditions of its existence and of asking for it."""
        return {
            PREFIX + symbol
            for entry in self._kconfig.entries.get(option.removeprefix(PREFIX), [])
            for symbol in entry.asked_if().symbols()
            if PREFIX + symbol in self._flips
        }

    def _mentions(self, option: str) -> Iterator[str]:
        """The differing options that stand in what decides about this one."""
        name = option.removeprefix(PREFIX)
        texts = []
        for entry in self._kconfig.entries.get(name, []):
            texts += [*entry.conditions, entry.prompt or ""]
            for item in (*entry.defaults, *entry.ranges):
                texts += [item.condition, *item.value.split(" " if item in entry.ranges else "\n")]
        for entry, condition in self._kconfig.selectors(name):
            texts += [entry.name, condition]
        for text in filter(None, texts):
            for symbol in parse_expr(text).symbols():
                if PREFIX + symbol in self._flips and symbol != name:
                    yield PREFIX + symbol
        for member in self._kconfig.choice_of(name):
            if PREFIX + member in self._flips and member != name:
                yield PREFIX + member

    def _asked(self, name: str, config: Mapping[str, str]) -> Tri:
        """Whether a user is asked for it, and up to which value; what is unknown is met."""
        asked = (
            _known(evaluate(entry.asked_if(), config))
            for entry in self._kconfig.entries.get(name, [])
            if entry.prompt is not None
        )
        return max(asked, default=0)

    def _value(self, option: str, config: Mapping[str, str]) -> str:
        """What a config should make of the value that it has for this option."""
        name = option.removeprefix(PREFIX)
        if name not in self._kconfig.entries:
            return value_of(config, option)
        if not (seen := self._asked(name, config)):
            return self._unasked(name, config)
        wanted = self._on_value(option, config)
        if self._kconfig.kind(name) not in _SWITCHES:
            return wanted
        return _WORDS[max(min(_tri(wanted), seen), self._selected(name, config))]

    def _on_value(self, option: str, config: Mapping[str, str]) -> str:
        if self._flips.get(option) is None or option in self.settable:
            return value_of(config, option)
        return value_of(following(self._before, self._after, option), option)

    def _unasked(self, name: str, config: Mapping[str, str]) -> str:
        """The value that an option gets when it is not set."""
        entries = self._kconfig.entries[name]
        switch = self._kconfig.kind(name) in _SWITCHES
        text = OFF
        if choice := self._kconfig.choice_of(name):
            # Which member is the default is not read; the one that is on is taken for it.
            exists = any(_known(evaluate(entry.depends(), config)) for entry in entries)
            text = value_of(config, PREFIX + name) if exists else OFF
            return text if name in choice else OFF
        for entry, value in _defaults(entries, config):
            expr = parse_expr(value)
            held = _known(evaluate(entry.depends(), config))
            text = _WORDS[min(_known(evaluate(expr, config)), held)] if switch else value
            if not switch and expr.kind in ("symbol", "text"):
                quote = '"' if self._kconfig.kind(name) == "string" else ""
                text = f"{quote}{value_text(expr, config)}{quote}"
            break
        return text if not switch else _WORDS[max(_tri(text), self._selected(name, config))]

    def _selected(self, name: str, config: Mapping[str, str]) -> Tri:
        selected: Iterator[Tri] = (
            min(value, _known(evaluate(parse_expr(condition or "y"), config)))
            for entry, condition in self._kconfig.selectors(name)
            if (value := _tri(value_of(config, PREFIX + entry.name)))
        )
        found: Tri = max(selected, default=0)
        return 2 if found == 1 and self._kconfig.kind(name) == "bool" else found


def following(before: Mapping[str, str], after: Mapping[str, str], option: str) -> Config:
    """The line that lets an option follow others: off where both sides know it, since then it is
    selected; and where one does not, as it is on the other.
    """
    sides = [config[option] for config in (before, after) if option in config]
    if len(sides) == 2:
        return {option: OFF} if OFF in sides else {}
    return dict.fromkeys([option], *sides)


def _defaults(
    entries: Iterable[KconfigEntry], config: Mapping[str, str]
) -> Iterator[tuple[KconfigEntry, str]]:
    for entry in entries:
        if _known(evaluate(entry.depends(), config)):
            for item in entry.defaults:
                if _known(evaluate(parse_expr(item.condition or "y"), config)):
                    yield entry, item.value


def _known(value: Tri | None) -> Tri:
    # What only a tool knows was met on either side if it matters there at all.
    return 2 if value is None else value


def _tri(value: str) -> Tri:
    return 2 if value == "y" else 1 if value == "m" else 0

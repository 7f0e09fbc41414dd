# SPDX-License-Identifier: GPL-2.0-or-later
"""What an effect may cost in cycles: instructions, string bytes and special instructions weighed.

Counts alone do not say whether 10 instructions fewer and a locked one more are slower. Each has a
range of cycles on the cores that people use (cycles.toml, with sources); where the sum
of these ranges excludes zero, the effect has a direction, and else it is mixed.
"""

import functools
from collections.abc import Collection
from fractions import Fraction
from importlib import resources
from typing import Literal

import msgspec

from kdelta.counts.model import plain_kind
from kdelta.infer.effects.estimate import CLEAR, Estimate, Quantity, is_clear, is_seen

STRING_BYTES = "string bytes"
"""The name of bytes that string operations move, among special instructions."""

_WHOLE_FROM = 100
_LEAST_PART = Fraction(1, 100)
"""Which part of the bytes that are moved a change of them is, to be weighed."""

_CONTRARY = Fraction(1, 10)
"""Which part of an effect's instructions may be undone, for that to be named."""

_NOTHING = Fraction(0)
_UNKNOWN = (_NOTHING, Fraction(100_000))
"""Cycles of a special instruction that no table has, as a newer version may count it."""

Range = tuple[Fraction, Fraction]
"""Cycles, at least and at most."""


class _Cost(msgspec.Struct, frozen=True, array_like=True):
    least: float
    most: float
    source: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, str]
    cycles: dict[Literal["insn", "string-byte"], _Cost]
    special: dict[str, _Cost]


class Weights(msgspec.Struct, frozen=True):
    """Cycles of an instruction, of a byte of a string operation, and of each special kind.

    by_register: instructions that have ranges by register. Such a kind without one may be of any
    register.
    """

    insn: Range
    string_byte: Range
    special: dict[str, Range]
    by_register: frozenset[str]

    def of(self, kind: str) -> Range:
        """Return the cycles of what is no plain instruction."""
        if kind == STRING_BYTES:
            return self.string_byte
        return self.special.get(kind) or self.special.get(plain_kind(kind), _UNKNOWN)

    def fewer(self, kind: str) -> Range:
        """Return what one less of it saves: of any register, nothing for certain."""
        least, most = self.of(kind)
        return (_NOTHING if self._is_any(kind) else least), most

    def label(self, kind: str) -> str:
        """Return the kind, with what is not known of it."""
        what = "device" if kind == "mmio" else "register"
        return f"{kind} ({what} not known)" if kind in self.by_register else kind

    def _is_any(self, kind: str) -> bool:
        has_own = " " in kind and kind in self.special
        return plain_kind(kind) in self.by_register and not has_own


class EffectCycles(msgspec.Struct, frozen=True):
    """An effect in cycles an iteration, at least and at most.

    terms     what of it is no plain instruction: the change of each, by its name
    decided   runs agree on these terms well enough for a verdict to be taken from them
    least_of_base, most_of_base  the cycles of the base's instructions
    """

    low: Fraction
    high: Fraction
    terms: dict[str, Fraction]
    decided: bool
    least_of_base: Fraction
    most_of_base: Fraction

    def within(self, part: Fraction) -> bool:
        """Whether the effect is at most that part of the base, whatever things cost."""
        return max(abs(self.low), abs(self.high)) <= part * self.least_of_base


@functools.cache
def all_weights() -> dict[str, Weights]:
    """Return the ranges of cycles by architecture."""
    text = resources.files(__package__).joinpath("cycles.toml").read_bytes()
    return {
        name: Weights(
            _range(table.cycles["insn"]),
            _range(table.cycles["string-byte"]),
            {kind: _range(cost) for kind, cost in table.special.items()},
            frozenset(plain_kind(kind) for kind in table.special if " " in kind),
        )
        for name, table in msgspec.toml.decode(text, type=dict[str, _Table]).items()
    }


def _range(cost: _Cost) -> Range:
    return Fraction(str(cost.least)), Fraction(str(cost.most))


def _weights_of(kinds: Collection[str]) -> Weights:
    """The ranges of the architecture that has these kinds, or most of them."""
    plain = set(map(plain_kind, kinds))
    return max(all_weights().values(), key=lambda one: len(one.special.keys() & plain))


def weigh_effect(
    insns: Quantity, string_bytes: Quantity, specials: dict[str, Quantity]
) -> EffectCycles:
    """Return what an effect on a region's own work costs, by what runs show of it."""
    found = {kind: quantity.effect for kind, quantity in specials.items()}
    if _is_weighed(string_bytes):
        found[STRING_BYTES] = string_bytes.effect
    found = {kind: effect for kind, effect in found.items() if is_seen(effect)}
    cycles = _weights_of(specials)
    ranges = [_times(effect, cycles.of(kind), cycles.fewer(kind)) for kind, effect in found.items()]
    ranges.append(_times(insns.effect, cycles.insn, cycles.insn))
    low, high = (sum((one[end] for one in ranges), Fraction(0)) for end in (0, 1))
    if STRING_BYTES in found and _is_traded(insns.effect.value, string_bytes.effect.value):
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    base = abs(insns.base.value)
    return EffectCycles(
        low=low,
        high=high,
        terms={kind: effect.value for kind, effect in found.items()},
        decided=all(map(_is_decided, found.values())),
        least_of_base=base * cycles.insn[0],
        most_of_base=base * cycles.insn[1],
    )


def _is_weighed(string_bytes: Quantity) -> bool:
    most = max(string_bytes.base.value, string_bytes.other.value)
    return abs(string_bytes.effect.value) >= _LEAST_PART * most


def _is_traded(insns: Fraction, moved: Fraction) -> bool:
    """Whether instructions may do what as many bytes of string operations did, or the other way
    round: they are not plain ones then, and wait for memory as well.
    """
    return insns * moved < 0 and abs(moved) >= abs(insns)


def _is_decided(effect: Estimate) -> bool:
    """Whether a verdict may be taken from an effect."""
    return effect.exact or effect.is_enough or is_clear(effect, CLEAR)


def _times(effect: Estimate, more: Range, fewer: Range) -> Range:
    ends = [
        end * factor for end in (effect.low, effect.high) for factor in (fewer if end < 0 else more)
    ]
    return min(ends), max(ends)


def terms_beyond(found: EffectCycles, insns: Fraction) -> list[str]:
    """Return those of the terms that certainly take more cycles than so many instructions, or have
    the other sign and may take a part of theirs that matters.
    """
    cycles = _weights_of(found.terms)
    least, most = (abs(insns) * end for end in cycles.insn)

    def is_beyond(kind: str, value: Fraction) -> bool:
        its_least, its_most = (abs(value) * end for end in cycles.of(kind))
        return its_least > most or (value * insns < 0 and its_most >= _CONTRARY * least)

    terms = {kind: value for kind, value in found.terms.items() if is_beyond(kind, value)}
    return terms_text(msgspec.structs.replace(found, terms=terms))


def terms_text(found: EffectCycles) -> list[str]:
    """Return what differs besides plain instructions, an iteration, most cycles first."""
    cycles = _weights_of(found.terms)
    order = sorted(found.terms, key=lambda kind: -abs(found.terms[kind]) * cycles.of(kind)[1])
    return [f"{_signed(found.terms[kind])} {cycles.label(kind)}" for kind in order]


def _signed(value: Fraction) -> str:
    return f"{float(value):+.0f}" if abs(value) >= _WHOLE_FROM else f"{float(value):+.3g}"

# SPDX-License-Identifier: GPL-2.0-or-later
"""Which unit did what, read from kernels that have many units flipped each (coded.py).

Every function's cost in every region is a signal: one figure a kernel. A function is changed by few
units, so its figures take few values, and which kernels have which value tells whose they are: with
one unit, all kernels of its code differ from A by the same amount and no other kernel does. Each
signal is explained by the fewest units that fit all kernels to within their spread; a signal that
several such explanations fit goes to units that others of its region speak for, else to none.
What two units do only together is explained so too, once both are known to do something.

Counts are exact integers an iteration for the most part, so that a wrong explanation seldom fits;
what none fits is left open, and said.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.by_key import by_key
from kdelta.infer.effects.estimate import ZERO
from kdelta.infer.search.search_model import FlipSet, Parts

Term = frozenset[str]
"""Units whose joint flip does something: a class, or two that interact. A class are the units that
are flipped together in all kernels: often one, else several that these kernels do not distinguish.
"""

_MOST_TERMS = 3
_MOST_LIKELY = 8
_ROUNDING = 1e-6  # of a signal's size: floating point against exact figures


class Explained(msgspec.Struct, frozen=True):
    """One function's cost in one region, and the terms that account for all of its differences."""

    region: str
    function: str
    effects: dict[Term, Fraction]


class Decoding(msgspec.Struct, frozen=True):
    """What signals say. `open`: region -> function -> the most that it differs from A where that is
    not explained, in instructions an iteration.
    """

    classes: tuple[Term, ...]
    explained: tuple[Explained, ...]
    open: dict[str, dict[str, Fraction]]

    def effects(self) -> dict[Term, dict[str, Fraction]]:
        """What each term does in each region, over all functions."""
        sums: dict[Term, dict[str, Fraction]] = {}
        for one in self.explained:
            for term, value in one.effects.items():
                regions = sums.setdefault(term, {})
                regions[one.region] = regions.get(one.region, ZERO) + value
        return sums


class _Signals:
    """The functions whose cost differs between kernels by more than their spread.

    values, spread: (n signals, n kernels): the difference from A, and how far it may be off.
    """

    def __init__(self, first: Parts, others: Sequence[Parts]) -> None:
        self.keys: list[tuple[str, str]] = []
        self.exact: list[list[Fraction]] = []
        spread: list[list[Fraction]] = []
        for region in first:
            for name in {n: None for parts in (first, *others) for n in parts.get(region, {})}:
                row, reach = _differences(region, name, first, others)
                if any(abs(value) > far for value, far in zip(row, reach, strict=True)):
                    self.keys.append((region, name))
                    self.exact.append(row)
                    spread.append(reach)
        shape = len(self.keys), len(others)
        self.values = np.array(self.exact, dtype=np.float64).reshape(shape)
        self.spread = np.array(spread, dtype=np.float64).reshape(shape)


def _differences(
    region: str, name: str, first: Parts, others: Sequence[Parts]
) -> tuple[list[Fraction], list[Fraction]]:
    """A function's cost in each kernel less that in A, and the sum of both ranges."""
    here = [parts.get(region, {}).get(name) for parts in (first, *others)]
    ranges = sorted(one.high - one.low for one in here if one)
    typical = ranges[(len(ranges) - 1) // 2] if ranges else ZERO
    base = here[0].value if here[0] else ZERO
    reach = [max(one.high - one.low, typical) if one else typical for one in here]
    row = [(one.value if one else ZERO) - base for one in here[1:]]
    return row, [far + reach[0] for far in reach[1:]]


def decode_differences(units: Sequence[str], kernels: Mapping[FlipSet, Parts]) -> Decoding:
    """Explains what differs between A (the kernel of no flips) and the others.

    units     those that may be behind a difference
    kernels   by what is flipped in each; A among them
    """
    others = [flips for flips in kernels if flips]
    signals = _Signals(kernels[frozenset()], [kernels[flips] for flips in others])
    fits = _Fits(signals, others, _classes(units, others))
    for size in range(1, _MOST_TERMS + 1):
        fits.explain(fits.classes, size)
        fits.explain(fits.moving(), size)
    fits.explain_by_region()
    return fits.decoding()


def _classes(units: Sequence[str], kernels: Sequence[FlipSet]) -> tuple[Term, ...]:
    """The units by the kernels in which they are flipped."""
    found = by_key((tuple(name in flips for flips in kernels), name) for name in units)
    return tuple(frozenset(names) for names in found.values())


class _Fits:
    """The explanations found so far, the simplest first."""

    def __init__(
        self, signals: _Signals, kernels: Sequence[FlipSet], classes: tuple[Term, ...]
    ) -> None:
        self.classes = classes
        self._signals = signals
        self._kernels = kernels
        self._found: dict[int, tuple[Term, ...]] = {}
        self._open = set(range(len(signals.keys)))
        # Two explanations of n terms each differ by up to 2 n: with fewer figures both might fit
        # (Donoho & Elad 2003, doi:10.1073/pnas.0437847100).
        self._most = max(1, len(set(kernels)) // 2)

    def moving(self) -> list[Term]:
        """The classes that account for anything, each alone and each two of them together."""
        found = {term for terms in self._found.values() for term in terms}
        alone = [one for one in self.classes if any(one <= term for term in found)]
        return [*alone, *(one | other for one, other in itertools.combinations(alone, 2))]

    def explain_by_region(self) -> None:
        """Tries sets of any size of the terms that do most in a region, on what is open in it."""
        support = self._support().most_common()
        for region, terms in by_key((region, term) for (region, term), _ in support).items():
            likely = terms[:_MOST_LIKELY]
            for size in range(2, min(len(likely), self._most) + 1):
                self.explain(likely, size, region)

    def explain(self, terms: Sequence[Term], size: int, region: str = "") -> None:
        """Tries all sets of so many terms on the signals that are open, in one region or all."""
        if size > self._most:
            return
        keys = self._signals.keys
        here = [row for row in sorted(self._open) if keys[row][0] == region or not region]
        rows = np.array(here, dtype=np.intp)
        candidates: dict[int, list[tuple[Term, ...]]] = {}
        for chosen, fitting in self._fitting(terms, size, rows):
            for row in rows[fitting]:
                candidates.setdefault(int(row), []).append(chosen)
        self._settle({row: sets[0] for row, sets in candidates.items() if len(sets) == 1})
        support = self._support()
        for row, sets in candidates.items():
            if len(sets) > 1 and (best := self._most_supported(row, sets, support)):
                self._settle({row: best})

    def _settle(self, found: Mapping[int, tuple[Term, ...]]) -> None:
        self._found.update(found)
        self._open -= found.keys()

    def _support(self) -> Counter[tuple[str, Term]]:
        """How many signals of a region each term accounts for."""
        return Counter(
            (self._signals.keys[row][0], term)
            for row, terms in self._found.items()
            for term in terms
        )

    def _most_supported(
        self, row: int, sets: Sequence[tuple[Term, ...]], support: Counter[tuple[str, Term]]
    ) -> tuple[Term, ...] | None:
        """The one whose terms all do something else in the region already; None if not one."""
        region = self._signals.keys[row][0]
        known = [s for s in sets if all(support[region, term] for term in s)]
        return known[0] if len(known) == 1 else None

    def _fitting(
        self, terms: Sequence[Term], size: int, rows: npt.NDArray[np.intp]
    ) -> Iterator[tuple[tuple[Term, ...], npt.NDArray[np.bool_]]]:
        """Sets of terms, with which rows they fit: every kernel to within its spread, and each
        term's own part of it more than that.
        """
        values, spread = self._signals.values[rows], self._signals.spread[rows]
        slack = spread + _ROUNDING * np.abs(values).max(axis=1, initial=0, keepdims=True)
        least = spread.min(axis=1, initial=np.inf)[:, None]
        columns = {
            term: np.array([term <= flips for flips in self._kernels], dtype=np.float64)
            for term in terms
        }
        for chosen in itertools.combinations(terms, size):
            design = np.stack([columns[term] for term in chosen], axis=1)
            if np.linalg.matrix_rank(design) < size:
                continue
            parts = values @ np.linalg.pinv(design).T
            fitting = (np.abs(parts @ design.T - values) <= slack).all(axis=1)
            fitting &= (np.abs(parts) > least).all(axis=1)
            if fitting.any():
                yield chosen, fitting

    def decoding(self) -> Decoding:
        """What was found."""
        explained: list[Explained] = []
        left: dict[str, dict[str, Fraction]] = {}
        for row, (region, name) in enumerate(self._signals.keys):
            exact = self._signals.exact[row]
            if row in self._found:
                effects = _solved(self._found[row], self._kernels, exact)
                explained.append(Explained(region, name, effects))
            else:
                left.setdefault(region, {})[name] = max(exact, key=abs)
        return Decoding(self.classes, tuple(explained), left)


def _solved(
    terms: Sequence[Term], kernels: Sequence[FlipSet], values: Sequence[Fraction]
) -> dict[Term, Fraction]:
    """The terms' effects by least squares, in exact arithmetic: figures must add up."""
    rows = [[Fraction(int(term <= flips)) for term in terms] for flips in kernels]
    size = len(terms)
    table = [
        [sum((row[i] * row[j] for row in rows), ZERO) for j in range(size)]
        + [sum((row[i] * value for row, value in zip(rows, values, strict=True)), ZERO)]
        for i in range(size)
    ]
    for i in range(size):
        pivot = next(k for k in range(i, size) if table[k][i])
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [value / table[i][i] for value in table[i]]
        for k in range(size):
            if k != i and table[k][i]:
                factor = table[k][i]
                table[k] = [a - factor * b for a, b in zip(table[k], table[i], strict=True)]
    return {term: table[i][size] for i, term in enumerate(terms)}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices of misses from timed and replayed links of programs.

    cycles[program, link] = base[program] + sum over k of price[k] x events[k][program, link]

Prices are shared by all programs and not negative, a base is each program's own: so only the
differences between links of one program count. Programs are weighed by how well they can be
predicted at all (the noise of their timing, or what is left over), and links that something else
slowed count less (Huber). What does not improve the prediction of programs that are left out of
the fit is left out of it.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from kdelta.cpus.model import EXPOSED, LINES, WAITS
from kdelta.infer.calibration.between import between_programs
from kdelta.infer.calibration.model import (
    F64,
    LEAST_LINKS,
    Contribution,
    Fitted,
    FittedPrice,
    LeftOut,
    ProgramFit,
    ProgramRows,
)
from kdelta.infer.calibration.nonnegative import nonnegative, rank_correlation
from kdelta.spec.errors import UserError

LEAST_PROGRAMS = 3
"""With fewer, none can be left out."""

ALTERNATIVES = (frozenset({LINES, EXPOSED}), frozenset({"fetch-windows", WAITS}))
"""Two ways to count one thing, of which one is priced at most."""

_ROUNDS = 5  # of weights; they move by less than a percent after that
_HUBER = 1.345  # 95 % as good as least squares where the errors are normal (Huber 1981)
_MAD = 1.4826  # from the median of absolute deviations to a standard deviation of normal errors
_QUARTILES = 1.349  # from their distance to a standard deviation, of normal errors
_MOST_OFF = 4
_MOST_WRONG = 2.0  # 1: as wrong as no prediction
_FLOOR = 2.5e-3  # of a pass: differences of no interest
_LEAST_GAIN = 0.01
_GAIN_DIGITS = 9  # what is beyond depends on the processor that does the sums
_TAIL = 2.5  # per cent, at either end of an interval
_CLEAR = 4.0  # of some 40 programs and 12 mechanisms, hardly one is so far off by chance


class _ProgramTable(msgspec.Struct, frozen=True, eq=False):
    """Programs side by side: cycles, there (p, n), events (p, n, k), floors (p,): the differences
    that matter. Where a program has fewer than n links, `there` is 0.
    """

    rows: tuple[ProgramRows, ...]
    cycles: F64
    events: F64
    there: F64
    floors: F64

    def of(self, programs: Sequence[int]) -> "_ProgramTable":
        """Some of them."""
        at = np.array(programs, dtype=np.int64)
        return _ProgramTable(
            tuple(self.rows[k] for k in programs),
            self.cycles[at],
            self.events[at],
            self.there[at],
            self.floors[at],
        )

    def middles(self, values: F64) -> F64:
        """The median over the links of each program: (p,)."""
        ordered = np.sort(np.where(self.there > 0, values, np.inf), axis=1)
        n = self.there.sum(axis=1).astype(np.int64)
        at = np.arange(len(n))
        found: F64 = (ordered[at, (n - 1) // 2] + ordered[at, n // 2]) / 2
        return found


def fit(
    rows: Sequence[ProgramRows],
    *,
    seed: int = 1,
    candidates: Collection[str] | None = None,
    resamples: int = 200,
) -> Fitted:
    """Fits shared prices to programs with a base each.

    candidates: mechanisms that may be priced; by default all that every program has.
    seed: of the `resamples` by which intervals are found. The order of programs and of links does
    not matter, but for the draw of resamples. UserError with fewer than LEAST_PROGRAMS programs of
    LEAST_LINKS links.
    """
    usable = sorted((p for p in rows if len(p.cycles) >= LEAST_LINKS), key=lambda p: p.name)
    if len(usable) < LEAST_PROGRAMS:
        raise UserError(
            f"{len(usable)} programs of {LEAST_LINKS} links or more: too few to fit prices",
            f"give at least {LEAST_PROGRAMS}",
        )
    common = set.intersection(*(set(one.events) for one in usable))
    names = sorted(common if candidates is None else common & set(candidates))
    programs = _table([_ordered(one, names) for one in usable], names)
    ranges = _ranges(programs)
    varying = [k for k in range(len(names)) if (ranges[:, k] > 0).any()]
    kept, errors = _select(programs, varying, names)
    prices = _prices(programs, kept)
    low, high = _intervals(programs, kept, (seed, resamples))
    noises = np.array([2 * one.noise for one in programs.rows])
    fitted = {
        names[k]: FittedPrice(
            names[k],
            float(prices[k]),
            float(min(low[k], prices[k])),
            float(max(high[k], prices[k])),
            int((prices[k] * ranges[:, k] > noises).sum()),
        )
        for k in kept
    }
    between, base_rate = between_programs(usable, fitted, seed=seed, resamples=resamples)
    return Fitted(
        prices=fitted,
        quality=tuple(
            program_fit(one, guess[: len(one.cycles)])
            for one, guess in zip(programs.rows, _left_one_out(programs, kept), strict=True)
        ),
        contributions=_contributions(programs, kept, names, errors),
        left_out=_left_out(programs, kept, names, (varying, errors, (seed, resamples))),
        between=between,
        base_rate=base_rate,
    )


def predicted(prices: dict[str, FittedPrice], rows: ProgramRows) -> ProgramFit:
    """A program that took no part in a fit, compared with the prices."""
    found = sum((p.value * rows.events[name] for name, p in prices.items()), np.zeros(1))
    return program_fit(rows, np.broadcast_to(found, rows.cycles.shape).astype(np.float64))


def program_fit(rows: ProgramRows, cycles: F64) -> ProgramFit:
    """How well predicted cycles (n_links,), up to a constant, distinguish the links of a
    program.
    """
    measured = rows.cycles
    deviation = measured - measured.mean()
    error = measured - cycles - (measured - cycles).mean()
    variance = float((deviation**2).sum())
    plain = rows.events.get(LINES)  # all that a model without a front end has
    return ProgramFit(
        name=rows.name,
        flow=rows.flow,
        links=len(measured),
        insns=rows.insns,
        cycles=float(np.median(measured)),
        spread=float(np.ptp(measured)),
        predicted_spread=float(np.ptp(cycles)),
        noise=rows.noise,
        rank=rank_correlation(measured, cycles),
        plain_rank=None if plain is None else rank_correlation(measured, plain),
        explained=1 - float((error**2).sum()) / variance if variance else None,
        predictable=rows.predictable,
    )


def _ordered(rows: ProgramRows, names: Sequence[str]) -> ProgramRows:
    """The program with its links in an order that is not the caller's."""
    columns = {name: np.asarray(of, dtype=np.float64) for name, of in rows.events.items()}
    cycles = np.asarray(rows.cycles, dtype=np.float64)
    order = np.lexsort((*(columns[name] for name in names), cycles))
    return msgspec.structs.replace(
        rows, cycles=cycles[order], events={name: of[order] for name, of in columns.items()}
    )


def _table(rows: Sequence[ProgramRows], names: Sequence[str]) -> _ProgramTable:
    most = max(len(one.cycles) for one in rows)
    cycles, there = np.zeros((2, len(rows), most))
    events = np.zeros((len(rows), most, len(names)))
    for p, one in enumerate(rows):
        n = len(one.cycles)
        cycles[p, :n], there[p, :n] = one.cycles, 1
        for k, name in enumerate(names):
            events[p, :n, k] = one.events[name]
    floors = [max(one.noise, _FLOOR * float(np.median(one.cycles))) for one in rows]
    return _ProgramTable(tuple(rows), cycles, events, there, np.array(floors))


def _ranges(programs: _ProgramTable) -> F64:
    """How far each mechanism's most and least are apart over the links of each program: (p, k)."""
    there = programs.there[:, :, None] > 0
    high = np.where(there, programs.events, -np.inf).max(axis=1)
    found: F64 = high - np.where(there, programs.events, np.inf).min(axis=1)
    return found


def _weights(programs: _ProgramTable, residual: F64) -> F64:
    """Of each link: by the program's scale, less for links that are off."""
    off = np.abs(residual - programs.middles(residual)[:, None])
    scale = np.maximum(programs.floors, _MAD * programs.middles(off))[:, None]
    found: F64 = np.minimum(1.0, _HUBER * scale / np.maximum(off, 1e-12)) / scale**2
    return programs.there * found


def _own_prices(programs: _ProgramTable, k: int, weights: F64) -> tuple[F64, F64]:
    """What single programs would have a mechanism cost, by their links alone: of those that tell it
    by _CLEAR standard errors; and of all that would tell it so if they paid as much.
    """
    share = weights / weights.sum(axis=1, keepdims=True)
    cycles = programs.cycles - (share * programs.cycles).sum(axis=1, keepdims=True)
    events = programs.events[:, :, k]
    apart = events - (share * events).sum(axis=1, keepdims=True)
    known = (weights * apart**2).sum(axis=1)
    own = (weights * apart * cycles).sum(axis=1) / np.maximum(known, 1e-12)
    clear = own[own * np.sqrt(known) > _CLEAR]
    if not len(clear):
        return clear, clear
    return clear, np.maximum(own[np.percentile(clear, 90) * np.sqrt(known) > _CLEAR], 0.0)


def _begin(programs: _ProgramTable, kept: Sequence[int]) -> F64:
    """Where a fit of prices begins: at the median of what programs say alone, so that the
    many decide which of them are off, and not those whose links differ most.
    """
    found = np.zeros(programs.events.shape[2])
    weights = programs.there / programs.floors[:, None] ** 2
    for k in kept:
        _, own = _own_prices(programs, k, weights)
        found[k] = np.median(own) if len(own) else 0.0
    return found


def _prices(programs: _ProgramTable, kept: Sequence[int], rounds: int = _ROUNDS) -> F64:
    """The price of each mechanism, (k,), 0 for those that are not in `kept`."""
    found = np.zeros(programs.events.shape[2])
    if not kept:
        return found
    held = np.array(kept)
    events = programs.events[:, :, held]
    weights = _weights(programs, programs.cycles - programs.events @ _begin(programs, kept))
    for _ in range(rounds):
        share = weights / weights.sum(axis=1, keepdims=True)
        apart = events - np.einsum("pn,pnk->pk", share, events)[:, None]
        cycles = programs.cycles - (share * programs.cycles).sum(axis=1, keepdims=True)
        weighted = (weights[:, :, None] * apart).reshape(-1, len(held))
        gram = weighted.T @ apart.reshape(-1, len(held))
        found[held] = nonnegative(gram, weighted.T @ cycles.reshape(-1))
        weights = _weights(programs, programs.cycles - events @ found[held])
    return found


def _left_one_out(programs: _ProgramTable, kept: Sequence[int]) -> F64:
    """The cycles (p, n) that prices of all other programs predict, up to a constant for each.
    Programs of one code are left out together: they are relinked alike.
    """
    codes = [one.code or one.name for one in programs.rows]
    found = np.zeros(programs.cycles.shape)
    for code in sorted(set(codes)):
        mine = [p for p, other in enumerate(codes) if other == code]
        others = [p for p, other in enumerate(codes) if other != code]
        if others:
            found[mine] = programs.events[mine] @ _prices(programs.of(others), kept)
    return found


def _error(programs: _ProgramTable, kept: Sequence[int]) -> float:
    """Of leave-one-out predictions: the mean over programs of their squared error, as a share of
    the variance that there is; where there is hardly any, of differences of no interest. A program
    that is predicted all wrong, since its code hides what others pay, counts as _MOST_WRONG.
    """
    residual = programs.cycles - _left_one_out(programs, kept)
    quartiles = np.array([np.percentile(one.cycles, [25, 75]) for one in programs.rows])
    scale = ((quartiles[:, 1] - quartiles[:, 0]) / _QUARTILES) ** 2 + programs.floors**2
    limit = _MOST_OFF * np.sqrt(scale)[:, None]  # a link that something slowed does not decide
    off = np.clip(residual - programs.middles(residual)[:, None], -limit, limit) * programs.there
    errors = (off**2).sum(axis=1) / programs.there.sum(axis=1) / scale
    return float(np.minimum(errors, _MOST_WRONG).mean())


def _is_alternative(name: str, kept: Iterable[str]) -> bool:
    return any({name, other} == pair for other in kept for pair in ALTERNATIVES)


def _select(
    programs: _ProgramTable, varying: Sequence[int], names: Sequence[str]
) -> tuple[list[int], dict[tuple[int, ...], float]]:
    """The mechanisms that improve the prediction of what was left out; errors of all tried sets."""
    errors: dict[tuple[int, ...], float] = {}

    def error(of: Iterable[int]) -> float:
        key = tuple(sorted(of))
        if key not in errors:
            errors[key] = _error(programs, key)
        return errors[key]

    kept: list[int] = []
    while rest := [
        k
        for k in varying
        if k not in kept and not _is_alternative(names[k], [names[other] for other in kept])
    ]:
        best = min(rest, key=lambda k: error([*kept, k]))
        if error([*kept, best]) > (1 - _LEAST_GAIN) * error(kept):
            break
        kept.append(best)
        for other in kept[:-1]:
            without = [k for k in kept if k != other]
            if error(without) <= error(kept) * (1 + _LEAST_GAIN / 2):
                kept = without
    prices = _prices(programs, kept)
    kept = sorted(k for k in kept if prices[k] > 0)
    error(kept)
    return kept, errors


def _contributions(
    programs: _ProgramTable,
    kept: Sequence[int],
    names: Sequence[str],
    errors: dict[tuple[int, ...], float],
) -> tuple[Contribution, ...]:
    now = errors[tuple(sorted(kept))]
    found = []
    for k in kept:
        key = tuple(other for other in sorted(kept) if other != k)
        found.append(Contribution(names[k], 1 - now / (errors.get(key) or _error(programs, key))))
    return tuple(sorted(found, key=lambda one: -one.gain))


def _left_out(
    programs: _ProgramTable,
    kept: Sequence[int],
    names: Sequence[str],
    how: tuple[Sequence[int], dict[tuple[int, ...], float], tuple[int, int]],
) -> tuple[LeftOut, ...]:
    varying, errors, (seed, resamples) = how
    now = errors[tuple(sorted(kept))]
    found = []
    for k, name in enumerate(names):
        if k in kept:
            continue
        if k not in varying:
            found.append(LeftOut(name, 0.0, "no link changes it"))
            continue
        others = [o for o in kept if not _is_alternative(name, [names[o]])]
        key = tuple(sorted((*others, k)))
        gain = round(1 - (errors.get(key) or _error(programs, key)) / now, _GAIN_DIGITS) + 0.0
        most = float(_intervals(programs, key, (seed, max(20, resamples // 4)))[1][k])
        why = "no better with it" if len(others) == len(kept) else "no better in place of the other"
        found.append(LeftOut(name, gain, why, most))
    return tuple(sorted(found, key=lambda one: (-one.gain, one.name)))


def _intervals(
    programs: _ProgramTable, kept: Sequence[int], draw: tuple[int, int]
) -> tuple[F64, F64]:
    """The ends of each price's interval: of fits to programs, and links of each, drawn again."""
    k = programs.events.shape[2]
    if not kept:
        return np.zeros(k), np.zeros(k)
    seed, resamples = draw
    random = np.random.default_rng(seed)
    links = programs.there.sum(axis=1)
    drawn = np.zeros((resamples, k))
    for row in range(resamples):
        again = programs.of(random.integers(0, len(links), len(links)).tolist())
        at = (random.random(again.cycles.shape) * again.there.sum(axis=1)[:, None]).astype(np.int64)
        again = msgspec.structs.replace(
            again,
            cycles=np.take_along_axis(again.cycles, at, 1),
            events=np.take_along_axis(again.events, at[:, :, None], 1),
        )
        drawn[row] = _prices(again, kept, rounds=3)
    low, high = np.percentile(drawn, [_TAIL, 100 - _TAIL], axis=0)
    weights = _weights(programs, programs.cycles - programs.events @ _prices(programs, kept))
    for k in kept:
        clear, _ = _own_prices(programs, k, weights)
        if len(clear):  # code differs in what it hides: an interval ends no lower
            high[k] = max(high[k], np.percentile(clear, 90))
    return low, high

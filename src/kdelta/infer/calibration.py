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

from kdelta.infer.calibration_between import between_programs
from kdelta.infer.calibration_model import (
    F64,
    LEAST_LINKS,
    Contribution,
    Fitted,
    FittedPrice,
    LeftOut,
    ProgramFit,
    ProgramRows,
)
from kdelta.infer.nonnegative import nonnegative, rank_correlation
from kdelta.spec.errors import UserError

LEAST_PROGRAMS = 3
"""With fewer, none can be left out."""

PLAIN = "l1i"
"""The misses that a model without a front end has."""

_ROUNDS = 5  # of weights; they move by less than a percent after that
_HUBER = 1.345  # 95 % as good as least squares where the errors are normal (Huber 1981)
_MAD = 1.4826  # from the median of absolute deviations to a standard deviation of normal errors
_QUARTILES = 1.349  # from their distance to a standard deviation, of normal errors
_MOST_OFF = 4
_FLOOR = 1e-3  # of a pass: differences that nobody asks for
_LEAST_GAIN = 0.01
_TAIL = 2.5  # per cent, at either end of an interval


class _Program(msgspec.Struct, frozen=True, eq=False):
    """rows' cycles (n,) and events (n, k), and the differences that matter."""

    rows: ProgramRows
    cycles: F64
    events: F64
    floor: float


def fit(
    rows: Sequence[ProgramRows],
    *,
    seed: int = 1,
    candidates: Collection[str] | None = None,
    resamples: int = 200,
) -> Fitted:
    """Fits shared prices to programs with a base each.

    candidates: mechanisms that may be priced; all that every program has, where nothing is said.
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
    names = _mechanisms(usable, candidates)
    programs = [_program(one, names) for one in usable]
    varying = [
        k for k in range(len(names)) if any(np.ptp(one.events[:, k]) > 0 for one in programs)
    ]
    kept, errors = _select(programs, varying)
    prices = _prices(programs, kept)
    low, high = _intervals(programs, kept, (seed, resamples))
    fitted = {
        names[k]: FittedPrice(
            names[k],
            float(prices[k]),
            float(min(low[k], prices[k])),
            float(max(high[k], prices[k])),
            sum(_tells(one, k, float(prices[k])) for one in programs),
        )
        for k in kept
    }
    between, base_rate = between_programs(usable, fitted, seed=seed, resamples=resamples)
    return Fitted(
        prices=fitted,
        quality=_quality(programs, kept),
        contributions=_contributions(programs, kept, names, errors),
        left_out=_left_out(programs, kept, names, varying, errors),
        between=between,
        base_rate=base_rate,
    )


def predicted(prices: dict[str, FittedPrice], rows: ProgramRows) -> ProgramFit:
    """A program that took no part in a fit, held against the prices."""
    found = sum((p.value * rows.events[name] for name, p in prices.items()), np.zeros(1))
    return program_fit(rows, np.broadcast_to(found, rows.cycles.shape).astype(np.float64))


def program_fit(rows: ProgramRows, cycles: F64) -> ProgramFit:
    """How well predicted cycles (n_links,), up to a constant, tell the links of a program apart."""
    measured = rows.cycles
    offset = float(np.median(measured - cycles))
    deviation = measured - measured.mean()
    error = measured - cycles - (measured - cycles).mean()
    variance = float((deviation**2).sum())
    plain = rows.events.get(PLAIN)
    return ProgramFit(
        name=rows.name,
        flow=rows.flow,
        links=len(measured),
        insns=rows.insns,
        base=offset,
        spread=float(np.ptp(measured)),
        predicted_spread=float(np.ptp(cycles)),
        noise=rows.noise,
        rank=rank_correlation(measured, cycles),
        plain_rank=None if plain is None else rank_correlation(measured, plain),
        explained=1 - float((error**2).sum()) / variance if variance else None,
    )


def _mechanisms(rows: Sequence[ProgramRows], candidates: Collection[str] | None) -> list[str]:
    common = set.intersection(*(set(one.events) for one in rows))
    return sorted(common if candidates is None else common & set(candidates))


def _program(rows: ProgramRows, names: Sequence[str]) -> _Program:
    """The program with its links in an order that is not the caller's."""
    columns = {name: np.asarray(of, dtype=np.float64) for name, of in rows.events.items()}
    cycles = np.asarray(rows.cycles, dtype=np.float64)
    order = np.lexsort((*(columns[name] for name in names), cycles))
    ordered = msgspec.structs.replace(
        rows, cycles=cycles[order], events={name: of[order] for name, of in columns.items()}
    )
    table = np.zeros((len(cycles), len(names)))
    for k, name in enumerate(names):
        table[:, k] = ordered.events[name]
    floor = max(rows.noise, _FLOOR * float(np.median(cycles)))
    return _Program(ordered, ordered.cycles, table, floor)


def _centred(program: _Program, weights: F64) -> tuple[F64, F64]:
    share = weights / weights.sum()
    return program.cycles - share @ program.cycles, program.events - share @ program.events


def _weights(residual: F64, floor: float) -> F64:
    """Of each link: by the program's scale, less for links that are off."""
    middle = residual - np.median(residual)
    scale = max(floor, _MAD * float(np.median(np.abs(middle))))
    off = np.abs(middle) / scale
    return np.minimum(1.0, _HUBER / np.maximum(off, 1e-12)) / scale**2


def _prices(programs: Sequence[_Program], kept: Sequence[int], rounds: int = _ROUNDS) -> F64:
    """The price of each mechanism, (k,), 0 for those that are not in `kept`."""
    k = programs[0].events.shape[1]
    found = np.zeros(k)
    if not kept:
        return found
    held = np.array(kept)
    weights = [_weights(one.cycles, one.floor) for one in programs]
    for _ in range(rounds):
        gram, moments = np.zeros((len(held), len(held))), np.zeros(len(held))
        for one, weight in zip(programs, weights, strict=True):
            cycles, events = _centred(one, weight)
            chosen = events[:, held]
            gram += chosen.T @ (weight[:, None] * chosen)
            moments += chosen.T @ (weight * cycles)
        found[held] = nonnegative(gram, moments)
        weights = [_weights(one.cycles - one.events @ found, one.floor) for one in programs]
    return found


def _left_one_out(programs: Sequence[_Program], kept: Sequence[int]) -> list[F64]:
    """Of each program the cycles that prices of all others predict, up to a constant. Programs of
    one code are left out together: they are relinked alike.
    """
    found: dict[str, F64] = {}
    for one in programs:
        code = one.rows.code or one.rows.name
        if code not in found:
            others = [other for other in programs if (other.rows.code or other.rows.name) != code]
            found[code] = _prices(others, kept) if others else np.zeros(one.events.shape[1])
    return [one.events @ found[one.rows.code or one.rows.name] for one in programs]


def _error(programs: Sequence[_Program], kept: Sequence[int]) -> float:
    """Of leave-one-out predictions: the mean over programs of their squared error, as a share of
    the variance that there is; where there is hardly any, of what nobody asks for.
    """
    shares = []
    for one, guess in zip(programs, _left_one_out(programs, kept), strict=True):
        residual = one.cycles - guess
        low, high = np.percentile(one.cycles, [25, 75])
        scale = float((high - low) / _QUARTILES) ** 2 + one.floor**2
        limit = _MOST_OFF * np.sqrt(scale)  # a link that something slowed is not to decide
        off = np.clip(residual - np.median(residual), -limit, limit)
        shares.append(float(np.mean(off**2)) / scale)
    return float(np.mean(shares))


def _select(
    programs: Sequence[_Program], varying: Sequence[int]
) -> tuple[list[int], dict[tuple[int, ...], float]]:
    """The mechanisms that improve the prediction of what was left out; errors of all tried sets."""
    errors: dict[tuple[int, ...], float] = {}

    def error(of: Iterable[int]) -> float:
        key = tuple(sorted(of))
        if key not in errors:
            errors[key] = _error(programs, key)
        return errors[key]

    kept: list[int] = []
    while rest := [k for k in varying if k not in kept]:
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
    programs: Sequence[_Program],
    kept: Sequence[int],
    names: Sequence[str],
    errors: dict[tuple[int, ...], float],
) -> tuple[Contribution, ...]:
    now = errors[tuple(sorted(kept))]
    found = []
    for k in kept:
        key = tuple(other for other in sorted(kept) if other != k)
        before = errors.get(key) or _error(programs, key)
        found.append(Contribution(names[k], 1 - now / before))
    return tuple(sorted(found, key=lambda one: -one.gain))


def _left_out(
    programs: Sequence[_Program],
    kept: Sequence[int],
    names: Sequence[str],
    varying: Sequence[int],
    errors: dict[tuple[int, ...], float],
) -> tuple[LeftOut, ...]:
    now = errors[tuple(sorted(kept))]
    found = []
    for k, name in enumerate(names):
        if k in kept:
            continue
        if k not in varying:
            found.append(LeftOut(name, 0.0, "no link changes it"))
            continue
        key = tuple(sorted((*kept, k)))
        gain = 1 - (errors.get(key) or _error(programs, key)) / now
        found.append(LeftOut(name, gain, "programs left out are predicted no better with it"))
    return tuple(sorted(found, key=lambda one: (-one.gain, one.name)))


def _intervals(
    programs: Sequence[_Program], kept: Sequence[int], draw: tuple[int, int]
) -> tuple[F64, F64]:
    """The ends of each price's interval: of fits to programs, and links of each, drawn again."""
    k = programs[0].events.shape[1]
    if not kept:
        return np.zeros(k), np.zeros(k)
    seed, resamples = draw
    random = np.random.default_rng(seed)
    drawn = np.zeros((resamples, k))
    for row in range(resamples):
        chosen = random.integers(0, len(programs), len(programs))
        again = [_resampled(programs[int(index)], random) for index in chosen]
        drawn[row] = _prices(again, kept, rounds=3)
    return np.percentile(drawn, _TAIL, axis=0), np.percentile(drawn, 100 - _TAIL, axis=0)


def _resampled(program: _Program, random: np.random.Generator) -> _Program:
    at = random.integers(0, len(program.cycles), len(program.cycles))
    return msgspec.structs.replace(program, cycles=program.cycles[at], events=program.events[at])


def _tells(program: _Program, k: int, price: float) -> bool:
    return price * float(np.ptp(program.events[:, k])) > 2 * program.rows.noise


def _quality(programs: Sequence[_Program], kept: Sequence[int]) -> tuple[ProgramFit, ...]:
    guesses = _left_one_out(programs, kept)
    return tuple(program_fit(one.rows, guess) for one, guess in zip(programs, guesses, strict=True))

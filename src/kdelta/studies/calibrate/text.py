# SPDX-License-Identifier: GPL-2.0-or-later
"""A calibration as text that can be pasted into a mail."""

from collections.abc import Sequence

import numpy as np

from kdelta.cpus.misses import MISSES
from kdelta.infer.calibration.model import FittedPrice, ProgramFit
from kdelta.report.lines import finished, labelled, wrapped
from kdelta.spec.timings import MachineFacts, Quiet, TimedSpecial
from kdelta.studies.calibrate.model import CalibrationReport, CheckedProgram, CheckReport

NAMES = {**{kind: names.label for kind, names in MISSES.items()}, "base": "an instruction"}
_NAME = 34
_PROGRAM = 27


def calibration_text(report: CalibrationReport) -> str:
    """The whole report of `kdelta calibrate`."""
    fitted = report.fitted
    lines = ["kdelta calibrate: what a miss costs, in core cycles", ""]
    lines += _machine(report.machine, report.quiet, report.cpu, report.kernel)
    lines += ["", *_prices(report)]
    lines += ["", *_left_out(report)]
    lines += ["", *quality_lines(fitted.quality, "predicted by prices of all other programs")]
    lines += ["", *summary_lines(fitted.quality)]
    if report.specials:
        lines += ["", *_specials(report.specials)]
    if report.written:
        lines += ["", *wrapped(f"written: {report.written}; use it with --cpu host", "", "  ")]
    lines += _notes(report.notes)
    return finished(lines)


def check_text(report: CheckReport) -> str:
    """The whole report of `kdelta calibrate --check`."""
    lines = [f"kdelta calibrate --check: programs compared with the prices of {report.cpu}", ""]
    lines += _machine(report.machine, report.quiet, report.cpu, report.kernel)
    lines += ["", *quality_lines([one.fit for one in report.programs], "predicted by these prices")]
    for program in report.programs:
        lines += ["", *_worst(program)]
    lines += _notes(report.notes)
    return finished(lines)


def _machine(machine: MachineFacts, quiet: Quiet, cpu: str, kernel: str) -> list[str]:
    virtual = ", a virtual machine" if machine.hypervisor else ""
    lines = [
        *labelled(
            "machine", f"{machine.cpu}{virtual}; {machine.cores} cores, clock {machine.clock}"
        ),
        *labelled("geometry", f"{cpu}; traced under {kernel}"),
    ]
    how = "quiet" if quiet.ok else "not quiet"
    shares = (
        f"{how}: other programs {quiet.other_share:.1%} of the core, "
        f"steal {quiet.steal_share:.1%}, dropped {quiet.dropped_share:.1%} of repetitions; "
        f"{quiet.seconds:.0f} s"
    )
    lines += labelled("clock", shares)
    for said in quiet.said:
        lines += wrapped(said, "  ", "    ")
    return lines


def _price_row(name: str, price: FittedPrice, gain: str) -> str:
    text = NAMES.get(name, name)
    interval = f"{price.low:.2f} to {price.high:.2f}"
    return f"{text:<{_NAME}}{price.value:>8.2f}  {interval:<18}{price.programs:>4}  {gain}".rstrip()


def _prices(report: CalibrationReport) -> list[str]:
    fitted = report.fitted
    gains = {one.name: f"{one.gain:.0%}" for one in fitted.contributions}
    lines = [f"{'price of':<{_NAME}}{'cycles':>8}  {'interval':<18}{'n':>4}  helps by"]
    lines += [_price_row(name, price, gains.get(name, "")) for name, price in fitted.prices.items()]
    if not fitted.prices:
        lines.append("  no mechanism predicts links of programs that were left out")
    if fitted.between:
        lines += ["", "from differences between programs, not between links"]
        lines += [_price_row(name, price, "") for name, price in fitted.between.items()]
    if fitted.base_rate:
        lines += ["", _price_row("base", fitted.base_rate, "")]
    return lines


def _left_out(report: CalibrationReport) -> list[str]:
    lines = [
        f"  {NAMES.get(one.name, one.name):<{_NAME}}{one.gain:>7.1%}  {one.why}"
        for one in report.fitted.left_out
    ]
    return ["left out of the prices, and by how much they would help", *lines] if lines else []


def _figure(value: float | None, spec: str) -> str:
    return "-" if value is None else format(value, spec)


def quality_lines(quality: Sequence[ProgramFit], how: str) -> list[str]:
    """A row for each program: measured and predicted spread in per cent of an iteration's cycles,
    the noise of that, rank correlations with it and with plain misses, and the share explained.
    """
    head = f"{'spread':>7}{'model':>7}{'noise':>7}{'rank':>6}{'plain':>6}{'expl.':>6}"
    lines = [how, f"{'program':<{_PROGRAM}}{'n':>3}{head}"]
    for one in quality:
        shares = "".join(
            f"{value / one.cycles:>7.2%}" if one.cycles > 0 else f"{'-':>7}"
            for value in (one.spread, one.predicted_spread, one.noise)
        )
        ranks = f"{_figure(one.rank, '.2f'):>6}{_figure(one.plain_rank, '.2f'):>6}"
        mark = "" if one.above_noise else "  noise"
        lines.append(
            f"{one.name:<{_PROGRAM}}{one.links:>3}{shares}{ranks}"
            f"{_figure(one.explained, '.0%'):>6}{mark}"
        )
    return lines


def summary_lines(quality: Sequence[ProgramFit]) -> list[str]:
    """What was reached over all programs."""
    lines = []
    told = unpredictable_ranks(quality)
    if told:
        middle = float(np.median(told))
        lines += _sentence(
            f"unpredictable flow: rank correlation at least {min(told):.2f}, median {middle:.2f}, "
            f"over {len(told)} programs whose spread is above the noise"
        )
    apart = [
        abs(one.spread - one.predicted_spread) / one.cycles
        for one in quality
        if one.predictable and one.cycles > 0
    ]
    if apart:
        lines += _sentence(
            f"predictable flow: predicted spread at most {max(apart):.2%} of an iteration from the "
            f"measured one, over {len(apart)} programs"
        )
    return lines


def _sentence(text: str) -> list[str]:
    return wrapped(text, "", "  ")


def unpredictable_ranks(quality: Sequence[ProgramFit]) -> list[float]:
    """The rank correlations of programs with unpredictable flow that have something to be ranked:
    0 where all links are predicted alike.
    """
    return [one.rank or 0.0 for one in quality if not one.predictable and one.above_noise]


def _specials(specials: Sequence[TimedSpecial]) -> list[str]:
    lines = [f"{'special instruction':<{_NAME}}{'cycles':>8}  {'least':>9}{'most of':>10}"]
    for one in specials:
        name = f"{one.kind} {one.argument}" if one.argument else one.kind
        least, most = f"{one.cycles_low:>9.1f}", f"{one.cycles_high:>10.1f}"
        lines.append(f"{name:<{_NAME}}{one.cycles_median:>8.1f}  {least}{most}")
    return lines


def _worst(program: CheckedProgram) -> list[str]:
    lines = [f"{program.fit.name}: links that fit worst, cycles beyond the median"]
    for link in program.worst:
        events = ", ".join(f"{name} {count:+.0f}" for name, count in link.events)
        functions = ", ".join(f"{name} {count:+.0f}" for name, count in link.functions)
        text = f"seed {link.seed}: measured {link.measured:+.0f}, predicted {link.predicted:+.0f}"
        text += f"; {events}" if events else ""
        text += f"; functions: {functions}" if functions else ""
        lines += wrapped(text, "  ", "    ")
    return lines


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    return ["", "notes", *(line for note in notes for line in wrapped(note, "  ", "    "))]

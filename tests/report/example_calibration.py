# SPDX-License-Identifier: GPL-2.0-or-later
"""A calibration made up, and programs compared with it."""

import msgspec
import numpy as np

from kdelta.infer.calibration.fit import fit, predicted
from kdelta.infer.calibration.model import ProgramRows
from kdelta.spec.timings import MachineFacts, Quiet, TimedSpecial
from kdelta.studies.calibrate.model import (
    CalibrationReport,
    CheckedLink,
    CheckedProgram,
    CheckReport,
)

MACHINE = MachineFacts(
    id="0123abcd",
    arch="x86_64",
    cpu="Example CPU @ 2.00GHz",
    cpu_numbers="6 143 8",
    cores=2,
    core=1,
    hypervisor=True,
    kernel="6.12.1",
    clock="tsc",
)
QUIET = Quiet(
    seconds=60.0,
    steal_share=0.001,
    other_share=0.01,
    elsewhere_share=0.1,
    load_average=0.5,
    reference_spread=0.02,
    dropped_share=0.1,
    contended_share=0.2,
    ok=False,
    said=("the frequency moved by 2%",),
)
SPECIALS = (
    TimedSpecial("syscall", 0, 300.0, 320.0, 330.0),
    TimedSpecial("cpuid", 0, 3000.0, 3900.0, 4600.0),
    TimedSpecial("lock", 0, 18.0, 18.5, 19.0),
    TimedSpecial("rep-movs", 16, 10.0, 11.0, 12.0),
    TimedSpecial("rep-movs", 16384, 270.0, 280.0, 300.0),
    TimedSpecial("rep-stos", 65536, 3900.0, 4000.0, 4100.0),
)
PRICE = 4.0


def rows(name: str, flow: str, seed: int, links: int = 12) -> ProgramRows:
    """A program whose links differ by misses that cost PRICE each, if its flow is random."""
    random = np.random.default_rng(seed)
    misses = random.integers(20, 90, links).astype(float)
    paid = PRICE * misses if flow == "random" else 0 * misses
    return ProgramRows(
        name=name,
        flow=flow,
        cycles=10_000.0 + paid + random.normal(0, 1, links),
        noise=1.5,
        events={
            "l1i": misses if flow == "random" else 0 * misses,
            "conditional": random.integers(30, 40, links).astype(float) * (flow == "random"),
            "itlb": np.full(links, 3.0),
        },
        insns=20_000.0,
        data={"l1d": 5.0},
        code=name.partition("-")[0],
    )


def calibration_report() -> CalibrationReport:
    """Four programs of random and two of fixed flow."""
    programs = [rows(f"code{n}-random", "random", n) for n in range(4)]
    programs += [rows(f"code{n}-fixed", "fixed", n) for n in range(2)]
    return CalibrationReport(
        when="2026-11-22T04:00:00Z",
        machine=MACHINE,
        quiet=QUIET,
        cpu="icelake-server",
        kernel="deb:linux-image-cloud-amd64",
        relinks=12,
        fitted=fit(programs, resamples=20),
        specials=SPECIALS,
        rows=tuple(programs),
        written="/home/me/.config/kdelta/cpus/host.toml",
        notes=("a virtual machine",),
    )


def check_report() -> CheckReport:
    """One program that is predicted well, and one that is not at all."""
    report = calibration_report()
    good = rows("good", "random", 9)
    bad = msgspec.structs.replace(rows("bad", "random", 10), cycles=rows("x", "random", 11).cycles)
    worst = CheckedLink(3, 150.0, -20.0, (("l1i", 12.5),), (("copy0_f1", 3.0),))
    prices = report.fitted.prices
    return CheckReport(
        when=report.when,
        machine=MACHINE,
        quiet=QUIET,
        cpu="host",
        kernel=report.kernel,
        prices=prices,
        programs=tuple(
            CheckedProgram(predicted(prices, one), (worst,), one) for one in (good, bad)
        ),
        notes=(),
    )

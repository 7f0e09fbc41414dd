# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock as a measure: pairs of boots, drawn and judged until all operations are decided."""

import secrets
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import make_folder, write_atomic
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.effects import OPEN
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.plan import guest_compiler
from kdelta.lab.progress import Progress
from kdelta.lab.work import Work
from kdelta.machines.kvm import why_no_kvm
from kdelta.measures.clock.boots import paired
from kdelta.measures.clock.guests import ClockGuest, initramfs_of, timed_boot
from kdelta.measures.clock.jobs import timed_job
from kdelta.measures.clock.judged import NAME, UNIT, WHERE, next_to_path, timed_effects
from kdelta.measures.clock.results import TimedRun
from kdelta.measures.model import (
    Judgement,
    Measure,
    MeasuredEffects,
    MeasureRequest,
    RunPair,
)
from kdelta.spec.errors import KdeltaError, UserError

_LEAST_PAIRS = 2
_SIDES = ("base", "other")
_EMULATED = "the guests were emulated: these are QEMU's times, and no hardware's"


def of_request(asked: MeasureRequest) -> "GuestClock | None":
    """Return the measure, where a clock was named."""
    return GuestClock(asked) if asked.timed.clock else None


class GuestClock(Measure):
    """The time that operations take in guests whose clock is the host's."""

    name = NAME
    unit = UNIT

    def __init__(self, asked: MeasureRequest) -> None:
        self._asked = asked
        self._accel = "kvm" if asked.timed.clock == "kvm" else "tcg"
        self.weighs = self._accel == "kvm"  # an emulator weighs nothing as hardware does

    @property
    def where(self) -> str:
        return WHERE

    def check(self, lab: Lab, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels if self._accel == "kvm" else ():
            if why := why_no_kvm(kernel, lab.request.machine.qemu):
                raise UserError(f"KVM cannot be used: {why}", "--clock emulated tries things out")

    def expect(self, progress: Progress, pairs: int) -> None:
        progress.expect("time", pairs)

    async def measure(self, lab: Lab, pair: RunPair) -> Judgement | None:
        """Boot and time both kernels, in pairs whose order is drawn, until all is decided or there
        are as many pairs as were asked for.
        """
        base, other = pair.base.kernel, pair.other.kernel
        if base is None or other is None:
            return None
        step = f"time {other.release}"
        lab.progress.begin(step)
        try:
            with interruptible():
                found, count = self._timed((base, other), pair.workload, lab, step)
                found = next_to_path(found, pair.path)
        except KdeltaError as error:
            lab.progress.end(step, "failed")
            return Judgement(self.found((), [f"not timed: {error.message}"]))
        lab.progress.end(step, f"{count} pairs of boots")
        timed = {one.region for one in found.effects}
        others = [one.name for one in pair.path.operations if one.name not in timed]
        notes = [f"not timed: {', '.join(others)}"] if others else []
        return Judgement(self.found(found.effects, (*found.notes, *notes)))

    def _timed(
        self, kernels: tuple[Kernel, Kernel], workload: str, lab: Lab, step: str
    ) -> tuple[MeasuredEffects, int]:
        asked, log = self._asked, lab.progress.log
        work = next(one for one in asked.works if one.name == workload)
        guests = [self._guest(kernel, work, lab) for kernel in kernels]
        stamp = time.strftime("%Y%m%d-%H%M%S-")
        kept = Path(tempfile.mkdtemp(prefix=stamp, dir=cache_dir("clock")))
        log(f"what the guests write is kept in {kept}")
        runs: tuple[list[TimedRun], list[TimedRun]] = ([], [])
        notes = [] if self._accel == "kvm" else [_EMULATED]
        for number in range(1, asked.timed.most_pairs + 1):
            lab.progress.doing(step, f"pair {number} of at most {asked.timed.most_pairs}")
            try:
                for side in (0, 1) if secrets.randbelow(2) else (1, 0):
                    run = timed_boot(*guests[side])
                    boot = len(runs[0]) + len(runs[1])
                    write_atomic(make_folder(kept / _SIDES[side]) / f"{boot}.json", run.content)
                    runs[side].append(_numbered(run, boot))
            except KdeltaError as error:
                if number <= _LEAST_PAIRS:
                    raise
                notes.append(f"pair {number} was not timed, and is the last: {error.message}")
                break
            if number < _LEAST_PAIRS:
                continue
            timed = paired(*runs)
            effects = timed_effects(timed, float(asked.timed.margin), work.operations)
            if not any(one.word in OPEN for one in effects.effects):
                break
        count = len(timed.pairs)
        notes.append(f"{count} pairs of boots, each in an order that was drawn")
        jumped = dict.fromkeys(name for side in runs for run in side for name in run.jumped)
        notes += [f"left out where the clock jumped: {', '.join(jumped)}"] if jumped else []
        return self.found(effects.effects, notes), count

    def _guest(self, kernel: Kernel, work: Work, lab: Lab) -> tuple[ClockGuest, Kernel, Path]:
        """Return what is booted to time that kernel."""
        machine, log = lab.request.machine, lab.progress.log
        job = timed_job(work, kernel, lab.request, log)
        image = initramfs_of(job.archive, guest_compiler(kernel.arch, machine, log), log)
        return ClockGuest(machine, self._accel, job.memory_mib, job.seconds), kernel, image


def _numbered(run: TimedRun, number: int) -> TimedRun:
    """Return the run as that of a study's boot of this number, whose order is known even of guests
    without a clock of the date.
    """
    facts = msgspec.structs.replace(run.facts, when=number, boot_id=str(number))
    return msgspec.structs.replace(run, facts=facts)

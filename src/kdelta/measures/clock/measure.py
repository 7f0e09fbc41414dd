# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock as a measure: pairs of boots, drawn and judged until all operations are decided."""

import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import write_atomic
from kdelta.host.interrupt import interruptible
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import machine_for
from kdelta.lab.found import with_found_files
from kdelta.lab.lab import Lab
from kdelta.lab.plan import guest_compiler
from kdelta.lab.progress import Progress
from kdelta.lab.work import Work
from kdelta.machines.kvm import why_no_kvm
from kdelta.measures.clock.fit import SAMPLE, Expected, expected_of, fitted, worth_timing
from kdelta.measures.clock.guests import ClockGuest, initramfs_of, timed_boot
from kdelta.measures.clock.jobs import timed_job
from kdelta.measures.clock.judged import NAME, UNIT, WHERE
from kdelta.measures.clock.needs import must_be_timeable
from kdelta.measures.clock.pairs import PairsWanted, time_pairs
from kdelta.measures.clock.results import TimedRun
from kdelta.measures.clock.settings import busy, host_settings, unset
from kdelta.measures.model import Judgement, Measure, MeasureRequest, RunPair
from kdelta.report.measured import MeasuredEffects
from kdelta.report.words import some
from kdelta.spec.change import LAST_SEED, ShuffleChange
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec, require_relinkable, with_changes

_NAMED = 6
_EMULATED = "the guests were emulated: these are QEMU's times, and no hardware's"
_UNFORCED = (
    "features forced for the path are not forced in these guests, whose kernels may take another "
    "path (strings, mitigations): none are forced with --qemu-cpu, or by a copy of the CPU's file "
    "without `force`"
)


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
        for kernel in kernels if self._asked.timed.links else ():
            require_relinkable(kernel.spec, "--links")
        if lab.request.machine.cpus > 1:
            raise UserError("--clock times guests of one CPU", "leave out --clock, or --smp")
        for kernel in kernels:
            must_be_timeable(kernel, lab.request.machine.cpu)
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
        step = _step(other)
        lab.progress.begin(step)
        try:
            work = self._asked.work(pair.workload)
            assert work is not None
            work = await with_found_files(work, (base, other), lab)  # as its counted runs have them
            with interruptible():
                found, count = self._timed((base, other), work, pair, lab)
        except KdeltaError as error:
            lab.progress.end(step, "failed")
            return Judgement(self.found((), [f"not timed: {error.message}"]))
        lab.progress.end(step, f"{count} pairs of boots")
        return Judgement(found)

    def _timed(
        self, kernels: tuple[Kernel, Kernel], work: Work, pair: RunPair, lab: Lab
    ) -> tuple[MeasuredEffects, int]:
        asked, log = self._asked.timed, lab.progress.log
        margin = float(asked.margin)
        expected = expected_of(pair, by_model=self.weighs and not asked.links)
        left_out: tuple[str, ...] = ()
        if not (work.program or work.operations):
            names, left_out = worth_timing(expected, margin, secrets.SystemRandom().sample)
            work = work.only(names)
        fixed = [] if asked.links else [self._guest(kernel, work, lab) for kernel in kernels]
        folder = _new_folder()
        log(f"what is expected, and what the guests write, is kept in {folder}")
        write_atomic(folder / "expected.json", msgspec.json.format(msgspec.json.encode(expected)))

        def boot(side: int) -> TimedRun:
            one = fixed[side] if fixed else self._guest(_new_link(kernels[side], lab), work, lab)
            return timed_boot(*one)

        host = host_settings()
        write_atomic(folder / "host.json", msgspec.json.format(msgspec.json.encode(host)))
        timed = time_pairs(
            boot,
            PairsWanted(asked.most_pairs, margin, work.operations, folder),
            lambda words: lab.progress.doing(_step(kernels[1]), words),
        )
        effects = fitted(timed.found, expected, margin, links=asked.links)
        notes = (*_notes(effects, expected, left_out), *effects.notes, *timed.notes)
        settings = (*busy(host.load), *unset(host)) if self.weighs else _emulated(pair)
        notes = (*settings, *notes)
        found = self.found(effects.effects, notes)
        found = msgspec.structs.replace(found, left_out=left_out, others=effects.others)
        return found, timed.count

    def _guest(self, kernel: Kernel, work: Work, lab: Lab) -> tuple[ClockGuest, Kernel, Path]:
        """Return what is booted to time that kernel."""
        machine, log = lab.request.machine, lab.progress.log
        if not self.weighs:  # the CPU that the path is counted on
            machine = machine_for(machine, kernel.arch)
        job = timed_job(work, kernel, lab.request, log)
        image = initramfs_of(job.archive, guest_compiler(kernel.arch, machine, log), log)
        return ClockGuest(machine, self._accel, job.memory_mib, job.seconds), kernel, image


def _step(other: Kernel) -> str:
    return f"time {other.release}"


def _new_link(kernel: Kernel, lab: Lab) -> Kernel:
    """Return the kernel with its functions in an order that is drawn. LabError if it has none."""
    require_relinkable(kernel.spec, "--links")
    order = ShuffleChange(1 + secrets.randbelow(LAST_SEED))
    found = lab.kernel(str(with_changes(parse_kernel_spec(kernel.spec), [order])))
    if isinstance(found, NoKernel):
        raise LabError(f"{kernel.spec} cannot be linked in another order: {found.text}")
    return found


def _new_folder() -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S-")
    return Path(tempfile.mkdtemp(prefix=stamp, dir=cache_dir("clock")))


def _emulated(pair: RunPair) -> Iterator[str]:
    """Yield what has to be known of times by an emulator, and of the path next to them."""
    yield _EMULATED
    if pair.base.done[0].run.machine.get("force"):
        yield _UNFORCED


def _notes(
    found: MeasuredEffects, expected: Mapping[str, Expected], left_out: Sequence[str]
) -> Iterator[str]:
    """Yield which operations were not timed, and why."""
    timed = {one.region for one in found.effects}
    if left_out:
        yield (
            f"{SAMPLE} of the operations whose path and placement are equal were drawn and timed; "
            f"not timed: {some(left_out, _NAMED)}; -o names what is to be timed"
        )
    others = [name for name in expected if name not in timed and name not in left_out]
    if others:
        yield f"not timed: {', '.join(others)}"

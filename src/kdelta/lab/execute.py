# SPDX-License-Identifier: GPL-2.0-or-later
"""One run: each part of its work in a guest of its own, and what they counted as one."""

import asyncio
import re
import shutil
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.executed import encode_executed, executed_since_boot
from kdelta.counts.model import FalseReportError, LeftWork, RunCounts, with_packets
from kdelta.counts.reader import Sources, read_counts
from kdelta.guests.job import Job, handed_over, later_words
from kdelta.host.interrupt import in_thread
from kdelta.infer.effects.deferred import leaves_work, left_work
from kdelta.infer.effects.steady import levels
from kdelta.kernels.model import Kernel
from kdelta.lab.attachments import EXECUTED, Recordings, read_recordings, recorded
from kdelta.lab.explain import must_be_forced, must_be_taken, not_reported
from kdelta.lab.plan import COMMAND_REGION, GuestPart, RunPlan
from kdelta.lab.smp import must_have_cpus
from kdelta.lab.unseen import must_have_seen
from kdelta.machines.arch import arch_machine
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest, Recording, Setting, Snapshot, prepare_program, run_guest
from kdelta.spec.run import RunStatus, perturbation

_TICKS = re.compile("[0-9]{1,18}")
_NEVER_QUIET = "the guest never became quiet after boot: background work may be in the counts"
WORTH_PREPARING = 3
"""How many guests save more than preparing takes."""
_MOST_CHARACTERS = 160
"""Of a program's last words."""
_JOINED = ("stdout", "stderr", "note")
"""Messages that each guest has its own of."""


class KeptFiles(msgspec.Struct, frozen=True):
    """What is kept of the files of a run that went well; they are gone after it."""

    counts: RunCounts
    attachments: dict[str, bytes]


class _Ended(msgspec.Struct, frozen=True):
    """One guest; counts, sources and recordings where it went well."""

    outcome: GuestOutcome
    counts: RunCounts | None = None
    sources: Sources | None = None
    recordings: Recordings = Recordings()


class Ready(msgspec.Struct, frozen=True):
    """A run that can begin: the perturbation of that index of a work, on a guest. start: where its
    guests begin; None is at power-on.
    """

    kernel: Kernel
    guest: Guest
    work: RunPlan
    index: int
    start: Snapshot | None

    def handed_over(self, job: Job) -> bytes:
        """What is handed over to a guest that is to do that job from there."""
        if self.start and self.start.after:
            return later_words(job)
        return handed_over(msgspec.structs.replace(job, perturbation=perturbation(self.index)))


async def execute(
    ready: Ready, setting: Setting, slots: asyncio.Semaphore
) -> tuple[KeptFiles | None, GuestOutcome]:
    """Run all parts, as many at a time as there are slots.

    setting: its folder gets one for each guest. Returns what was counted if all went well, and how
    it ended: as the first part that did not.
    """
    async with slots:
        ready = await _prepared(ready, setting)
    parts = ready.work.parts
    ended = await _all(_part(ready, part, setting, slots) for part in parts)
    outcomes = [_in_its_words(ready.work, one.outcome) for one in ended]
    outcome = _joined(parts, outcomes)
    if outcome.status is not RunStatus.OK:
        return None, outcome
    left, broken = await _left(ready, ended, setting, slots)
    if broken:
        return None, broken
    both = list(zip(parts, outcomes, strict=True))
    failed = {part.name: one.detail for part, one in both if one.status is not RunStatus.OK}
    went_well = [one for one in ended if one.outcome.status is RunStatus.OK]
    return await in_thread(_counted, ready, setting, went_well, left, failed), outcome


async def _all(guests: Iterable[Coroutine[None, None, _Ended]]) -> list[_Ended]:
    """How guests ended that run side by side; all of them are ended if one raises."""
    tasks = [asyncio.create_task(guest) for guest in guests]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _left(
    ready: Ready, ended: Sequence[_Ended], setting: Setting, slots: asyncio.Semaphore
) -> tuple[dict[str, LeftWork], GuestOutcome | None]:
    """What regions leave to other tasks, by name, where they leave any; or how a guest that was to
    show it failed.
    """
    wanted = {
        part.name: part.window
        for part, one in zip(ready.work.parts, ended, strict=True)
        if part.window and one.counts and any(map(leaves_work, one.counts.regions))
    }
    if not wanted or not ready.work.idle:
        return {}, None
    plain = msgspec.structs.replace(setting, recording=Recording())
    idle, *others = await _all(
        _guest(ready, job, plain, f"window-{number}", slots)
        for number, job in enumerate((ready.work.idle, *wanted.values()))
    )
    for name, one in zip(("an idle guest", *wanted), (idle, *others), strict=True):
        if one.counts is None:
            return {}, _without_counts(one.outcome, f"{name}, what is left to others")
    assert idle.counts
    rest, busy = idle.counts.regions
    regions = [region for one in others if one.counts for region in one.counts.regions]
    found = {region.name: left_work(region, rest, busy) for region in regions}
    return {name: left for name, left in found.items() if left}, None


def _without_counts(outcome: GuestOutcome, where: str) -> GuestOutcome:
    """How a guest failed that was to count, and which one it was."""
    status = outcome.status
    status = RunStatus.WORKLOAD_FAILED if status is RunStatus.OK else status
    detail = f"{where}: {outcome.detail or 'nothing was counted'}"
    return msgspec.structs.replace(outcome, status=status, detail=detail)


async def _prepared(ready: Ready, setting: Setting) -> Ready:
    """The run, to begin where its program asks what it is to do, if several guests share the way
    there. Where that way cannot be gone, each goes it and tells.
    """
    if not (ready.start and ready.work.asks_at) or len(ready.work.parts) < WORTH_PREPARING:
        return ready
    job = msgspec.structs.replace(ready.work.parts[0].jobs[0], later=())
    mine = msgspec.structs.replace(setting, folder=setting.folder / "prepared")
    start = await prepare_program(
        ready.guest, ready.handed_over(job), mine, ready.start, ready.work.asks_at
    )
    return msgspec.structs.replace(ready, start=start) if start else ready


async def _part(
    ready: Ready, part: GuestPart, setting: Setting, slots: asyncio.Semaphore
) -> _Ended:
    """The part in a guest; again, and for longer, while its regions are not steady."""
    for level, job in enumerate(part.jobs):
        name = f"{ready.work.parts.index(part)}-{level}"
        is_last = job is part.jobs[-1]
        one = await _guest(ready, job, setting, name, slots, any_level=is_last)
        if one.counts is None or is_last or not any(map(levels, one.counts.regions)):
            return one
        shutil.rmtree(setting.folder / name, ignore_errors=True)
    raise AssertionError("a part has at least one job")


async def _guest(
    ready: Ready,
    job: Job,
    setting: Setting,
    name: str,
    slots: asyncio.Semaphore,
    *,
    any_level: bool = True,
) -> _Ended:
    """The job in a guest of its own, in a folder of that name. any_level: recordings are read even
    if its regions are not steady.
    """
    mine = msgspec.structs.replace(setting, folder=setting.folder / name)
    async with slots:
        outcome = await run_guest(ready.guest, ready.handed_over(job), mine, ready.start)
        must_have_cpus(ready.kernel, ready.guest, outcome.messages)
        must_be_taken(ready.kernel, outcome.messages)
        must_be_forced(ready.kernel, ready.guest, outcome.messages)
        must_have_seen(outcome, job.found, ready.work.record)
        if outcome.status is not RunStatus.OK or not outcome.counts or not outcome.symbols:
            return _Ended(outcome)
        # In a thread, so that the other guests are not kept waiting.
        sources = _sources(ready, outcome)
        try:
            counts = await in_thread(_counts, outcome, sources)
        except FalseReportError as error:
            return _Ended(_failed_by_program(outcome, error.message))
        if wrong := ready.work.wrong_marks(counts):
            return _Ended(_failed_by_program(outcome, wrong))
        if not any_level and any(map(levels, counts.regions)):
            return _Ended(outcome, counts, sources)
        found = await in_thread(read_recordings, outcome.counts, sources, setting.recording)
        return _Ended(outcome, counts, sources, found)


def _failed_by_program(outcome: GuestOutcome, why: str) -> GuestOutcome:
    return msgspec.structs.replace(outcome, status=RunStatus.WORKLOAD_FAILED, detail=why)


def _sources(ready: Ready, outcome: GuestOutcome) -> Sources:
    assert outcome.symbols
    return Sources(
        symbols=outcome.symbols,
        modules=outcome.messages.get("modules", b"") + arch_machine(ready.guest.arch).unnamed(),
        binaries=ready.work.binaries,
        vdso=outcome.messages.get("vdso", b""),
        symbol_files=ready.work.symbol_files,
    )


def _counts(outcome: GuestOutcome, sources: Sources) -> RunCounts:
    assert outcome.counts
    ticks, odd = clock_ticks(outcome.messages.get("region-clock", b""))
    counts = read_counts(outcome.counts, sources, ticks)
    reported = outcome.messages.get("warning", b"").decode("utf-8", "replace").splitlines()
    warnings = (*counts.warnings, *reported, *odd)
    if b"\nquiet no\n" in outcome.messages.get("hello", b""):
        warnings = (*warnings, _NEVER_QUIET)
    regions = with_packets(counts.regions, outcome.messages.get("packets", b""))
    return msgspec.structs.replace(counts, regions=regions, warnings=warnings)


def clock_ticks(message: bytes) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the virtual clock's ticks of each region from lines of "REGION TICKS OVERHEAD", and
    what is to be said of lines that are none: a guest's program may have sent anything.
    """
    ticks, odd = {}, 0
    for line in message.decode("utf-8", "replace").splitlines():
        words = line.rsplit(None, 2)
        if len(words) == 3 and all(map(_TICKS.fullmatch, words[1:])):
            ticks[words[0]] = int(words[1]) - int(words[2])
        else:
            odd += 1
    warning = f"lines of the region clock that are none, and were left out: {odd}"
    return ticks, (warning,) if odd else ()


def _counted(
    ready: Ready,
    setting: Setting,
    ended: Sequence[_Ended],
    left: Mapping[str, LeftWork],
    failed: Mapping[str, str],
) -> KeptFiles:
    """What the guests counted, as one run in the order of its parts. left: what regions leave to
    other tasks. failed: parts that the kernel could not run, and why.
    """
    sources = next(one.sources for one in ended if one.sources)
    every = [one.counts for one in ended if one.counts]
    warnings = dict.fromkeys(text for counts in every for text in counts.warnings)
    counts = RunCounts(
        tuple(
            msgspec.structs.replace(region, left=left.get(region.name))
            for counts in every
            for region in counts.regions
        ),
        (
            *warnings,
            *(f"{name} did not run: {why}" for name, why in failed.items()),
            *not_reported(ready.kernel, ended[0].outcome.messages),
            *ready.work.warnings,
        ),
        failed=dict(failed),
    )
    files = [one.outcome.counts for one in ended if one.outcome.counts]
    recordings = sum((one.recordings for one in ended), Recordings())
    kept = recorded(recordings, sources, setting.recording)
    boot = ready.start.whole_boot if ready.start else ()
    return KeptFiles(counts, {EXECUTED: _executed([*boot, *files], sources, ready.guest), **kept})


def _executed(files: list[Path], sources: Sources, guest: Guest) -> bytes:
    board = arch_machine(guest.arch).image, guest.board.image
    return encode_executed(executed_since_boot(files, sources.symbols, sources.modules, board))


def _in_its_words(work: RunPlan, outcome: GuestOutcome) -> GuestOutcome:
    """The outcome, with the last words of a workload's program that failed."""
    printed = outcome.messages.get("stderr", b"").decode("utf-8", "replace").split("\n")
    words = [line.strip() for line in printed if line.strip()]
    failed = outcome.status is RunStatus.WORKLOAD_FAILED
    if not (failed and words) or work.job.region == COMMAND_REGION:
        return outcome
    detail = f"{words[-1][:_MOST_CHARACTERS]} ({outcome.detail})"
    return msgspec.structs.replace(outcome, detail=detail)


def _joined(parts: Sequence[GuestPart], outcomes: Sequence[GuestOutcome]) -> GuestOutcome:
    """How all ended: well, also if programs of some gave up; else as the first that did not."""
    if len(outcomes) == 1:
        return outcomes[0]
    both = list(zip(parts, outcomes, strict=True))
    failed = [(part, one) for part, one in both if one.status is not RunStatus.OK]
    well = [(part, one) for part, one in both if one.status is RunStatus.OK]
    if well and all(one.messages.get("result", b"").startswith(b"exit") for _, one in failed):
        part, found = well[-1]
    else:
        part, found = failed[0]
    messages = {name: b"".join(one.messages.get(name, b"") for one in outcomes) for name in _JOINED}
    return GuestOutcome(
        found.status,
        f"{part.name}: {found.detail}" if found.detail else "",
        found.console,
        sum(one.seconds for one in outcomes),
        {**found.messages, **messages},
    )

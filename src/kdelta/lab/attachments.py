# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a run besides its counts: by which names, and how it is read again."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.counts.conflict_file import read_conflicts
from kdelta.counts.conflicts import Conflicts, decode_conflicts, encode_conflicts
from kdelta.counts.profile import Profile
from kdelta.counts.profile_file import decode_profiles, encode_profiles, followed_all, read_profiles
from kdelta.counts.raw import Sources
from kdelta.counts.symbols import Symbol, parse_symbols
from kdelta.counts.trace import Trace, decode_traces, encode_traces, have_data
from kdelta.counts.trace_file import read_traces
from kdelta.guests.job import Job
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Recording
from kdelta.spec.errors import LabError
from kdelta.store.model import Run
from kdelta.store.store import Store

EXECUTED = "executed"
"""The attachment of a run that names the functions which were executed since power-on."""

TRACES = "traces"
"""The attachment of a run that keeps the sequences of blocks of its regions."""

PROFILES = "profiles"
"""The attachment of a run that keeps what each function executed on each path of calls."""

CONFLICTS = "conflicts-5"
"""The attachment of a run that keeps which lines of memory its CPUs contended for, by the present
rules for names and for what is read next to them: that of older ones is made again."""

SYMBOLS = "symbols"
"""The attachment of a traced or profiled run that keeps the kernel's /proc/kallsyms: what explains
its addresses without the guest."""

MODULE_SYMBOLS = "module-symbols"
"""The same of the modules that were loaded for the run."""

FOUND = "files"
"""The attachment of a run that names the files of the host that its program was given."""

KERNEL_LOG = "kernel-log"
"""The attachment of a run with what its kernel logged before the agent began, as dmesg has it."""

_MISSES = "misses-"
"""How attachments of earlier versions begin, of misses that were counted while a guest ran."""

_MESSAGES = (
    *("hello", KERNEL_LOG, "cpuinfo", "vulnerabilities", "group"),
    *("stdout", "stderr", "note", "memory"),
)


class Recordings(msgspec.Struct, frozen=True):
    """What was recorded of regions, of one guest or of several that make one run."""

    traces: tuple[Trace, ...] = ()
    profiles: tuple[Profile, ...] = ()
    conflicts: tuple[Conflicts, ...] = ()

    def __add__(self, other: "Recordings") -> "Recordings":
        """What either has; they share no region."""
        return Recordings(
            self.traces + other.traces,
            self.profiles + other.profiles,
            self.conflicts + other.conflicts,
        )


def read_recordings(file: Path, sources: Sources, recording: Recording) -> Recordings:
    """Return what a recording asks for, from the plugin's file of a guest."""
    return Recordings(
        read_traces(file) if recording.trace != "off" else (),
        read_profiles(file, sources) if recording.calls != "off" else (),
        read_conflicts(file, sources) if recording.conflicts else (),
    )


def recorded(found: Recordings, sources: Sources, recording: Recording) -> dict[str, bytes]:
    """Return the attachments that a recording asks for."""
    kept = {}
    if recording.trace != "off":
        kept[TRACES] = encode_traces(found.traces)
    if recording.calls != "off":
        kept[PROFILES] = encode_profiles(found.profiles)
    if kept:
        kept[SYMBOLS] = sources.symbols.read_bytes()
        kept[MODULE_SYMBOLS] = sources.modules
    if recording.conflicts:
        kept[CONFLICTS] = encode_conflicts(found.conflicts)
    return kept


def kept_of(outcome: GuestOutcome, job: Job, counted: Mapping[str, bytes]) -> dict[str, bytes]:
    """What is kept with a run: facts, the workload's own output, the names of found files, and what
    was executed.
    """
    kept = {name: outcome.messages[name] for name in _MESSAGES if outcome.messages.get(name)}
    if job.found:
        kept[FOUND] = "".join(f"{one.word} {one.path}\n" for one in job.found).encode()
    return {**kept, **counted}


def is_recording(name: str) -> bool:
    """Return whether the attachment of that name is kept only if it is asked for."""
    return name in {TRACES, PROFILES, CONFLICTS, SYMBOLS, MODULE_SYMBOLS} or name.startswith(
        _MISSES
    )


def has_recorded(store: Store, run: Run, wanted: Recording) -> bool:
    """Return whether a run has all that is asked for besides counts."""
    kept = run.attachments
    return (
        (not wanted.conflicts or CONFLICTS in kept)
        and (wanted.calls == "off" or {PROFILES, SYMBOLS} <= kept.keys())
        and (wanted.calls != "all" or followed_all(store.get(kept[PROFILES])))
        and (wanted.trace == "off" or {TRACES, SYMBOLS} <= kept.keys())
        and (not _is_larger(wanted) or _is_whole(store, run, wanted))
        and (wanted.trace != "data" or have_data(store.get(kept[TRACES])))
    )


def _is_larger(wanted: Recording) -> bool:
    """Whether traces may be larger than those of other runs."""
    return wanted.trace != "off" and wanted.trace_limit > Recording().trace_limit


def _is_whole(store: Store, run: Run, wanted: Recording) -> bool:
    """Whether no trace was cut off at a lower limit than that."""
    return not any(
        trace.truncated and max(len(trace.items), len(trace.sequence)) < 0.9 * wanted.trace_limit
        for trace in traces_of(store, run)
    )


def traces_of(store: Store, run: Run) -> tuple[Trace, ...]:
    """The traces that are kept with a run; LabError when there are none, or they are damaged."""
    return decode_traces(_content(store, run, TRACES, "was not traced"))


def profiles_of(store: Store, run: Run) -> tuple[Profile, ...]:
    """The profiles that are kept with a run, in the order of their regions' first begins; LabError
    when its calls were not followed, or they are damaged.
    """
    lacks = "has no profile: its calls were not followed"
    return decode_profiles(_content(store, run, PROFILES, lacks))


def conflicts_of(store: Store, run: Run) -> tuple[Conflicts, ...]:
    """Return what the CPUs of a run contended for, region by region; LabError when that was not
    recorded, or is damaged.
    """
    lacks = "has no conflicts: they were not recorded"
    return decode_conflicts(_content(store, run, CONFLICTS, lacks))


def symbols_of(store: Store, run: Run) -> list[Symbol]:
    """The symbols of a traced run's kernel and modules, by address; LabError if none are kept."""
    kept = [_content(store, run, SYMBOLS, "kept no symbols")]
    if MODULE_SYMBOLS in run.attachments:
        kept.append(store.get(run.attachments[MODULE_SYMBOLS]))
    return [row for content in kept for row in parse_symbols(content)]


def _content(store: Store, run: Run, name: str, lacks: str) -> bytes:
    """An attachment; LabError, which says what the run lacks, where there is none."""
    if name not in run.attachments:
        raise LabError(f"run {run.id} {lacks}", "make the run again with --rerun")
    return store.get(run.attachments[name])

# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a run besides its counts: by which names, and how it is read again."""

from pathlib import Path

import msgspec

from kdelta.counts.profile import Profile
from kdelta.counts.profile_file import decode_profiles, encode_profiles, followed_all, read_profiles
from kdelta.counts.raw import Sources
from kdelta.counts.simulated import (
    SimulatedMisses,
    decode_simulated,
    encode_simulated,
    read_simulated,
)
from kdelta.counts.trace import Trace, decode_traces, encode_traces, have_data
from kdelta.counts.trace_file import read_traces
from kdelta.cpus.model import Cache
from kdelta.machines.tcg import Recording
from kdelta.replay.kernel_text import Symbol, parse_symbols
from kdelta.spec.errors import LabError
from kdelta.store.model import Run
from kdelta.store.store import Store

EXECUTED = "executed"
"""The attachment of a run that names the functions which were executed since power-on."""

TRACES = "traces"
"""The attachment of a run that keeps the sequences of blocks of its regions."""

PROFILES = "profiles"
"""The attachment of a run that keeps what each function executed on each path of calls."""

SYMBOLS = "symbols"
"""The attachment of a traced or profiled run that keeps the kernel's /proc/kallsyms: what explains
its addresses without the guest."""

MODULE_SYMBOLS = "module-symbols"
"""The same of the modules that were loaded for the run."""

_MISSES = "misses-"


class Recordings(msgspec.Struct, frozen=True):
    """What was recorded of regions, of one guest or of several that make one run."""

    traces: tuple[Trace, ...] = ()
    profiles: tuple[Profile, ...] = ()
    misses: tuple[SimulatedMisses, ...] = ()

    def __add__(self, other: "Recordings") -> "Recordings":
        """What either has; they share no region."""
        return Recordings(
            self.traces + other.traces,
            self.profiles + other.profiles,
            self.misses + other.misses,
        )


def read_recordings(file: Path, sources: Sources, recording: Recording) -> Recordings:
    """What a recording asks for, from the plugin's file of a guest."""
    return Recordings(
        read_traces(file) if recording.trace != "off" else (),
        read_profiles(file, sources) if recording.calls != "off" else (),
        read_simulated(file) if recording.simulate else (),
    )


def recorded(found: Recordings, sources: Sources, recording: Recording) -> dict[str, bytes]:
    """The attachments that a recording asks for."""
    kept = {}
    if recording.trace != "off":
        kept[TRACES] = encode_traces(found.traces)
    if recording.calls != "off":
        kept[PROFILES] = encode_profiles(found.profiles)
    if kept:
        kept[SYMBOLS] = sources.symbols.read_bytes()
        kept[MODULE_SYMBOLS] = sources.modules
    if recording.simulate:
        kept[misses_name(recording.simulate)] = encode_simulated(found.misses)
    return kept


def misses_name(cache: Cache) -> str:
    """The attachment of a run that keeps what its regions missed in that simulated cache."""
    return f"{_MISSES}{cache.sets}x{cache.ways}x{cache.line_bytes}"


def is_recording(name: str) -> bool:
    """Whether the attachment of that name is kept of a run only if it is asked for."""
    return name in {TRACES, PROFILES, SYMBOLS, MODULE_SYMBOLS} or name.startswith(_MISSES)


def has_recorded(store: Store, run: Run, wanted: Recording) -> bool:
    """Whether a run has all that is asked for besides counts."""
    kept = run.attachments
    if wanted.simulate and misses_name(wanted.simulate) not in kept:
        return False
    if wanted.calls != "off" and not {PROFILES, SYMBOLS} <= kept.keys():
        return False
    if wanted.calls == "all" and not followed_all(store.get(kept[PROFILES])):
        return False
    if wanted.trace != "off" and not {TRACES, SYMBOLS} <= kept.keys():
        return False
    return wanted.trace != "data" or have_data(store.get(kept[TRACES]))


def misses_of(store: Store, run: Run, cache: Cache) -> tuple[SimulatedMisses, ...]:
    """What is kept of it with a run; LabError when that cache was not simulated."""
    name = misses_name(cache)
    if name not in run.attachments:
        raise LabError(f"run {run.id} has no {name}", "make the run again with --again")
    return decode_simulated(store.get(run.attachments[name]))


def traces_of(store: Store, run: Run) -> tuple[Trace, ...]:
    """The traces that are kept with a run; LabError when there are none, or they are damaged."""
    if TRACES not in run.attachments:
        raise LabError(f"run {run.id} was not traced", "make the run again with --again")
    return decode_traces(store.get(run.attachments[TRACES]))


def profiles_of(store: Store, run: Run) -> tuple[Profile, ...]:
    """The profiles that are kept with a run, in the order of their regions' first begins; LabError
    when its calls were not followed, or they are damaged.
    """
    if PROFILES not in run.attachments:
        raise LabError(
            f"run {run.id} has no profile: its calls were not followed",
            "make the run again with --again",
        )
    return decode_profiles(store.get(run.attachments[PROFILES]))


def symbols_of(store: Store, run: Run) -> list[Symbol]:
    """The symbols of a traced run's kernel and modules, by address; LabError if none are kept."""
    if SYMBOLS not in run.attachments:
        raise LabError(f"run {run.id} kept no symbols", "make the run again with --again")
    kept = [run.attachments[name] for name in (SYMBOLS, MODULE_SYMBOLS) if name in run.attachments]
    return [row for blob in kept for row in parse_symbols(store.get(blob))]

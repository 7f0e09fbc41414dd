# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls that a program makes as often as is known, in every way that control moves: the tree of
calls has them, that often, and adds up to what was counted without it.
"""

import asyncio
import functools
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost, FunctionCost, RunCounts, merged_regions
from kdelta.counts.profile import NodeEntry, Profile
from kdelta.counts.profile_file import read_profiles
from kdelta.counts.raw import Sources
from kdelta.guests.job import Job, JobFile, job_archive
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, STRICT_FLAGS, native_folder
from kdelta.infer.effects.same import partings
from kdelta.lab.lab import Lab, RunResult, profiles_of
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import CallsMode, Recording, Snapshot, run_guest
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command
from tests.machines.bench import (
    ARM,
    ARM64,
    NEW,
    OLD,
    counts_of,
    guest,
    guest_program,
    new_setting,
    process_folder,
    syscalls_job,
)

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent / "calls"
OWN = "k_"  # how the names of functions begin whose calls are known


class Place(NamedTuple):
    """A kernel, a CPU, and who compiles for it."""

    spec: str
    cpu: str
    compiler: str


PLACES = {
    "old": Place(OLD, "", "gcc"),
    "new": Place(NEW, "", "gcc"),
    "arm": Place(ARM, "cortex-a15", "arm-linux-gnueabihf-gcc"),
    "arm64": Place(ARM64, "cortex-a53", "aarch64-linux-gnu-gcc"),
}
_SLOW = {name: pytest.param(name, marks=pytest.mark.slow) for name in PLACES if name != "old"}
BY_STACK = pytest.mark.parametrize("name", ["old", _SLOW["new"]])
ALL = pytest.mark.parametrize("name", ["old", *_SLOW.values()])


@functools.cache
def _program(compiler: str, source: str) -> Path:
    output = process_folder() / f"{compiler}-{source}.out"
    flags = (*COMMON_FLAGS, *STRICT_FLAGS, *STATIC_FLAGS, "-D_GNU_SOURCE", "-pthread")
    include = f"-I{native_folder() / 'include'}"
    argv = [compiler, *flags, "-fno-optimize-sibling-calls", include]
    subprocess.run([*argv, "-o", output, HERE / source], check=True)
    return output


class Followed(NamedTuple):
    """What a run counted, and its profiles by region."""

    counts: RunCounts
    profiles: dict[str, Profile]


def _run(name: str, recording: Recording, *, power_on: bool = False) -> Followed:
    place = PLACES[name]
    where = guest(place.spec, cpu=place.cpu)
    programs = {
        "/calls": _program(place.compiler, "main.c"),
        "/other": _program(place.compiler, "other.c"),
    }
    files = tuple(JobFile(program, path, 0o755) for path, program in programs.items())
    job = Job(argv=("/calls",), files=files, seconds=120)

    async def go() -> GuestOutcome:
        start: Snapshot | None = None
        if not power_on:
            found = await obtain_snapshot(where, new_setting())
            assert not isinstance(found, GuestOutcome)
            start = found
        setting = msgspec.structs.replace(new_setting(), recording=recording)
        return await run_guest(where, job_archive(job), setting, start)

    outcome = asyncio.run(go())
    binaries = {path[1:]: program.read_bytes() for path, program in programs.items()}
    arch = where.arch
    counts = counts_of(outcome, binaries, arch)
    assert outcome.symbols
    assert outcome.counts
    sources = Sources(
        outcome.symbols,
        outcome.messages.get("modules", b""),
        binaries,
        outcome.messages.get("vdso", b""),
    )
    profiles = read_profiles(outcome.counts, sources)
    return Followed(counts, {profile.region: profile for profile in profiles})


@functools.cache
def _followed(name: str, mode: CallsMode = "all") -> Followed:
    return _run(name, Recording(calls=mode))


Path_ = tuple[str, ...]


def _calls(profile: Profile) -> Counter[Path_]:
    """How often control came to each path of the program's own functions, each with `~` before its
    name where it was reached otherwise than by a call.
    """
    tree = profile.tree
    marks = {NodeEntry.CALL: "", NodeEntry.ROOT: "^", NodeEntry.SIGNAL: "!"}
    found: Counter[Path_] = Counter()
    for node in range(len(tree)):
        names = []
        for step in tree.path(node):
            function = profile.functions[tree.function[step]].name
            if function.startswith(OWN):
                names.append(marks.get(NodeEntry(tree.entry[step]), "~") + function[len(OWN) :])
        function = profile.functions[tree.function[node]].name
        if function.startswith(OWN):
            found[tuple(names)] += int(tree.entered[node])
    return found


def _of(name: str, region: str) -> Counter[Path_]:
    return _calls(_followed(name).profiles[region])


@ALL
def test_the_tree_adds_up_to_what_was_counted(name: str) -> None:
    counts, profiles = _followed(name)
    regions = merged_regions(counts)
    assert list(profiles) == list(regions)
    assert counts.warnings == ()
    for region, profile in profiles.items():
        assert _by_function(profile.function_costs()) == _by_function(regions[region].functions)
        costs = profile.node_costs()
        ticks = profile.tree.inclusive(costs.insns + costs.string_iterations)
        assert ticks[profile.tree.parent < 0].sum() == regions[region].executed_insns()
        assert profile.address_costs().costs.total() == profile.row_costs().total()


def _by_function(functions: tuple[FunctionCost, ...]) -> dict[tuple[str, ...], Cost]:
    return {(f.context, f.origin, f.name): f.cost for f in functions}


@ALL
def test_calls_in_calls(name: str) -> None:
    assert _of(name, "nested") == {
        ("nested",): 1,
        ("nested", "twice"): 3,
        ("nested", "twice", "leaf"): 6,
        ("nested", "leaf"): 1,
    }


@ALL
def test_recursion_is_as_deep_as_it_goes(name: str) -> None:
    steps = ("recursion", *("recursive",) * 6)
    assert _of(name, "recursion") == {steps[: n + 1]: 1 for n in range(7)}


@ALL
def test_tail_calls(name: str) -> None:
    assert _of(name, "tails") == {
        ("tails",): 1,
        ("tails", "tail"): 4,
        ("tails", "tail", "leaf"): 4,
        ("tails", "tail", "~tail_target"): 4,
        ("tails", "tail", "~tail_target", "twice"): 4,
        ("tails", "tail", "~tail_target", "twice", "leaf"): 8,
        ("tails", "leaf"): 1,
    }


@ALL
def test_a_long_jump_ends_what_it_leaves(name: str) -> None:
    thrower = ("jumps", *("thrower",) * 4)
    assert _of(name, "jumps") == {
        **{thrower[: n + 1]: 3 for n in range(1, 5)},
        ("jumps",): 1,
        ("jumps", "leaf"): 3,
        ("jumps", "twice"): 1,
        ("jumps", "twice", "leaf"): 2,
    }


@BY_STACK
def test_coroutines_of_the_same_code_have_stacks_of_their_own(name: str) -> None:
    calls = _of(name, "coroutines")
    assert calls["coroutines",] == 1
    assert calls["coroutines", "resume"] == 15
    assert calls["coroutines", "twice"] == 15
    assert calls["coroutines", "twice", "leaf"] == 30
    inside = {path: n for path, n in calls.items() if path[0] != "coroutines"}
    assert inside == {
        ("^coroutine",): 3,
        ("^coroutine", "step"): 12,
        ("^coroutine", "step", "leaf"): 12,
        ("^coroutine", "step", "yield"): 12,
    }


@BY_STACK
def test_handlers_of_signals_that_return_and_that_do_not(name: str) -> None:
    assert _of(name, "signals") == {
        ("signals",): 1,
        ("signals", "raises"): 7,
        ("signals", "raises", "!handler"): 7,
        ("signals", "raises", "!handler", "leaf"): 7,
        ("signals", "twice"): 5,
        ("signals", "twice", "leaf"): 10,
        ("signals", "leaf"): 2,
    }


@ALL
def test_threads(name: str) -> None:
    calls = _of(name, "threads")
    ends: Counter[str] = Counter()
    for path, n in calls.items():
        if "thread" in path or "^thread" in path:
            ends[path[-1]] += n
    assert ends == {"thread": 2, "twice": 14, "leaf": 28}
    assert calls["threads", "leaf"] == 1


@ALL
def test_children(name: str) -> None:
    calls = _of(name, "forks")
    ends: Counter[str] = Counter()
    for path, n in calls.items():
        if "child" in path:
            ends[path[-1]] += n
    assert ends == {"child": 3, "twice": 3, "leaf": 6}
    assert calls["forks", "leaf"] == 1


@ALL
def test_another_program(name: str) -> None:
    profile = _followed(name).profiles["execs"]
    assert {task.program for task in profile.tasks} >= {"calls", "other"}
    calls = _calls(profile)
    assert calls["other_leaf",] == 6
    assert calls["execs", "leaf"] == 1
    tree = profile.tree
    for node in range(len(tree)):
        function = profile.functions[tree.function[node]]
        if function.name.startswith(OWN):  # other code is the same in both
            assert profile.tasks[tree.task[node]].program == function.origin


@ALL
def test_a_call_whose_target_has_to_be_fetched_first(name: str) -> None:
    assert _of(name, "fetch-faults") == {
        ("fetch_faults",): 1,
        ("fetch_faults", "far"): 3,
        ("fetch_faults", "far", "leaf"): 3,
    }
    entries = _followed(name).profiles["fetch-faults"].tree.entry
    assert NodeEntry.EXCEPTION in entries


@ALL
def test_calls_onto_pages_of_the_stack_that_are_not_there(name: str) -> None:
    deep = ("stack_faults", *("deep",) * 65)
    assert _of(name, "stack-faults") == {
        **{deep[: n + 1]: 1 for n in range(66)},
        ("stack_faults", "leaf"): 1,
    }


@ALL
def test_system_calls_hang_below_who_makes_them(name: str) -> None:
    profile = _followed(name).profiles["system"]
    tree = profile.tree
    calls = [
        node
        for node in np.flatnonzero(tree.entry == NodeEntry.SYSCALL)
        if "k_calls_system"
        in {profile.functions[tree.function[step]].name for step in tree.path(int(node))}
    ]
    assert int(tree.entered[calls].sum()) == 9
    named = [i for i, f in enumerate(profile.functions) if "sys_getppid" in f.name]
    assert int(tree.entered[np.isin(tree.function, named)].sum()) == 9


@ALL
@pytest.mark.slow
def test_without_user_code_the_kernels_tree_is_the_same(name: str) -> None:
    every, kernel = _followed(name), _followed(name, "kernel")
    assert list(partings(every.counts, kernel.counts)) == []
    for region, profile in kernel.profiles.items():
        assert profile.calls == "kernel"
        whole = every.profiles[region]
        assert profile.row_costs().total() == whole.row_costs().total()
        assert _kernel_entries(profile) == _kernel_entries(whole)


@ALL
def test_callers_by_the_code_of_blocks_are_those_of_the_tree(name: str) -> None:
    """But of x64_sys_call: the tree may have what it jumps to as called by its caller."""
    followed = _followed(name)
    known = 0
    for region, counts in merged_regions(followed.counts).items():
        tree = _callers(followed.profiles[region])
        for one in counts.functions:
            if one.context == "own" and one.caller and one.name in tree:
                known += 1
                calls, callers = tree[one.name]
                assert one.calls == calls, (region, one.name)
                if one.caller != "x64_sys_call":
                    assert callers == {one.caller}, (region, one.name)
    assert known > 50


def _callers(profile: Profile) -> dict[str, tuple[int, set[str]]]:
    """Of the kernel's functions that measured tasks entered by calls alone how often that was, and
    the names of their callers.
    """
    tree, functions = profile.tree, profile.functions
    found: dict[str, tuple[int, set[str]]] = {}
    otherwise = set()
    for node in np.flatnonzero(profile.in_kernel()[tree.function]).tolist():
        name = functions[tree.function[node]].name
        if tree.entry[node] != NodeEntry.CALL or tree.context[node]:
            otherwise.add(name)
            continue
        calls, callers = found.get(name, (0, set()))
        caller = functions[tree.function[tree.parent[node]]].name
        found[name] = calls + int(tree.entered[node]), callers | {caller}
    return {name: one for name, one in found.items() if name not in otherwise}


def _kernel_entries(profile: Profile) -> Counter[str]:
    found: Counter[str] = Counter()
    tree = profile.tree
    for node in np.flatnonzero(tree.entry == NodeEntry.CALL):
        function = profile.functions[tree.function[node]]
        if function.origin == "kernel":
            found[function.name] += int(tree.entered[node])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("power_on", [False, True])
def test_profiles_repeat_and_leave_the_counts_alone(power_on: bool) -> None:
    first = _followed("old")
    again = _run("old", Recording(calls="all"), power_on=power_on)
    assert list(partings(first.counts, again.counts)) == []
    assert {r: _shape(p) for r, p in first.profiles.items()} == {
        r: _shape(p) for r, p in again.profiles.items()
    }
    plain = _run("old", Recording(), power_on=power_on)
    assert plain.profiles == {}
    assert list(partings(first.counts, plain.counts)) == []


def _shape(profile: Profile) -> list[tuple[object, ...]]:
    """All of it but how code is cut into blocks."""
    tree, costs = profile.tree, profile.node_costs()
    return [
        (
            int(tree.parent[node]),
            profile.functions[tree.function[node]],
            int(tree.entry[node]),
            int(tree.site[node]),
            int(tree.entered[node]),
            costs.cost(node),
        )
        for node in range(len(tree))
    ]


@pytest.mark.slow
def test_a_limit_is_kept_and_said() -> None:
    whole = _followed("old")
    limited = _run("old", Recording(calls="all", calls_limit=20))
    assert list(partings(whole.counts, limited.counts)) == []
    assert any("as many nodes as it may" in warning for warning in limited.counts.warnings)
    for region, profile in limited.profiles.items():
        assert profile.row_costs().total() == whole.profiles[region].row_costs().total()
        assert NodeEntry.FOLDED in profile.tree.entry or len(whole.profiles[region].tree) < 40


def _executing(recording: Recording) -> Followed:
    """One program after another, each of them the same."""
    where, job = guest(), syscalls_job("--scale", "40", "vfork-exec")

    async def go() -> GuestOutcome:
        found = await obtain_snapshot(where, new_setting())
        assert not isinstance(found, GuestOutcome)
        setting = msgspec.structs.replace(new_setting(), recording=recording)
        return await run_guest(where, job_archive(job), setting, found)

    outcome = asyncio.run(go())
    assert outcome.symbols
    assert outcome.counts
    program = guest_program().read_bytes()
    sources = Sources(outcome.symbols, binaries={"syscalls": program})
    (profile,) = read_profiles(outcome.counts, sources)
    return Followed(counts_of(outcome), {profile.region: profile})


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["all", "kernel"])
def test_programs_that_are_executed_again_and_again_take_no_more_room(mode: CallsMode) -> None:
    whole = _executing(Recording(calls=mode))
    limited = _executing(Recording(calls=mode, calls_limit=20_000))
    assert limited.counts.warnings == ()
    assert list(partings(whole.counts, limited.counts)) == []
    (one,), (other,) = whole.profiles.values(), limited.profiles.values()
    assert _shape(one) == _shape(other)
    assert [task.program for task in one.tasks] == [task.program for task in other.tasks]


@pytest.mark.slow
def test_a_run_that_lacks_its_profile_is_made_again_and_counts_the_same() -> None:
    request = RunRequest(
        kernel=OLD, program=Program(("true",), find=False), lab=LabRequest(perturbations=1)
    )

    def made(calls: CallsMode) -> RunResult:
        lab = msgspec.structs.replace(request.lab, calls=calls)
        wanted = msgspec.structs.replace(request, lab=lab)
        (done,) = asyncio.run(run_command(wanted, Lab(store, Silent())))
        assert done.counts
        return done

    with Store.open(process_folder() / "calls-store") as store:
        plain, kernel, known, every = made("off"), made("kernel"), made("kernel"), made("all")
        again = made("kernel")
        assert (plain.stored, kernel.stored, known.stored) == (False, False, True)
        assert (every.stored, again.stored) == (False, True)
        assert plain.counts == kernel.counts == every.counts
        with pytest.raises(LabError, match="no profile"):
            profiles_of(store, plain.run)
        assert [p.calls for p in profiles_of(store, kernel.run)] == ["kernel"]
        (profile,) = profiles_of(store, again.run)
        assert profile.calls == "all"
        assert profile.row_costs().total() == profiles_of(store, kernel.run)[0].row_costs().total()
        assert {"true", "kernel"} <= {task.program for task in profile.tasks}

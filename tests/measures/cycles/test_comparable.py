# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on paths and on model cycles that a path decides which one kernel has lost."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import Cost, RunCounts
from kdelta.cpus import load_cpu
from kdelta.infer.cycles.cycles import executed_estimates
from kdelta.infer.cycles.ensembles import RegionCost
from kdelta.infer.cycles.lost_paths import GuestFacts
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import ComparedRegion
from kdelta.infer.cycles.prices import prices_of
from kdelta.infer.effects.effects import Effects, Word, compare_runs
from kdelta.infer.effects.paths import function_paths, region_paths
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.measures.cycles.comparable import comparable_cycles
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.cycles.measure import ModelCycles
from kdelta.measures.model import MeasureRequest
from kdelta.measures.path.comparable import comparable, end_notes, guest_of
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.search.measure import Bench, MeasuredKernel
from kdelta.studies.search.measure import SearchedRegion as SearchRegion
from tests.report.example import stored
from tests.synthetic import own, region, run

ZEN4 = load_cpu("zen4")
ATTEMPTED = GuestFacts("", "tsa: Vulnerable: Clear CPU buffers attempted, no microcode\n")
LOST = GuestFacts("", "tsa: Vulnerable: No microcode\n")
CHOSEN = GuestFacts("", "tsa: Vulnerable\n")

Runs = tuple[RunCounts, ...]


def runs(*regions: tuple[str, int, int]) -> Runs:
    """Two runs of regions: name, instructions an iteration, VERW among them."""
    rows = []
    for name, insns, verw in regions:
        way_out = Cost(100 * verw, specials={"verw": 100 * verw} if verw else {})
        rows.append(region(name, {own("f"): 100 * (insns - verw), own("way_out"): way_out}))
    return (run(*rows), run(*rows))


BASE = runs(("getppid", 400, 1), ("open", 9000, 1), ("loop", 1000, 0), ("fork", 90_000, 1))
OTHER = runs(("getppid", 399, 0), ("open", 4000, 0), ("loop", 900, 0), ("fork", 89_999, 0))
RETURNS = (
    GuestFacts("", "spec_rstack_overflow: Vulnerable: Safe RET, no microcode\n"),
    GuestFacts("", "spec_rstack_overflow: Vulnerable: No microcode\n"),
)


def with_returns(insns: int, safe: int) -> Runs:
    """Two runs of a region whose returns are guarded by so many instructions an iteration."""
    functions = {own("f"): 100 * insns} | ({own("srso_safe_ret"): 100 * safe} if safe else {})
    one = run(region("getppid", functions))
    return (one, one)


def cycles_of(base: Runs, other: Runs) -> Cycles:
    sides = [executed_estimates(one) for one in (base, other)]
    regions = tuple(
        ComparedRegion(name, RegionCost(sides[0][name]), RegionCost(sides[1][name]))
        for name in sides[0]
    )
    return Cycles(placement_effects(regions, prices_of(ZEN4)), regions=regions)


def judged(
    base: GuestFacts, other: GuestFacts, sides: tuple[Runs, Runs] = (BASE, OTHER)
) -> tuple[Effects, Cycles]:
    path, guests = compare_runs(*sides), (base, other)
    cycles = comparable_cycles(cycles_of(*sides), path, ZEN4, guests)
    return comparable(path, ZEN4, guests), cycles


def words(effects: Effects) -> dict[str, Word]:
    return {one.name: one.verdict.word for one in effects.operations}


def cycle_words(cycles: Cycles) -> dict[str, Word]:
    return {one.region: one.verdict.word for one in cycles.effects}


def test_a_lost_function_that_decides_is_not_comparable_on_path_and_model_cycles() -> None:
    sides = with_returns(400, 40), with_returns(400, 0)
    effects, cycles = judged(*RETURNS, sides)
    assert words(effects) == cycle_words(cycles) == {"getppid": Word.NOT_COMPARABLE}
    (found,) = effects.operations
    assert found.verdict.reason.endswith("without that: same")


def test_a_lost_verw_decides_no_path_where_a_nop_stands_in_its_place() -> None:
    effects, _ = judged(ATTEMPTED, LOST)
    assert set(words(effects).values()) == {Word.FASTER}


def test_a_lost_verw_that_decides_model_cycles_is_not_comparable() -> None:
    plain = cycle_words(cycles_of(BASE, OTHER))
    assert plain["getppid"] is Word.FASTER  # by VERW's price of 10 to 160 cycles
    assert plain["fork"] is Word.SAME
    _, cycles = judged(ATTEMPTED, LOST)
    assert cycle_words(cycles) == plain | {"getppid": Word.NOT_COMPARABLE}
    found = {one.region: one.verdict.reason for one in cycles.effects}
    assert found["getppid"] == (
        "only base executes verw: other does without for want of microcode "
        "(tsa: Vulnerable: No microcode); without that: same"
    )


def test_what_it_does_not_decide_has_a_note() -> None:
    effects, cycles = judged(ATTEMPTED, LOST)
    text = (
        "only base executes verw: other does without for want of microcode "
        "(tsa: Vulnerable: No microcode); in getppid, open, fork; "
    )
    assert effects.warnings == (f"{text}it decides no verdict on paths",)
    assert cycles.notes == (f"{text}it decides the verdict on model cycles of getppid",)


def test_a_gate_cannot_pass_by_a_bound_that_a_lost_verw_makes() -> None:
    """Without VERW the same word, but no bound: fewer MSR writes, and more instructions."""
    base = Cost(40_000, specials={"verw": 100, "wrmsr": 100})
    both = (run(region("getppid", {own("f"): base})), run(region("getppid", {own("f"): 52_000})))
    sides = (both[:1] * 2, both[1:] * 2)
    (plain,) = cycles_of(*sides).effects
    assert (plain.verdict.word, plain.within_bound) == (Word.UNRESOLVED, True)
    _, cycles = judged(ATTEMPTED, LOST, sides)
    (found,) = cycles.effects
    assert found.verdict.word is Word.NOT_COMPARABLE
    assert found.verdict.reason.endswith("without that: unresolved")


@pytest.mark.parametrize("other", [ATTEMPTED, CHOSEN])
def test_without_a_lost_path_nothing_changes(other: GuestFacts) -> None:
    effects, cycles = judged(ATTEMPTED, other)
    assert effects == compare_runs(BASE, OTHER)
    assert cycle_words(cycles) == cycle_words(cycles_of(BASE, OTHER))
    assert cycles.notes == ()


def test_without_a_cpu_the_path_alone_is_judged() -> None:
    sides = with_returns(400, 40), with_returns(400, 0)
    assert words(comparable(compare_runs(*sides), None, RETURNS)) == {
        "getppid": Word.NOT_COMPARABLE
    }


def test_what_a_guest_says_is_that_of_the_first_run_that_went_well(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        blobs = {name: store.put(name.encode()) for name in ("cpuinfo", "vulnerabilities")}
        good = msgspec.structs.replace(stored(1, RunStatus.OK), attachments=blobs)
        failed = RunResult(stored(0, RunStatus.TIMED_OUT), None)
        found = guest_of((failed, RunResult(good, BASE[0])), store)
        assert found == GuestFacts("cpuinfo", "vulnerabilities")
        assert guest_of((failed,), store) == GuestFacts()


def ended(store: Store, counts: Runs, guest: GuestFacts, group: str) -> list[RunResult]:
    """The runs of one end of a search."""
    facts = {"vulnerabilities": guest.vulnerabilities, "group": group}
    attachments = {name: store.put(text.encode()) for name, text in facts.items()}
    kept = msgspec.structs.replace(stored(0, RunStatus.OK), attachments=attachments)
    return [RunResult(kept, one) for one in counts]


def test_the_ends_of_a_search_have_notes_on_lost_paths_that_decide_and_on_groups(
    tmp_path: Path,
) -> None:
    sides = with_returns(400, 40), with_returns(400, 0)
    with Store.open(tmp_path) as store:
        good = ended(store, sides[0], RETURNS[0], "memory pids \n")
        bad = ended(store, sides[1], RETURNS[1], "pids \n")
        groups, path, left_out = end_notes(("good", "bad"), (good, bad), None, store)
        assert groups == (
            "control groups: good with memory and pids, bad with pids alone: in bad, memory is not "
            "charged"
        )
        assert "only base executes srso_safe_ret" in path
        assert "it decides the verdict on paths of getppid (base is good, other bad)" in path
        assert left_out == "left out, since not comparable: getppid"
        assert end_notes(("good", "bad"), (good, good), None, store) == ()


def bench(store: Store) -> Bench:
    tree = "deb-src:linux-source-6.12"
    return Bench(tree, [Work()], Lab(store, Silent(), LabRequest()))


def end(done: Sequence[RunResult]) -> MeasuredKernel:
    """An end of a search with what its runs executed."""
    counts = [one.counts for one in done if one.counts]
    paths = region_paths(counts)
    regions = {name: SearchRegion("syscalls", path) for name, path in paths.items()}
    found = NoKernel("not looked at", RunStatus.OK, "", "")
    return MeasuredKernel("an end", found, tuple(done), regions, parts=function_paths(counts))


def test_a_search_leaves_out_what_a_lost_path_decides(tmp_path: Path) -> None:
    """And, on a CPU, the model cycles of all regions with such a path."""
    rows = region("getppid", {own("f"): 40_000, own("srso_safe_ret"): 4_000})
    lost = region("getppid", {own("f"): 40_000})
    little = region("open", {own("f"): 900_000, own("srso_safe_ret"): 1})
    fewer = region("open", {own("f"): 800_000})
    loop = region("loop", {own("f"): 100_000})
    with Store.open(tmp_path) as store:
        good = end(ended(store, (run(rows, little, loop),) * 2, RETURNS[0], ""))
        bad = end(ended(store, (run(lost, fewer, loop),) * 2, RETURNS[1], ""))
        searched = bench(store)
        kept = searched.comparable((good, bad), ZEN4, [ModelCycles(MeasureRequest(ZEN4), ZEN4)])
        assert [set(one.regions) for one in kept] == [{"open", "loop"}] * 2
        assert [set(one.parts) for one in kept] == [{"open", "loop"}] * 2
        left_out = {"getppid", "getppid on zen4", "open on zen4"}
        assert searched.left_out == left_out
        assert searched.comparable((good, good), ZEN4) == (good, good)


def test_a_search_of_nothing_that_is_comparable_is_refused(tmp_path: Path) -> None:
    sides = with_returns(400, 40), with_returns(400, 0)
    with Store.open(tmp_path) as store:
        ends = [end(ended(store, one, who, "")) for one, who in zip(sides, RETURNS, strict=True)]
        with pytest.raises(UserError, match="only base executes srso_safe_ret") as refused:
            bench(store).comparable((ends[0], ends[1]), None)
        assert "name operations" in refused.value.hint

# SPDX-License-Identifier: GPL-2.0-or-later
"""A path that one of two kernels has lost in the guest: found by counts, and what it decides."""

import pytest

from kdelta.counts.model import Cost, RunCounts
from kdelta.cpus import load_cpu
from kdelta.infer.cycles.ensembles import RegionCost
from kdelta.infer.cycles.lost_paths import (
    GuestFacts,
    decided_path,
    known_mitigations,
    lost_paths,
    one_sided,
    region_without,
)
from kdelta.infer.cycles.placement_model import CodeChange, ComparedRegion
from kdelta.infer.effects.effects import Effects, OperationEffect, Word, compare_runs
from tests.infer.drawn import amount
from tests.synthetic import own, region, run

ATTEMPTED = GuestFacts("", "tsa: Vulnerable: Clear CPU buffers attempted, no microcode\n")
LOST = GuestFacts("", "tsa: Vulnerable: No microcode\n")
CHOSEN = GuestFacts("", "tsa: Vulnerable\n")
OLDER = GuestFacts("", "mds: Not affected\n")
SAFE_RET = GuestFacts("", "spec_rstack_overflow: Vulnerable: Safe RET, no microcode\n")
NO_SAFE_RET = GuestFacts("", "spec_rstack_overflow: Vulnerable: No microcode\n")
ZEN4 = load_cpu("zen4")


def runs(insns: int, verw: int, **functions: int) -> tuple[RunCounts, ...]:
    """Two runs of one operation that executes so much an iteration."""
    costs = {own(name): Cost(100 * count) for name, count in functions.items()}
    plain = Cost(100 * (insns - verw))
    way_out = Cost(100 * verw, specials={"verw": 100 * verw} if verw else {})
    one = run(region("getppid", {own("body"): plain, own("way_out"): way_out} | costs))
    return (one, one)


def operation(base: tuple[RunCounts, ...], other: tuple[RunCounts, ...]) -> OperationEffect:
    effects: Effects = compare_runs(base, other)
    return effects.operations[0]


def test_a_lost_verw_is_not_faster_although_as_many_instructions_take_fewer_cycles() -> None:
    found = operation(runs(100, 1), runs(100, 0))
    (part,) = parts = one_sided(found, lost_paths(ZEN4, ATTEMPTED, LOST))
    assert (part.names, part.specials) == (("verw",), ("verw",))
    assert part.text == (
        "only base executes verw: other does without for want of microcode "
        "(tsa: Vulnerable: No microcode)"
    )
    assert found.verdict.word is Word.FASTER
    verdict = decided_path(found, parts)
    assert verdict is not None
    assert verdict.word is Word.NOT_COMPARABLE
    assert verdict.reason.endswith("; without that: same")


def test_swapped_kernels_lose_it_the_other_way_round() -> None:
    found = operation(runs(99, 0), runs(100, 1))
    (part,) = one_sided(found, lost_paths(ZEN4, LOST, ATTEMPTED))
    assert part.text.startswith("only other executes verw: base does without")


def test_a_same_path_that_lost_functions_even_out_is_not_comparable() -> None:
    found = operation(runs(100, 0, srso_safe_ret=8), runs(108, 0))
    parts = one_sided(found, lost_paths(None, SAFE_RET, NO_SAFE_RET))
    verdict = decided_path(found, parts)
    assert found.verdict.word is Word.SAME
    assert verdict is not None
    assert verdict.word is Word.NOT_COMPARABLE
    assert verdict.reason == (
        "only base executes srso_safe_ret: other does without for want of microcode "
        "(spec_rstack_overflow: Vulnerable: No microcode); without that: slower"
    )


def test_lost_functions_that_decide_nothing_leave_the_verdict() -> None:
    found = operation(runs(100, 0, srso_safe_ret=8), runs(50, 0))
    parts = one_sided(found, lost_paths(None, SAFE_RET, NO_SAFE_RET))
    assert len(parts) == 1
    assert decided_path(found, parts) is None


@pytest.mark.parametrize(
    ("base", "other"),
    [(ATTEMPTED, CHOSEN), (ATTEMPTED, OLDER), (ATTEMPTED, ATTEMPTED), (ATTEMPTED, GuestFacts())],
    ids=["by choice", "not known to an older kernel", "attempted by both", "nothing was reported"],
)
def test_a_verw_that_is_not_lost_is_a_difference_of_the_kernels(
    base: GuestFacts, other: GuestFacts
) -> None:
    found = operation(runs(100, 1), runs(99, 0))
    assert one_sided(found, lost_paths(ZEN4, base, other)) == ()


def test_a_verw_in_both_or_in_neither_is_no_such_path() -> None:
    for count in (0, 1):
        found = operation(runs(100, count), runs(99, count))
        assert one_sided(found, lost_paths(ZEN4, LOST, LOST)) == ()


def test_a_machine_that_is_no_cpu_in_particular_goes_by_words() -> None:
    found = operation(runs(100, 1), runs(99, 0))
    assert len(one_sided(found, lost_paths(None, ATTEMPTED, LOST))) == 1


def test_a_kernel_that_executes_what_it_says_it_lost_has_not_lost_it() -> None:
    found = operation(runs(100, 1), runs(99, 0))
    assert one_sided(found, lost_paths(None, LOST, ATTEMPTED)) == ()


def test_what_the_cpu_is_not_affected_by_is_not_lost() -> None:
    cpu = load_cpu("sapphire-rapids")
    said = GuestFacts("", "mds: Vulnerable: No microcode\n")
    found = operation(runs(100, 1), runs(99, 0))
    assert one_sided(found, lost_paths(cpu, OLDER, said)) == ()
    assert len(one_sided(found, lost_paths(ZEN4, OLDER, said))) == 1


def test_functions_of_a_path_that_one_kernel_takes_are_found() -> None:
    found = operation(runs(100, 0, srso_safe_ret=8, srso_untrain_ret=2, f=1), runs(100, 0, f=1))
    (part, *_) = parts = one_sided(found, lost_paths(None, SAFE_RET, NO_SAFE_RET))
    assert set(part.names) == {"srso_safe_ret", "srso_untrain_ret"}
    assert part.insns.base.value == 10
    assert part.insns.other.value == 0
    verdict = decided_path(found, parts)
    assert verdict is not None
    assert verdict.reason.endswith("without that: same")


def test_functions_of_a_path_under_other_names_are_no_lost_path() -> None:
    found = operation(runs(100, 0, srso_safe_ret=8), runs(100, 0, srso_alias_safe_ret=7))
    assert one_sided(found, lost_paths(None, SAFE_RET, NO_SAFE_RET)) == ()


def test_a_path_of_the_cpu_that_one_kernel_alone_took_otherwise_is_found() -> None:
    zen = load_cpu("zen4")
    guarded = GuestFacts("", "spectre_v2: Mitigation: Enhanced / Automatic IBRS\n")
    thunks = GuestFacts("", "spectre_v2: Mitigation: Retpolines\n")
    found = operation(runs(100, 0), runs(100, 0, __x86_indirect_thunk_rax=4))
    (part,) = one_sided(found, lost_paths(zen, guarded, thunks))
    assert part.text.startswith(
        "only other executes __x86_indirect_thunk_rax: other is not as on the CPU (spectre_v2: "
    )
    assert one_sided(found, lost_paths(zen, thunks, thunks)) == ()


def test_a_feature_that_one_kernel_does_not_list_is_no_lost_path() -> None:
    said = "tsa: Not affected\n"
    listed, hidden = GuestFacts("flags\t: fsgsbase\n", said), GuestFacts("flags\t: none\n", said)
    found = operation(runs(100, 0), runs(100, 0, save_fsgs=4))
    assert one_sided(found, lost_paths(ZEN4, listed, hidden)) == ()


def test_a_region_without_a_replaced_special_has_not_its_price() -> None:
    found = operation(runs(100, 1), runs(99, 0))
    parts = one_sided(found, lost_paths(ZEN4, ATTEMPTED, LOST))
    base = RegionCost({"insns": amount(100), "verw": amount(1), "swapgs": amount(2)})
    other = RegionCost({"insns": amount(99), "swapgs": amount(2)})
    without = region_without(ComparedRegion("getppid", base, other, CodeChange.DIFFERENT), parts)
    assert without.base.executed == {"insns": amount(100), "swapgs": amount(2)}
    assert without.other.executed == other.executed


def test_a_region_without_functions_has_not_their_instructions() -> None:
    found = operation(runs(100, 0, srso_safe_ret=8), runs(100, 0))
    parts = one_sided(found, lost_paths(None, SAFE_RET, NO_SAFE_RET))
    sides = RegionCost({"insns": amount(108)}), RegionCost({"insns": amount(100)})
    without = region_without(ComparedRegion("getppid", *sides, CodeChange.DIFFERENT), parts)
    assert without.base.executed == without.other.executed == {"insns": amount(100)}


def test_the_paths_spread_is_what_is_left_without_the_part() -> None:
    base = (*runs(100, 0, srso_safe_ret=8)[:1], *runs(104, 0, srso_safe_ret=8)[:1])
    found = operation(base, runs(99, 0))
    verdict = decided_path(found, one_sided(found, lost_paths(None, SAFE_RET, NO_SAFE_RET)))
    assert found.verdict.word is Word.FASTER
    assert verdict is not None
    assert verdict.reason.endswith("without that: unresolved")  # 102 give or take 4, and 99


def test_every_mitigation_has_a_source_and_a_sign() -> None:
    for one in known_mitigations():
        assert one.files
        assert one.source
        assert one.specials or one.functions

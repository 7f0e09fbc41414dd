# SPDX-License-Identifier: GPL-2.0-or-later
"""Arms of one run broken down: what adds up, what is missing, and what it costs on a CPU."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost, RunCounts
from kdelta.cpus.catalog import load_cpu
from kdelta.infer.cycles.crossing import (
    PARTS,
    VARIANTS,
    Crossing,
    VariantName,
    check_crossing,
    crossing_of,
)
from kdelta.infer.cycles.cycles import model_cycles
from kdelta.spec.errors import LabError
from tests.report.example_crossing import KERNEL, WAY, counts
from tests.synthetic import interrupts, other, own, region, run, user

ZEN2 = load_cpu("zen2")
ALL = {arm: (counts(arm),) for arm in VARIANTS}

FIGURE = st.integers(0, 10**9)
SPECIALS = st.dictionaries(
    st.sampled_from(["syscall", "sysret", "iret", "swapgs", "wrmsr", "odd"]), st.integers(1, 10**6)
)


@st.composite
def made_runs(draw: st.DrawFn) -> dict[VariantName, tuple[RunCounts, ...]]:
    """Some arms, with some runs each, of which some lack operations."""
    found: dict[VariantName, tuple[RunCounts, ...]] = {}
    for arm in draw(st.sets(st.sampled_from(VARIANTS))):
        runs = []
        for _ in range(draw(st.integers(0, 3))):
            names = draw(st.lists(st.sampled_from("abc"), unique=True))
            runs.append(
                run(
                    *(
                        region(
                            name,
                            {
                                own("f"): Cost(draw(FIGURE), specials=draw(SPECIALS)),
                                user("g"): draw(FIGURE),
                                interrupts("i"): draw(FIGURE),
                                other("o"): draw(FIGURE),
                            },
                            draw(st.integers(1, 9)),
                        )
                        for name in names
                    )
                )
            )
        found[arm] = tuple(runs)
    return found


@given(made_runs(), st.booleans())
@pytest.mark.slow
def test_shares_add_up_to_the_whole_and_operations_to_the_total(
    arms: dict[VariantName, tuple[RunCounts, ...]], priced: bool
) -> None:
    found = crossing_of(arms, ZEN2 if priced else None)
    for one in (*found.operations, found.total):
        names = [arm.name for arm in one.variants]
        assert names == sorted(names, key=VARIANTS.index)
        for arm in one.variants:
            assert arm.insns.value == arm.user.value + arm.kernel.value
            assert (arm.cycles is not None) is priced
        if one.whole is None:
            assert len(one.variants) < 2
            continue
        assert one.whole.insns == one.variants[0].insns.value - one.variants[-1].insns.value
        assert sum(share.insns for share in one.shares) == one.whole.insns
        assert sum(share.user for share in one.shares) == one.whole.user
        assert sum(share.kernel for share in one.shares) == one.whole.kernel
        assert [part for share in one.shares for part in share.parts] == list(one.whole.parts)
        if one.whole.insns:
            assert sum(share.of_whole or 0 for share in one.shares) == 1
    having = [one for one in found.operations if one.name not in found.left_out]
    for arm in found.total.variants:
        sums = [one.variant(arm.name) for one in having]
        assert sum(each.insns.value for each in sums if each) == arm.insns.value


def test_each_part_is_what_its_arm_leaves_out() -> None:
    found = crossing_of(ALL)
    (getppid,) = [one for one in found.operations if one.name == "getppid"]
    assert [(*share.parts, int(share.insns), int(share.user)) for share in getppid.shares] == [
        ("mitigations", 60, 0),
        ("crossing", -10, 0),
        ("direct call", 2, -3),
        ("entry work", 145, 0),
    ]
    assert getppid.whole is not None
    assert (int(getppid.whole.insns), getppid.whole.parts) == (197, PARTS)
    assert next(share.of_whole for share in getppid.shares) == Fraction(60, 197)


def test_an_arm_that_is_missing_leaves_its_part_with_the_next() -> None:
    arms = {arm: runs for arm, runs in ALL.items() if arm not in ("mitigations-off", "kernel")}
    found = crossing_of({**arms, "kernel": ()})
    (getppid,) = [one for one in found.operations if one.name == "getppid"]
    assert [(*share.parts, int(share.insns)) for share in getppid.shares] == [
        ("mitigations", "crossing", "direct call", 52),
        ("entry work", 145),
    ]


@pytest.mark.parametrize("arms", [(), ("stock",), ("kernel-skip",)])
def test_too_few_arms(arms: tuple[VariantName, ...]) -> None:
    found = crossing_of({arm: ALL[arm] for arm in arms})
    assert found.total.whole is None
    assert found.total.shares == ()
    assert [arm.name for arm in found.total.variants] == list(arms)


def test_operations_that_not_every_run_has_are_not_in_the_total() -> None:
    found = crossing_of(ALL)
    assert set(found.left_out) == {"only-stock", "rest"}
    total = {arm.name: arm.insns.value for arm in found.total.variants}
    assert total["stock"] == 270 + 900_000
    assert total["kernel-skip"] == 73 + 900_000


def test_perturbed_runs_give_a_spread() -> None:
    found = crossing_of({arm: (counts(arm), counts(arm, 4)) for arm in VARIANTS})
    touched = next(one for one in found.operations if one.name == "mmap-touch-4m")
    assert [int(touched.variants[0].insns.low), int(touched.variants[0].insns.high)] == [
        900_000,
        900_040,
    ]
    getppid = next(one for one in found.operations if one.name == "getppid")
    assert getppid.variants[0].insns.exact
    assert getppid.variants[0].interrupts.low < getppid.variants[0].interrupts.high
    assert getppid.variants[0].other.value == Fraction(1, 2)


def test_special_instructions_are_those_of_an_iteration() -> None:
    getppid = crossing_of(ALL).operations[0]
    for arm in getppid.variants:
        assert {kind: int(count) for kind, count in arm.specials.items()} == WAY[arm.name]
        assert arm.kernel.value == KERNEL[arm.name]


@pytest.mark.parametrize("cpu", ["zen2", "generic-x86-64", "skylake-server"])
def test_cycles_are_those_of_the_formula(cpu: str) -> None:
    model = load_cpu(cpu)
    getppid = crossing_of(ALL, model).operations[0]
    for arm in getppid.variants:
        one = Cost(int(arm.insns.value), specials=WAY[arm.name])
        expected = model_cycles(one, {}, model)
        assert arm.cycles is not None
        assert arm.cycles.low == pytest.approx(expected.low)
        assert arm.cycles.high == pytest.approx(expected.high)


def test_a_difference_is_priced_and_prices_are_not_subtracted() -> None:
    getppid = crossing_of(ALL, ZEN2).operations[0]
    shares = {share.parts: share.cycles for share in getppid.shares}
    price = ZEN2.specials["lfence"]
    cycles = shares["mitigations",]
    assert cycles is not None
    base = 60 * ZEN2.cycles_per_insn
    assert cycles.low == pytest.approx(base + 2 * price.low)
    assert cycles.high == pytest.approx(base + 2 * price.high)


def test_what_has_no_price_is_reported_and_has_a_range() -> None:
    arms: dict[VariantName, tuple[RunCounts, ...]] = {
        "stock": (run(region("a", {own("f"): Cost(10, specials={"odd": 3, "syscall": 1})}, 1)),),
        "kernel": (run(region("a", {own("f"): 10}, 1)),),
    }
    found = crossing_of(arms, ZEN2)
    assert set(found.unpriced) == {"odd"}
    assert "syscall" in found.assumed
    prices = ZEN2.specials.values()
    assert found.unpriced["odd"].low == min(price.low for price in prices)
    assert found.unpriced["odd"].high == max(price.high for price in prices)
    assert found.total.whole is not None
    assert found.total.whole.cycles is not None
    assert found.total.whole.cycles.high >= 3 * found.unpriced["odd"].high
    assert crossing_of(arms).unpriced == {}


def test_what_does_not_add_up_is_a_fault() -> None:
    found = crossing_of(ALL)
    first = found.operations[0]
    share = msgspec.structs.replace(first.shares[0], user=first.shares[0].user + 1)
    broken = msgspec.structs.replace(first, shares=(share, *first.shares[1:]))
    with pytest.raises(LabError, match="getppid: the shares of user add up"):
        check_crossing(msgspec.structs.replace(found, operations=(broken, *found.operations[1:])))
    arm = msgspec.structs.replace(first.variants[0], user=first.variants[1].insns)
    with pytest.raises(LabError, match="getppid: the halves add up"):
        check_crossing(
            _with(found, msgspec.structs.replace(first, variants=(arm, *first.variants[1:])))
        )
    with pytest.raises(LabError, match="total: the operations' insns add up"):
        check_crossing(msgspec.structs.replace(found, operations=found.operations[1:]))


def _with(found: Crossing, first: object) -> Crossing:
    return msgspec.structs.replace(found, operations=(first, *found.operations[1:]))

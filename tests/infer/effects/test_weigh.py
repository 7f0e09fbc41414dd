# SPDX-License-Identifier: GPL-2.0-or-later
"""What special instructions and string bytes make of a verdict, and the table of their cycles."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost, RunCounts, plain_kind
from kdelta.infer.effects.effects import OperationEffect, Word, compare_runs, weighed
from kdelta.infer.effects.gate import Exit, decide_gate, judge_path
from kdelta.infer.effects.weigh import all_weights, terms_text
from tests.synthetic import own, region, run

NATIVE = Path(__file__).parents[3] / "native/plugin"
RUNS = 4
IN_OLD_RUNS = {"port-io"}
SOURCES = {
    "x86_64": "x86_kinds.c",
    "arm64": "aarch64.c",
    "arm": "arm.c",
    "riscv64": "riscv.c",
}
CERTAIN = [
    kind
    for weights in [all_weights()["x86_64"]]
    for kind in sorted(weights.special)
    if weights.fewer(kind) == weights.of(kind)
]
SIGNS = st.sampled_from([-1, 1])


def counts(insns: int, specials: dict[str, int], string_bytes: int = 0) -> list[RunCounts]:
    """So much an iteration, the same in each run."""
    times = 100
    cost = Cost(
        insns * times,
        string_bytes=string_bytes * times,
        specials={kind: count * times for kind, count in specials.items()},
    )
    return [run(region("op", {own("f"): cost}, times))] * RUNS


def effect(base: list[RunCounts], other: list[RunCounts]) -> OperationEffect:
    (found,) = compare_runs(base, other).operations
    return found


@pytest.mark.parametrize(("arch", "source"), SOURCES.items())
def test_each_special_instruction_that_is_counted_has_cycles(arch: str, source: str) -> None:
    (names,) = re.findall(r"\n    \"\",([^;]*?)NULL", (NATIVE / source).read_text())
    counted = re.findall(r'"([^"]+)"', names)
    assert len(counted) >= 19
    kinds = set(all_weights()[arch].special)
    assert set(counted) == {plain_kind(kind) for kind in kinds - IN_OLD_RUNS if kind[:4] != "mmio"}


@pytest.mark.parametrize("arch", SOURCES)
def test_no_range_of_cycles_is_below_zero_or_empty(arch: str) -> None:
    found = all_weights()[arch]
    for least, most in (found.insn, found.string_byte, *found.special.values()):
        assert 0 <= least <= most
    assert found.insn[0] > 0


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        ((400, {}), (400, {"port-io": 1}), Word.SLOWER),
        ((400, {"port-io": 1}), (400, {}), Word.FASTER),
        ((400, {"rdtsc": 1}), (400, {"port-io": 1}), Word.SLOWER),
        ((400, {}), (390, {"port-io": 1}), Word.SLOWER),
        ((400, {}), (401, {"wrmsr": 1}), Word.SLOWER),
        ((400, {}), (400, {"wbinvd": 1}), Word.SLOWER),
        ((400, {}), (400, {"write-cr3": 1}), Word.SLOWER),
        ((400, {}), (400, {"hlt": 1}), Word.SLOWER),
        ((400, {}), (380, {"lock": 1}), Word.MIXED),
        ((400, {}), (100, {"lock": 1}), Word.FASTER),
        ((400, {"lfence": 1}), (410, {}), Word.MIXED),
        ((400, {"lock": 2}), (400, {"lock": 2}), Word.SAME),
        ((4_000_000, {}), (4_000_000, {"lock": 1}), Word.SLOWER),
        ((400, {}), (400, {"a-kind-that-no-table-has": 1}), Word.MIXED),
        ((1_000, {}), (400, {"wrmsr PRED_CMD (IBPB)": 1}), Word.SLOWER),
        ((1_000, {}), (400, {"wrmsr SPEC_CTRL": 1}), Word.MIXED),
        ((400, {"wrmsr SPEC_CTRL": 1}), (400, {}), Word.FASTER),
        ((400, {"wrmsr SPEC_CTRL": 2}), (400, {"wrmsr PRED_CMD (IBPB)": 1}), Word.MIXED),
        ((400, {"wrmsr 0x12345": 1}), (400, {}), Word.MIXED),
        ((400, {"wrmsr": 1}), (400, {}), Word.MIXED),
        ((400, {}), (400, {"wrmsr": 1}), Word.SLOWER),
        ((400, {}), (390, {"in 0x608": 1}), Word.SLOWER),
        ((400, {}), (390, {"mmio hpet read": 1}), Word.SLOWER),
        ((400, {}), (390, {"mmio": 1}), Word.MIXED),
    ],
)
def test_special_instructions_decide_or_leave_open(
    base: tuple[int, dict[str, int]], other: tuple[int, dict[str, int]], word: Word
) -> None:
    assert effect(counts(*base), counts(*other)).verdict.word is word


@pytest.mark.parametrize(
    ("insns", "moved", "word"),
    [
        ((1_300, 13_700), (65_536, 0), Word.MIXED),
        ((1_300, 2_500), (65_536, 4_096), Word.MIXED),
        ((1_300, 1_300), (65_536, 4_096), Word.FASTER),
        ((1_300, 1_300), (4_096, 65_536), Word.SLOWER),
        ((1_300, 1_200), (65_536, 4_096), Word.FASTER),
        ((13_000, 1_300), (100, 200), Word.FASTER),
    ],
)
def test_string_bytes_that_instructions_may_replace_are_not_weighed(
    insns: tuple[int, int], moved: tuple[int, int], word: Word
) -> None:
    sides = [counts(one, {}, string) for one, string in zip(insns, moved, strict=True)]
    assert effect(*sides).verdict.word is word


def test_a_special_that_runs_do_not_agree_on_decides_nothing() -> None:
    some = [one for many in (3, 4, 3, 4) for one in counts(400, {"port-io": many})[:1]]
    verdict = effect(counts(400, {"port-io": 2}), some).verdict
    assert (verdict.word, verdict.runs_needed) == (Word.UNRESOLVED, 8)
    assert "special instructions differ" in verdict.reason


@given(
    insns=st.integers(-300, 300),
    kinds=st.dictionaries(st.sampled_from(CERTAIN), st.integers(1, 3), max_size=3),
    sign=SIGNS,
)
def test_the_word_follows_the_sign_of_the_cycles_and_turns_with_the_sides(
    insns: int, kinds: dict[str, int], sign: int
) -> None:
    sides = [
        counts(1000, kinds if sign < 0 else {}),
        counts(1000 + insns, kinds if sign > 0 else {}),
    ]
    found, back = effect(*sides), effect(*sides[::-1])
    assert found.costs
    assert back.costs
    cycles, turned = weighed(found.costs), weighed(back.costs)
    assert (cycles.low, cycles.high) == (-turned.high, -turned.low)
    opposite = {Word.SLOWER: Word.FASTER, Word.FASTER: Word.SLOWER}
    assert back.verdict.word is opposite.get(found.verdict.word, found.verdict.word)
    if found.verdict.word in (Word.FASTER, Word.SLOWER):
        assert cycles.low > 0 or cycles.high < 0
    if found.verdict.word is Word.SAME:
        assert cycles.within(Fraction(5, 1000))


@pytest.mark.parametrize(
    ("other", "exit_code"),
    [
        ((400, {"port-io": 1}), Exit.SLOWER),
        ((380, {"lock": 1}), Exit.CANNOT_TELL),
        ((100, {"lock": 1}), Exit.NOT_SLOWER),
        ((400, {}), Exit.NOT_SLOWER),
    ],
)
def test_a_gate_takes_the_word(other: tuple[int, dict[str, int]], exit_code: Exit) -> None:
    judged = judge_path(effect(counts(400, {}), counts(*other)), Fraction(0))
    assert decide_gate([judged]).exit is exit_code


def test_a_gate_names_what_is_slower_besides_instructions() -> None:
    judged = judge_path(effect(counts(400, {}), counts(400, {"port-io": 1})), Fraction(0))
    assert judged.region == "op +0% instructions, +1 port-io"


def test_a_gate_with_a_margin_passes_what_is_within_it_whatever_it_costs() -> None:
    found = effect(counts(4_000_000, {}), counts(4_000_000, {"lock": 1}))
    assert judge_path(found, Fraction(0)).word is Word.SLOWER
    assert judge_path(found, Fraction(1, 100)).word is Word.SAME


def test_terms_come_by_the_cycles_that_they_may_cost() -> None:
    found = effect(counts(400, {"lock": 9}), counts(400, {"port-io": 1}, 1234))
    assert found.costs
    assert terms_text(weighed(found.costs)) == ["+1 port-io", "-9 lock", "+1234 string bytes"]


def test_a_term_says_which_register_it_is_for_or_that_it_is_not_known() -> None:
    other = {"wrmsr SPEC_CTRL": 1, "in 0x608": 1, "mmio": 1}
    found = effect(counts(400, {"wrmsr": 1}), counts(400, other))
    assert found.costs
    terms = ["-1 wrmsr (register not known)", "+1 in 0x608", "+1 wrmsr SPEC_CTRL"]
    assert terms_text(weighed(found.costs)) == ["+1 mmio (device not known)", *terms]


def test_one_run_a_side_has_its_own_reason() -> None:
    found = effect(counts(400, {})[:1], counts(410, {"lock": 1})[:1]).verdict
    assert (found.word, found.runs_needed) == (Word.UNRESOLVED, 0)
    assert "one run on a side has no spread" in found.reason

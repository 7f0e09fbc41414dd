# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a path that QEMU lacks could move figures, and verdicts that it could turn round."""

import pytest

from kdelta.counts.model import Cost, RunCounts
from kdelta.cpus import load_cpu
from kdelta.cpus.representative import Difference
from kdelta.infer.effects.effects import Effects, Word, compare_runs
from kdelta.infer.effects.gains import PathGain, Reach, path_gains, turns, with_gains
from tests.synthetic import own, region, run

SWITCH = "switch_mm_irqs_off"


def lacking(cpu: str, path: str = "PCID") -> tuple[Difference, ...]:
    found = [one for one in load_cpu(cpu).paths if path in one.name and one.gains]
    assert found
    return tuple(Difference(one, ("no pcid",)) for one in found)


def runs(rest: int, switch: int = 80, switches: int = 2, sysrets: int = 4) -> tuple[RunCounts, ...]:
    """Two runs of an operation; an iteration switches address spaces so often."""
    specials = {"write-cr3": 100 * switches} if switches else {}
    functions = {
        own("body"): Cost(100 * rest, specials={"sysret": 100 * sysrets}),
        own(SWITCH): Cost(100 * switch, specials=specials),
    }
    one = run(region("pipe", functions))
    return (one, one)


def judged(
    base: tuple[RunCounts, ...], other: tuple[RunCounts, ...], cpu: str = "zen4"
) -> tuple[Effects, tuple[PathGain, ...]]:
    effects = compare_runs(base, other)
    found = lacking(cpu)
    gains = path_gains(effects, (found, found), (base[0], other[0]))
    return with_gains(effects, gains, cpu), gains


def test_each_switch_of_address_spaces_counts() -> None:
    _, (gain,) = judged(runs(900), runs(900, switch=120, switches=3))
    assert (gain.base, gain.other) == (Reach(0, 166), Reach(0, 249))
    assert gain.effect == Reach(-166, 249)
    assert gain.paths == ("address spaces kept apart by PCID",)


def test_a_verdict_that_the_path_could_turn_round_is_unresolved() -> None:
    effects, _ = judged(runs(900), runs(900, switch=100))
    (found,) = effects.operations
    assert found.verdict.word is Word.UNRESOLVED
    assert found.verdict.reason == (
        "on a real zen4 the difference could be -166 to +166 instructions larger (address spaces "
        "kept apart by PCID), and so have the other sign"
    )


@pytest.mark.parametrize(("more", "word"), [(167, Word.SLOWER), (166, Word.UNRESOLVED)])
def test_a_difference_beyond_the_bounds_is_firm(more: int, word: Word) -> None:
    effects, _ = judged(runs(900), runs(900, switch=80 + more))
    assert effects.operations[0].verdict.word is word


def test_where_both_switch_alike_both_gain_the_same() -> None:
    """A patch elsewhere has its verdict, however small it is."""
    effects, (gain,) = judged(runs(900), runs(901))
    assert (gain.base, gain.effect) == (Reach(0, 166), Reach())
    assert effects.operations[0].verdict.word is Word.SLOWER


def test_an_operation_that_never_switches_is_not_named() -> None:
    effects, gains = judged(runs(900, switches=0), runs(800, switches=0))
    assert gains == ()
    assert effects.operations[0].verdict.word is Word.FASTER


def test_on_skylake_each_return_to_the_program_counts_as_well() -> None:
    _, (gain,) = judged(runs(900), runs(700, switch=81), "skylake-server")
    assert gain.base == Reach(4 * 7, 4 * 8 + 2 * 141)


def test_a_kernel_that_took_the_path_gains_nothing() -> None:
    base, other = runs(900), runs(900, switch=100)
    effects = compare_runs(base, other)
    (gain,) = path_gains(effects, ((), lacking("zen4")), (base[0], other[0]))
    assert (gain.base, gain.other) == (Reach(), Reach(0, 166))


@pytest.mark.parametrize(
    ("word", "ends", "reach", "turned"),
    [
        (Word.SLOWER, (5, 9), Reach(-5, 0), True),
        (Word.SLOWER, (5, 9), Reach(-4, 99), False),
        (Word.FASTER, (-9, -5), Reach(0, 5), True),
        (Word.FASTER, (-9, -5), Reach(-99, 4), False),
        (Word.SAME, (0, 0), Reach(-9, 9), False),
    ],
)
def test_only_a_sign_that_changes_turns_a_verdict(
    word: Word, ends: tuple[float, float], reach: Reach, turned: bool
) -> None:
    assert turns(word, *ends, reach) is turned


def test_each_cpu_that_lacks_pcid_has_its_bounds() -> None:
    for name in ("zen3", "zen4", "zen5", "skylake-server", "icelake-server", "sierra-forest"):
        assert lacking(name)

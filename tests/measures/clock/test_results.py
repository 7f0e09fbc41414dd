# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a bundle become timings, and what is not whole, not quiet or another's is refused."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.measures.clock.results import cksum
from kdelta.measures.clock.timing import read_results
from kdelta.spec.errors import UserError
from tests.measures.clock.clock_results import (
    a_round,
    processor,
    results,
    run_text,
    signed,
    write,
)


def test_figures_are_cycles_whatever_the_frequency(tmp_path: Path) -> None:
    rounds = [a_round((1000, 3000), rate=rate) for rate in (1.0, 0.5, 2.0, 0.75)]
    runs = [run_text(seed, process, rounds) for process in (1, 2) for seed in (1, 2)]
    timings = read_results(write(tmp_path, results(runs)), busy_ok=True)
    (program,) = timings.programs
    assert [link.seed for link in program.links] == [1, 2]
    for link in program.links:
        assert link.cycles == link.cycles_min == pytest.approx(2000)
        assert link.halves == pytest.approx((2000, 2000))
        assert (link.iterations, link.samples) == (2, 8)
    assert program.links[0].sha256 == "a" * 64
    assert timings.quiet.reference_spread > 1


@pytest.mark.parametrize(("slips", "least"), [(2, 1000), (3, 500)])
def test_two_slips_of_the_clock_are_not_the_least(slips: int, least: int, tmp_path: Path) -> None:
    usual, slip = a_round((1000, 1000)), a_round((500, 500))
    runs = [run_text(seed, process, [usual] * 20) for process in (1, 2) for seed in (1, 2)]
    runs[0] = run_text(1, 1, [slip] * slips + [usual] * 18)
    (program,) = read_results(write(tmp_path, results(runs))).programs
    assert [link.cycles_min for link in program.links] == [least, 1000]


def test_passes_in_which_the_frequency_moved_are_left_out(tmp_path: Path) -> None:
    rounds = [a_round((1000, 1)), a_round((1000, 1), after=1.04), *[a_round((1000, 1000))] * 6]
    rounds[0] = a_round((1000, 1), after=0.97)
    runs = [run_text(seed, process, rounds) for process in (1, 2) for seed in (1, 2)]
    timings = read_results(write(tmp_path, results(runs)))
    assert timings.programs[0].links[0].cycles == 1000
    assert timings.quiet.dropped_share == pytest.approx(2 / 16)


def test_what_a_link_lacks_of_a_pass_the_others_log(tmp_path: Path) -> None:
    whole, cut = a_round((1000, 2000)), a_round((1100, 9000), after=1.1)
    runs = [run_text(seed, process, [whole]) for process in range(1, 7) for seed in (1, 2)]
    runs[0::2] = [run_text(1, process, [cut]) for process in range(1, 7)]
    first, second = read_results(write(tmp_path, results(runs)), busy_ok=True).programs[0].links
    # Of the first link the second pass is missing everywhere: it is derived from that of the other,
    # to which the first pass adds the half of what it takes more.
    assert (second.cycles, second.cycles_min) == pytest.approx((1500, 1500))
    assert first.cycles == pytest.approx(1500 + 50 + 25)
    assert first.cycles_min == 1100


def test_the_low_quantile_of_a_pass_and_by_how_much_halves_differ(tmp_path: Path) -> None:
    """Twenty processes, each slower than the one before by a cycle."""
    runs = [
        run_text(seed, number, [a_round((1000 + number, 1000 + number))])
        for number in range(20)
        for seed in (1, 2)
    ]
    links = read_results(write(tmp_path, results(runs)), busy_ok=True).programs[0].links
    for link in links:
        assert link.cycles == pytest.approx(1000 + 0.15 * 19)
        assert link.halves == pytest.approx((1000 + 0.15 * 18, 1001 + 0.15 * 18))
        assert (link.samples, link.cycles_min) == (20, 1002)


def test_a_frequency_that_is_never_steady(tmp_path: Path) -> None:
    rounds = [" ".join([a_round((1000,), after=1.1)] * 2)] * 4
    runs = [run_text(seed, process, rounds) for process in (1, 2) for seed in (1, 2)]
    with pytest.raises(UserError, match="calls-random: the core's frequency moved in nearly"):
        read_results(write(tmp_path, results(runs)), busy_ok=True)


def test_what_was_timed_on(tmp_path: Path) -> None:
    machine = read_results(write(tmp_path, results())).machine
    assert (machine.cpu, machine.cpu_numbers) == ("A Processor", "6 143 8")
    assert (machine.core, machine.cores, machine.hypervisor) == (1, 2, True)
    assert (machine.kernel, machine.clock, machine.id) == ("6.1.0-test", "tsc", "77")


@settings(max_examples=30)
@given(st.data())
def test_every_cut_and_every_change_is_seen(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = results()
    folder = tmp_path_factory.mktemp("cut")
    cut = data.draw(st.integers(0, len(whole) - 2))
    with pytest.raises(UserError):
        read_results(write(folder, whole[:cut]))
    at, bit = data.draw(st.integers(0, len(whole) - 2)), data.draw(st.integers(0, 7))
    changed = bytearray(whole)
    changed[at] ^= 1 << bit
    with pytest.raises(UserError):
        read_results(write(folder, bytes(changed)))


def test_what_is_reported_of_a_cut_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="was cut off"):
        read_results(write(tmp_path, results()[:-30]))
    with pytest.raises(UserError, match="is no result of a bundle"):
        read_results(write(tmp_path, b"hello\n"))
    with pytest.raises(UserError, match="was changed"):
        read_results(write(tmp_path, results().replace(b"calls-random", b"calls-rindom")))
    runs = [run_text(1, 1, [a_round((1, 1))] * 5)]
    with pytest.raises(UserError, match="lack calls-random, seed 2"):
        read_results(write(tmp_path, results(runs)))


@given(st.binary(max_size=300))
def test_the_checksum_is_that_of_cksum(content: bytes) -> None:
    if len(content) % 37 == 0:  # a process each: some will do
        said = subprocess.run(["cksum"], input=content, capture_output=True, check=True).stdout
        assert said.split()[0].decode() == str(cksum(content))
    assert signed(content).startswith(content)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (processor(100, 0, 50, 100, uptime=101.5), "the hypervisor gave 33% of the core's time"),
        (processor(100, 0, 0, 50, uptime=101.0), "other programs had 50% of the core's time"),
    ],
)
def test_a_busy_machine_is_refused_or_said_to_be(end: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, results(end=end))
    with pytest.raises(UserError, match=said) as refused:
        read_results(path)
    assert "--busy-ok" in refused.value.hint
    quiet = read_results(path, busy_ok=True).quiet
    assert not quiet.ok
    assert any(said in line for line in quiet.said)


def test_a_quiet_one_has_nothing_to_log(tmp_path: Path) -> None:
    quiet = read_results(write(tmp_path, results())).quiet
    assert quiet.ok
    assert quiet.said == ()
    assert (quiet.seconds, quiet.load_average) == (1.0, 0.1)


def test_another_thread_of_the_core_is_seen_by_its_width(tmp_path: Path) -> None:
    rounds = [a_round((1000, 1000), width=width) for width in (500, 800, 800, 800)]
    runs = [run_text(seed, process, rounds) for process in (1, 2) for seed in (1, 2)]
    quiet = read_results(write(tmp_path, results(runs))).quiet
    assert quiet.contended_share == 0.75
    assert quiet.said == ("another thread of the core was busy in 75% of the passes",)


def test_links_whose_core_was_never_alone_log_so(tmp_path: Path) -> None:
    alone = [a_round((1000, 1000), width=500)] * 6
    shared = [a_round((1500, 1500), width=800)] * 6
    runs = [run_text(1, process, alone + shared) for process in (1, 2)]
    runs += [run_text(2, process, shared) for process in (1, 2)]
    (program,) = read_results(write(tmp_path, results(runs))).programs
    first, second = program.links
    assert (first.alone, first.cycles, first.samples) == (True, 1000, 12)
    assert (second.alone, second.cycles, second.samples) == (False, 1500, 12)


def test_a_level_that_no_round_is_near_is_a_slip(tmp_path: Path) -> None:
    runs = [
        run_text(seed, process, [a_round((1000, 1000), width=560)] * 6)
        for process in (1, 2)
        for seed in (1, 2)
    ]
    timings = read_results(write(tmp_path, results(runs)))
    assert timings.quiet.contended_share == 0
    assert all(link.alone for link in timings.programs[0].links)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (139, "may not read the clock"),
        (132, "may not read the clock"),
        (126, "could not be executed"),
        (127, "could not be executed"),
        (3, "could not use that core"),
        (1, "failed with status 1"),
    ],
)
def test_facts_that_fail(status: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        read_results(write(tmp_path, results(facts_status=status)))


def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    runs = [run_text(1, 1, [a_round((1, 1))] * 5, status=139)]
    with pytest.raises(UserError, match="run calls-random 1 failed with status 139"):
        read_results(write(tmp_path, results(runs)))
    runs = [run_text(1, 1, []).replace("done\n", "")]
    with pytest.raises(UserError, match="seed 1, did not come to its end"):
        read_results(write(tmp_path, results(runs)))
    runs = [run_text(1, 1, []).replace("clock tsc 0 1024\ndone\n", "hello\n")]
    with pytest.raises(UserError, match="seed 1, printed no times"):
        read_results(write(tmp_path, results(runs)))

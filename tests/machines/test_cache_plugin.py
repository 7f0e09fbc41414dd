# SPDX-License-Identifier: GPL-2.0-or-later
"""What the comparison with QEMU's example plugin reads."""

import pytest

from .bench_cache_plugin import (
    EXAMPLE,
    SIMULATING,
    Measured,
    Pair,
    Ran,
    Replayed,
    example_counts,
    lines,
)
from .qemu_example import with_sources

# As QEMU 7.2.22 printed it, with limit=1.
SAID = """\
core #, data accesses, data misses, dmiss rate, insn accesses, insn misses, imiss rate
0       6074685        51613           0.8496%  23788195       233140          0.9801%

address, data misses, instruction
0xc24ab0, 1337, movl %eax, 0x1c(%rdi)
"""


def test_what_the_example_says() -> None:
    assert example_counts(SAID) == (23788195, 233140, 51613)


def test_an_example_that_says_something_else() -> None:
    with pytest.raises(ValueError, match="the example said"):
        example_counts("core #, data accesses\n")


def test_lists_of_either_form_also_name_sources() -> None:
    deb822 = "# deb\nTypes: deb\nURIs: file:/x\nSuites: bookworm\n"
    one_line = "deb [trusted=yes] file:/x bookworm main\n# deb file:/y bookworm main\n"
    assert "\nTypes: deb deb-src\n" in with_sources(deb822)
    assert with_sources(one_line).splitlines() == [
        "deb [trusted=yes] file:/x bookworm main",
        "deb-src [trusted=yes] file:/x bookworm main",
        "# deb file:/y bookworm main",
    ]


def pair(seconds: float, insns: int, misses: int) -> Pair:
    """Of a long run; the short one has a tenth of it all."""
    return Pair(Ran(seconds, insns, misses), Ran(seconds / 10, insns // 10, misses // 10))


def test_a_ratio_is_of_what_an_instruction_costs_in_the_same_round() -> None:
    # The region is 0.8 of what the example counts; alone, an instruction takes 2 ns.
    rounds = [
        {
            "QEMU alone": pair(2e-6, 0, 0),
            EXAMPLE: pair(10e-6, 1000, 50),
            SIMULATING: pair(2e-6 + 2.4e-6, 800, 40),
        }
        for _ in range(3)
    ]
    runs = [Ran(1.0, 1000, 50), Ran(1.0, 1033, 51), Ran(1.0, 1000, 50)]
    # The long run of kdelta's has 800 instructions, for which the example takes 8 us.
    replays = {SIMULATING: Replayed(once=1.0, layout=8e-9, misses=40)}
    said = "\n".join(lines(Measured(rounds, replays, {EXAMPLE: runs, SIMULATING: runs[:1]})))
    assert "QEMU alone: 2.0 (2.0 to 2.0) ns an instruction\n" in said
    assert "the example: 10.0 (10.0 to 10.0) ns an instruction; misses in 1000" in said
    assert "kdelta, simulating: 5.0 (5.0 to 5.0) ns an instruction" in said
    assert "the example, over kdelta simulating: 2.0 (2.0 to 2.0) times" in said
    assert "beyond QEMU alone: 2.7 (2.7 to 2.7) times" in said
    assert "which the example takes 1000 times; misses in 1000 instructions: 50.000" in said
    assert "the example: 2 different counts, 33 instructions and 1 misses apart" in said
    assert "kdelta, simulating: one count" in said

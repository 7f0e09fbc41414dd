# SPDX-License-Identifier: GPL-2.0-or-later
"""What is to be known of regions whose marks are missing, few, or not at one level."""

import re

import msgspec
import pytest

from kdelta.counts.model import Iterations, RegionCounts
from kdelta.counts.symbols import NO_SYMBOL
from kdelta.infer.effects.marks import region_warnings
from tests.synthetic import own, region, user

WORK = {own("sys_a"): 30_000, user("main", "prog"): 10_000}
EXITS = {**WORK, own("do_group_exit"): 31}


def said(one: RegionCounts) -> list[str]:
    return [text.removeprefix(one.name).strip(": ") for text in region_warnings([one], "command")]


def test_a_region_that_is_as_it_should_be_is_not_mentioned() -> None:
    assert said(region("a", WORK)) == []
    assert said(region("a", WORK, 1)) == []
    whole = msgspec.structs.replace(region("command", EXITS), iterations=Iterations())
    assert said(whole) == []


def test_a_program_that_exits_in_its_region_is_named_unless_it_made_a_task_there() -> None:
    (text,) = said(region("a", EXITS))
    assert text.startswith("the program exits in this region")
    assert said(region("a", {**EXITS, own("copy_process.isra.0"): 900})) == []


def test_what_came_after_the_last_iteration_is_counted_apart_in_words() -> None:
    one = region("a", WORK)
    rows = (*one.functions, region("a", {own("late"): 401}).functions[0])
    (text,) = said(msgspec.structs.replace(one, functions=rows))
    assert text.startswith("401 of its 40401 instructions came after the last iteration; ")
    rows = (*one.functions, region("a", {own("late"): 300}).functions[0])
    assert said(msgspec.structs.replace(one, functions=rows)) == []


def test_marks_that_belong_to_no_region_are_named() -> None:
    (text,) = said(region("command", EXITS))
    assert text.startswith("the program marks iterations and no region")
    ended = msgspec.structs.replace(region("command", WORK), iterations=Iterations())
    (text,) = said(ended)
    assert text.startswith("the program has a kdelta_end() without a kdelta_begin()")


def test_without_symbols_nothing_is_reported_of_where_a_command_ended() -> None:
    nameless = region("command", {own(NO_SYMBOL): 30_000, user("main", "prog"): 10})
    assert said(msgspec.structs.replace(nameless, iterations=Iterations())) == []


@pytest.mark.parametrize(
    ("iterations", "why"),
    [
        (2, "has 2 iterations: too few to know whether it is steady"),
        (3, "has 3 iterations: too few to know whether it is steady"),
        (5, "has 5 iterations: of fewer than 16 only a clear change of level can be seen"),
        (15, "has 15 iterations: of fewer than 16 only a clear change of level can be seen"),
    ],
)
def test_few_iterations_are_named(iterations: int, why: str) -> None:
    assert said(region("a", WORK, iterations)) == [why]
    assert said(region("a", WORK, 16)) == []


def test_a_region_that_is_not_steady_is_named_with_both_levels() -> None:
    moving = Iterations((0,) * 40, (100,) * 20 + (200,) * 20, (0,) * 40, (0,) * 40)
    one = msgspec.structs.replace(region("a", {own("f"): 6_000}), iterations=moving)
    (text,) = said(one)
    assert re.fullmatch(
        r"is not steady: 10\d instructions an iteration, from iteration 20 on 200", text
    )

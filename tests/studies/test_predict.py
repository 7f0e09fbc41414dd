# SPDX-License-Identifier: GPL-2.0-or-later
"""Predictions of misses of made traces: the cache begins as an undisturbed warm-up leaves it."""

import numpy as np
import pytest
from predict import layout_in, misses_in

from kdelta.counts.arrays import U64
from kdelta.cpus.model import Cache
from kdelta.spec.errors import UserError
from tests.replay.made_kernel import START
from tests.studies.placed import KERNEL, LINE, made, made_trace

ALPHA, BETA, GAMMA, DELTA = range(4)
OWN, INTERRUPTS = 0, 1
CACHE = Cache(4, 1, LINE)
TEN = [ALPHA, BETA] * 10


def at_lines(*lines: int) -> U64:
    return START + LINE * np.array(lines, dtype=np.uint64)


def found(functions: list[int], interrupted_at: list[int], layout: U64) -> tuple[int, ...]:
    contexts = [OWN] * len(functions)
    for index in interrupted_at:
        contexts[index] = INTERRUPTS
    return misses_in(made(made_trace(functions, contexts)), layout, CACHE)["loop"]


def test_what_is_executed_again_and_again_is_there() -> None:
    assert found(TEN, [], at_lines(0, 1, 2, 3)) == (0, 0, 0)
    assert found(TEN, [], at_lines(0, 4, 2, 3)) == (20, 0, 0)


def test_what_is_executed_once_an_interrupt_is_not() -> None:
    # gamma interrupts, and delta is own work that follows: no set is too small for all of it.
    functions = [*TEN, GAMMA, DELTA, *TEN]
    assert found(functions, [20], at_lines(0, 1, 2, 3)) == (1, 1, 0)


def test_what_an_interrupt_puts_out_is_missed() -> None:
    functions = [*TEN, GAMMA, DELTA, *TEN]
    assert found(functions, [20], at_lines(0, 1, 4, 5)) == (3, 1, 0)


def test_a_region_begins_after_its_end() -> None:
    # delta puts beta out; the warm-up ends as the region does, so that beta misses at its begin.
    functions = [*TEN, GAMMA, *[ALPHA, DELTA] * 4]
    assert found(functions, [20], at_lines(0, 1, 2, 5)) == (2, 1, 0)


def test_work_of_others_alone_begins_as_it_ends() -> None:
    assert found([GAMMA, GAMMA], [0, 1], at_lines(0, 1, 2, 3)) == (0, 0, 0)


def test_nothing_is_known_of_a_kernel_that_was_not_built_here() -> None:
    with pytest.raises(UserError, match="where made has its functions"):
        layout_in(made(made_trace([ALPHA], [OWN])), KERNEL)

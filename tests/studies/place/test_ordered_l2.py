# SPDX-License-Identifier: GPL-2.0-or-later
"""What orders miss in the L2: of a made kernel, whose misses are counted elsewhere too."""

import msgspec
import numpy as np
import pytest

from kdelta.counts.trace import DATA
from kdelta.cpus.model import CPU, Cache
from kdelta.measures.cycles.placement import PlacedKernel, costs, drawn
from kdelta.replay.layouts import as_linked
from kdelta.replay.order import SHIPPED, PlaceResult, place_in_order
from kdelta.replay.search import WeightedRegion
from kdelta.studies.place.apply import l2_of
from tests.studies.placed import LINE, made, made_trace, small_cpu, with_data

LAYOUTS, SEED = 16, 3
L2 = ("l2", "l2_code", "l2_data")


@pytest.fixture
def cpu() -> CPU:
    """Both first levels hold a line; the L2 has two sets of two."""
    line = Cache(1, 1, LINE)
    return msgspec.structs.replace(small_cpu(), l1i=line, l1d=line, l2=Cache(2, 2, LINE))


def _made() -> PlacedKernel:
    """Of the kernel's four functions two are executed, with data after each; none falls into the
    next one. As shipped both are in the set that the data is in, too.
    """
    trace = with_data(made_trace([0] * 10, [0] * 10))
    items = np.array([0, DATA, 2, DATA | 1], dtype=np.uint32)
    return made(msgspec.structs.replace(trace, items=items))


def _placed(one: PlacedKernel, cpu: CPU, *, further: bool = True) -> PlaceResult:
    return place_in_order(
        one.placement,
        [WeightedRegion(trace) for trace in one.traces],
        cpu,
        seed=SEED,
        evaluations=10,
        layouts=LAYOUTS,
        further=l2_of(one, cpu) if further else None,
    )


def test_all_methods_and_the_ensemble_are_told_in_the_l2(cpu: CPU) -> None:
    one = _made()
    (found,) = _placed(one, cpu).regions
    known = costs(one, cpu, drawn(one, LAYOUTS, SEED), data=True)["loop"]
    for kind in L2:
        misses = known.ensemble.misses[kind] * one.iterations(0)
        assert found.methods[SHIPPED][kind] == known.shipped[kind] * one.iterations(0)
        assert found.ensemble[kind].median == np.median(misses)
        assert found.ensemble[kind].least == misses.min() < misses.max()
        assert all(kind in row for row in found.methods.values())
    assert not {*found.associative} & {*L2}


def test_the_l2_decides_which_order_is_taken(cpu: CPU) -> None:
    """All orders miss alike in a first level of one line: without the L2 nothing is better."""
    one = _made()
    blind, seeing = _placed(one, cpu, further=False), _placed(one, cpu)
    assert blind.method == SHIPPED
    assert seeing.method != SHIPPED
    assert seeing.costs[seeing.method] == min(seeing.costs.values())
    assert seeing.costs[SHIPPED] > blind.costs[SHIPPED]
    (found,) = seeing.regions
    assert found.methods[seeing.method]["l2"] < found.methods[SHIPPED]["l2"]
    assert seeing.judged == ("l1i", "itlb", "l2")
    assert blind.judged == ("l1i", "itlb")
    assert seeing.payers() == ()
    # The part of it that is priced is their sum alone.
    price, insns = cpu.misses["l2"].exposed, one.traces[0].executed_insns(0)
    more = price * found.methods[SHIPPED]["l2"] / (insns * cpu.cycles_per_insn)
    assert seeing.costs[SHIPPED] - blind.costs[SHIPPED] == pytest.approx(more)


def test_a_kernel_without_physical_addresses_has_none(cpu: CPU) -> None:
    one = made(made_trace([0, 2, 1] * 10, [0] * 30))
    assert l2_of(one, cpu) is None


def test_regions_are_told_one_by_one(cpu: CPU) -> None:
    one, said = _made(), list[str]()
    further = l2_of(one, cpu, said.append)
    assert further is not None
    found = further(as_linked(one.placement)[np.newaxis])
    assert said == ["loop: L2"]
    assert {kind: counts.shape for kind, counts in found.items()} == dict.fromkeys(L2, (1, 1))
    assert found["l2"] == found["l2_code"] + found["l2_data"]

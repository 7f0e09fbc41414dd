# SPDX-License-Identifier: GPL-2.0-or-later
"""What an order misses in the L2: of a made kernel, whose misses are counted elsewhere too."""

import msgspec
import numpy as np
import pytest

from kdelta.counts.trace import DATA
from kdelta.cpus.model import CPU, Cache
from kdelta.replay.judge import Case
from kdelta.replay.layouts import ordered
from kdelta.replay.order import SHIPPED, PlaceResult, place
from kdelta.studies.ordered_l2 import l2_of_order
from kdelta.studies.placement import Drawn, PlacedKernel, costs, drawn
from tests.studies.test_placement import LINE, made, made_trace, small_cpu, with_data

LAYOUTS, SEED = 16, 3
L2 = ("l2", "l2_code", "l2_data")


@pytest.fixture
def cpu() -> CPU:
    """Both first levels hold a line; the L2 has two sets of two."""
    line = Cache(1, 1, LINE)
    return msgspec.structs.replace(small_cpu(), l1i=line, l1d=line, l2=Cache(2, 2, LINE))


def _made() -> PlacedKernel:
    """Of the kernel's four functions two are executed, with data after each; none falls into the
    next one.
    """
    trace = with_data(made_trace([0] * 10, [0] * 10))
    items = np.array([0, DATA, 2, DATA | 1], dtype=np.uint32)
    return made(msgspec.structs.replace(trace, items=items))


def _result(one: PlacedKernel, cpu: CPU) -> PlaceResult:
    cases = [Case(trace) for trace in one.traces]
    return place(one.placement, cases, cpu, seed=SEED, evaluations=0, layouts=LAYOUTS)


def test_an_order_the_shipped_layout_and_an_ensemble(cpu: CPU) -> None:
    one = _made()
    result = msgspec.structs.replace(_result(one, cpu), method="made", order=("alpha", "gamma"))
    ensemble = costs(one, cpu, drawn(one, LAYOUTS, SEED), data=True)["loop"]
    layout = ordered(one.placement, result.order)[0][np.newaxis, one.executed]
    order = costs(one, cpu, Drawn(layout, (1,)), data=True)["loop"].ensemble.misses
    found = l2_of_order(one, result, cpu, LAYOUTS)["loop"]
    assert tuple(found) == L2
    for kind, row in found.items():
        assert row.shipped == ensemble.shipped[kind]
        assert row.predicted == order[kind][0]
        assert row.median == np.median(ensemble.ensemble.misses[kind])
        assert row.best == ensemble.ensemble.misses[kind].min()
        assert row.methods == {SHIPPED: row.shipped, "made": row.predicted}
    assert found["l2"].shipped != found["l2"].predicted
    assert found["l2"].best < found["l2"].median


def test_where_nothing_is_better_the_order_is_the_shipped_layout(cpu: CPU) -> None:
    one = _made()
    result = msgspec.structs.replace(_result(one, cpu), method=SHIPPED, order=())
    found = l2_of_order(one, result, cpu, LAYOUTS)["loop"]
    assert [found[kind].predicted for kind in L2] == [found[kind].shipped for kind in L2]


def test_a_region_without_physical_addresses_has_none(cpu: CPU) -> None:
    one = made(made_trace([0, 2, 1] * 10, [0] * 30))
    said: list[str] = []
    assert l2_of_order(one, _result(one, cpu), cpu, LAYOUTS, said.append) == {}
    assert said == []

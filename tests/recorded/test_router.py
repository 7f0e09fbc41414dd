# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/router keeps of the study of a router holds what its text says."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from scripts.proofs.router import ALIGNMENTS, CHANGES, OPERATIONS, Record, tables
from scripts.proofs.router_gate import ALL, steps
from scripts.proofs.router_gate import Record as GateRecord

CASE = Path(__file__).parents[2] / "docs/cases/router"
NOT_BUILT = 0.03
"""How far off an alignment may be that was predicted before anything was built, as a fraction."""


@pytest.fixture(scope="module")
def record() -> Record:
    return msgspec.json.decode((CASE / "router.json").read_bytes(), type=Record)


@pytest.fixture(scope="module")
def gate() -> GateRecord:
    return msgspec.json.decode((CASE / "gate.json").read_bytes(), type=GateRecord)


def test_the_table_has_all_kernels_and_regions(record: Record) -> None:
    found = [(one.alignment, one.change, one.region) for one in record.cells]
    wanted = [
        (size, change, name) for size in ALIGNMENTS for change in CHANGES for name in OPERATIONS
    ]
    assert sorted(found) == sorted(wanted)
    assert (CASE / "tables.txt").read_text() == tables(record)


def test_what_was_predicted_was_measured(record: Record) -> None:
    for cell in record.cells:
        assert cell.predicted == pytest.approx(cell.measured, rel=0.01), cell
        if cell.aligned is not None:
            assert cell.aligned == pytest.approx(cell.measured, rel=NOT_BUILT), cell
    assert sum(cell.aligned is not None for cell in record.cells) == 2 * len(OPERATIONS)


def test_no_step_changes_the_path_and_each_is_placement_at_most(record: Record) -> None:
    changes = [one for one in record.steps if one.other.startswith(f"{one.base}, ")]
    assert len(changes) == 2 * len(ALIGNMENTS) * len(OPERATIONS)
    for step in record.steps:
        assert step.path == "same", step
        assert step.insns[0] <= 0 <= step.insns[1], step
    for step in changes:
        assert step.code == "same"
        assert {step.cycles, step.by_lru} <= {"same", "placement only"}
    assert sum(one.cycles != one.by_lru for one in record.steps) == 1
    moved = Counter(one.cycles for one in changes if one.other.endswith("PCRYPT"))
    assert moved == {"placement only": 8, "same": 1}
    assert {one.cycles for one in changes if one.other.endswith("chips")} == {"same"}


def test_an_option_that_no_packet_meets_helps_or_hurts_by_alignment(record: Record) -> None:
    def shipped(base: str) -> tuple[float, float]:
        (found,) = [
            one.shipped
            for one in record.steps
            if (one.base, one.other, one.region) == (base, f"{base}, PCRYPT", "udp-1400b")
        ]
        return found

    assert min(shipped("not aligned")) > 0.01
    assert max(shipped("aligned to 32")) < -0.005
    assert min(shipped("aligned to 64")) > 0.005


def test_the_order_that_was_found_is_what_it_was_predicted_to_be(record: Record) -> None:
    assert record.placed.keys() == set(OPERATIONS)
    for shipped, predicted, measured in record.placed.values():
        assert measured == pytest.approx(predicted, rel=0.01)
        assert measured < 0.6 * shipped


def test_each_random_order_is_there(record: Record) -> None:
    for spread in (record.spread, record.spread_by_lru):
        assert {len(draws) for draws in spread.values()} == {128}
        assert spread.keys() == set(OPERATIONS)
    for name, draws in record.spread_by_lru.items():
        assert min(draws) < record.shipped_by_lru[name] < max(draws)
        assert record.placed[name][2] < min(draws)


def test_all_orders_of_planting_are_told(gate: GateRecord) -> None:
    told = {(frozenset(one.before), one.planted) for one in gate.judgements}
    assert told == {(before, plant.name) for before, plant in steps()}
    assert len(told) == len(gate.judgements) == len(ALL) * 2 ** (len(ALL) - 1)
    assert [fault for one in gate.judgements for fault in one.faults()] == []

# SPDX-License-Identifier: GPL-2.0-or-later
"""No kernel that docs/cases/alike compared with itself is faster, slower or mixed."""

from pathlib import Path

import alike
import msgspec
import pytest
from alike import FOLDER, MOST_BYTES, SEED, Pair, Record, Row, drawn, ignored, records, summary
from telling import a_row_a_line

from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.parameters import split_parameters
from kdelta.workloads.catalog import find_workload


@pytest.mark.parametrize("one", records(FOLDER), ids=lambda one: str(one.pair.number))
def test_record_of_equal_paths_has_no_firm_word(one: Record) -> None:
    assert summary(one).count("; ") == len(one.firm) == 0, summary(one)
    assert one.pair == drawn(one.pair.number, one.seed)
    usual = [each.name for each in find_workload("syscalls").operations if not each.on_request]
    assert {row.operation for row in one.rows} == set(usual)


def test_faster_slower_and_mixed_are_firm(tmp_path: Path) -> None:
    words = ("same", "slower", "faster", "mixed", "unresolved", "not steady")
    rows = tuple(Row(f"op-{word}", word, "", 1.0, 0.0, 0.0, 0.0, (3, 3)) for word in words)
    one = Record(drawn(0, SEED), SEED, "7.2", (), rows)
    (tmp_path / "pair-00.json").write_bytes(a_row_a_line(one))
    (read,) = records(tmp_path)
    assert read == one
    assert [row.word for row in read.firm] == ["slower", "faster", "mixed"]


def test_pairs_are_the_same_for_a_seed_and_cover_kernels_and_kinds() -> None:
    pairs = [drawn(number, SEED) for number in range(alike.PAIRS)]
    assert pairs == [drawn(number, SEED) for number in range(alike.PAIRS)]
    assert pairs != [drawn(number, SEED + 1) for number in range(alike.PAIRS)]
    assert {one.kind for one in pairs} == {"ignored", "word", "mem", "link"}
    for one in pairs:
        base, other = map(parse_kernel_spec, one.specs())
        assert base != other
        assert msgspec.json.decode(msgspec.json.encode(one), type=Pair) == one


@pytest.mark.parametrize("length", [1, 2, 11, 12, MOST_BYTES])
def test_ignored_parameter_has_its_length_and_is_one_word(length: int) -> None:
    (word,) = split_parameters(ignored(length))
    assert len(word) == length
    assert "." in word.partition("=")[0]

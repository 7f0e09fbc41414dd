# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs become boots, and boots pairs; what does not belong together is refused."""

import contextlib
import math
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.measures.clock.boots import EQUAL, TimedKernels, must_follow, paired, read_folder
from kdelta.measures.clock.results import BootFacts
from kdelta.spec.errors import UserError
from tests.measures.clock.made_runs import FACTS, content, write_boots


def of(tmp_path: Path, base: list[float], other: list[float], **facts: Any) -> TimedKernels:
    a = write_boots(tmp_path / "A", *({"stat": ns} for ns in base))
    b = write_boots(tmp_path / "B", *({"stat": ns} for ns in other), first=3600, **facts)
    return paired(read_folder(a), read_folder(b))


def test_boots_are_paired_in_the_order_of_time(tmp_path: Path) -> None:
    timed = of(tmp_path, [100.0, 200.0, 400.0], [110.0, 180.0])
    (stat,) = timed.differences().values()
    assert stat == pytest.approx((math.log(1.1), math.log(0.9)))
    assert timed.alone == (1, 0)


def test_missing_boot_costs_its_own_pair_alone(tmp_path: Path) -> None:
    of(tmp_path, [100.0, 200.0, 400.0], [110.0, 220.0, 440.0])
    (tmp_path / "B" / "0.json").unlink()
    timed = paired(read_folder(tmp_path / "A"), read_folder(tmp_path / "B"))
    assert [(one.base.ns(), one.other.ns()) for one in timed.pairs] == [
        ({"stat": 200.0}, {"stat": 220.0}),
        ({"stat": 400.0}, {"stat": 440.0}),
    ]
    assert timed.alone == (1, 0)


def test_all_boots_of_one_kernel_before_those_of_the_other_are_one_pair(tmp_path: Path) -> None:
    a = write_boots(tmp_path / "A", *({"stat": 1.0},) * 5)
    b = write_boots(tmp_path / "B", *({"stat": 1.0},) * 5, first=10**6)
    timed = paired(read_folder(a), read_folder(b))
    assert (len(timed.pairs), timed.alone) == (1, (4, 4))


def test_runs_of_one_boot_are_one_figure(tmp_path: Path) -> None:
    a = write_boots(tmp_path / "A", {"stat": 100.0}, {"stat": 300.0}, {"stat": 120.0}, boot_id="x")
    b = write_boots(tmp_path / "B", {"stat": 60.0})
    timed = paired(read_folder(a), read_folder(b))
    assert timed.differences() == {"stat": pytest.approx((math.log(0.5),))}


def test_a_fixed_order_is_seen(tmp_path: Path) -> None:
    assert of(tmp_path, [1.0] * 4, [1.0] * 4).is_of_fixed_order
    turned = write_boots(tmp_path / "C", *({"stat": 1.0},) * 4, first=3600)
    (turned / "2.json").write_bytes(
        content({"stat": 1.0}, boot_id="C-2", when=FACTS["when"] + 14000)
    )
    assert not paired(read_folder(tmp_path / "A"), read_folder(turned)).is_of_fixed_order


@pytest.mark.parametrize("name", EQUAL)
def test_runs_that_should_be_alike_and_are_not(tmp_path: Path, name: str) -> None:
    assert name in BootFacts.__struct_fields__
    value: Any = 7 if name in {"cpu", "file_system"} else "unlike"
    with pytest.raises(UserError, match=f"is from {EQUAL[name]} than") as caught:
        of(tmp_path, [1.0], [1.0], **{name: value})
    assert "B/0.json" in caught.value.message


def test_a_folder_has_one_kernel(tmp_path: Path) -> None:
    folder = write_boots(tmp_path / "A", {"stat": 1.0})
    (folder / "other.json").write_bytes(content({"stat": 1.0}, build_id="b" * 40, boot_id="y"))
    with pytest.raises(UserError, match="from another kernel than") as caught:
        read_folder(folder)
    assert "build id" in caught.value.message


def test_a_boot_has_one_kernel(tmp_path: Path) -> None:
    a, b = (write_boots(tmp_path / name, {"stat": 1.0}, boot_id="same") for name in "AB")
    with pytest.raises(UserError, match="are from one boot"):
        paired(read_folder(a), read_folder(b))


def test_boots_that_overlap_in_time_have_no_order(tmp_path: Path) -> None:
    a = write_boots(tmp_path / "A", *({"stat": 1.0},) * 3)
    b = write_boots(tmp_path / "B", *({"stat": 1.0},) * 3, first=3600)
    must_follow(read_folder(a), read_folder(b))
    (b / "1.json").write_bytes(
        content({"stat": 1.0}, boot_id="B-1", when=FACTS["when"] + 10800, uptime="3700.5 1.0")
    )
    with pytest.raises(UserError, match=r"B/1\.json and .*A/1\.json are from boots that overlap"):
        must_follow(read_folder(a), read_folder(b))


def test_boot_lasts_until_its_last_run_has_ended(tmp_path: Path) -> None:
    a = write_boots(tmp_path / "A", {"stat": 1.0})
    b = read_folder(write_boots(tmp_path / "B", {"stat": 1.0}, first=3600))
    (run,) = read_folder(a)
    for seconds, overlaps in ((3400.0, False), (3600.0, True)):
        base = [msgspec.structs.replace(run, seconds=one) for one in (seconds, 60.0)]
        for runs in (base[:1], base, base[::-1]):
            with (
                pytest.raises(UserError, match="overlap") if overlaps else contextlib.nullcontext()
            ):
                must_follow(runs, b)


def test_boots_of_a_machine_without_a_clock_have_no_order(tmp_path: Path) -> None:
    """Its date is after 2020, and the same at the start of each boot."""
    for name in "AB":
        (tmp_path / name).mkdir()
        for at in range(3):
            seconds = 60 + 7 * at + (3 if name == "B" else 0)
            one = content(
                {"stat": 1.0},
                boot_id=f"{name}{at}",
                when=FACTS["when"] + seconds,
                uptime=f"{seconds}.00 1.0",
            )
            (tmp_path / name / f"{at}.json").write_bytes(one)
    with pytest.raises(UserError, match="overlap in time") as caught:
        must_follow(*(read_folder(tmp_path / name) for name in "AB"))
    assert "set the date" in caught.value.hint


def test_folders_without_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder"):
        read_folder(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no file"):
        read_folder(tmp_path / "empty")


def test_what_is_no_file_in_a_folder_is_refused(tmp_path: Path) -> None:
    folder = write_boots(tmp_path / "A", {"stat": 1.0})
    os.mkfifo(folder / "pipe")
    with pytest.raises(UserError, match="pipe is not from a bundle"):
        read_folder(folder)

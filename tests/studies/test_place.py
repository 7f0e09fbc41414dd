# SPDX-License-Identifier: GPL-2.0-or-later
"""A better order for a real kernel, and what cannot be asked."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.cli.place import weights_of
from kdelta.cpus.catalog import load_cpu
from kdelta.replay.order_file import read_order
from kdelta.report.place_json import place_json
from kdelta.report.place_model import PlaceReport
from kdelta.report.place_text import place_text
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.place import run_place
from kdelta.studies.requests import PlaceRequest, Silent
from tests.machines.bench import OLD


def _place(folder: Path, **more: object) -> PlaceReport:
    request = PlaceRequest(
        kernel=OLD,
        cpu=load_cpu("zen2"),
        file=folder / "order.txt",
        operations=("open-close",),
        evaluations=200,
        layouts=8,
    )
    request = msgspec.structs.replace(request, **more)
    with Store.open(folder / "store") as store:
        return asyncio.run(run_place(request, store, Silent()))


def test_what_there_is_not_is_refused_before_anything_is_obtained(
    tmp_path: Path, own_cache: Path
) -> None:
    with pytest.raises(UserError, match="nonsense"):
        _place(tmp_path, workloads=("nonsense",))
    with pytest.raises(UserError, match="getpid") as raised:
        _place(tmp_path, operations=("getpid", "open-close"))
    assert "getppid" in raised.value.hint
    with pytest.raises(UserError, match="cannot be written to"):
        _place(tmp_path, file=tmp_path / "nowhere" / "order.txt")
    with pytest.raises(UserError, match="cannot be written to"):
        _place(tmp_path, file=tmp_path)
    with pytest.raises(UserError, match="is built already"):
        _place(tmp_path, apply=True)
    assert not (own_cache / "kernels").exists()


def test_weights() -> None:
    assert weights_of(["open-close=3", "aes/cbc=0", "open-close=2.5"]) == {
        "open-close": 2.5,
        "aes/cbc": 0,
    }
    for word in ("open-close", "=3", "open-close=", "open-close=-1", "a=nan", "a=inf"):
        with pytest.raises(UserError, match="no weight"):
            weights_of([word])


@pytest.mark.guest
@pytest.mark.network
def test_an_order_of_a_real_kernel_is_better_by_prediction_and_is_written(tmp_path: Path) -> None:
    report = _place(tmp_path)
    (found,) = report.regions
    misses = found.misses["l1i"]
    assert misses.bound is not None
    assert misses.bound <= misses.predicted < misses.best <= misses.median
    assert misses.predicted < misses.shipped / 2
    assert report.payers() == ()
    assert misses.methods[report.method] == misses.predicted
    assert report.costs[report.method] == min(report.costs.values())
    assert found.predicted.high < found.shipped.high
    assert found.predicted.low == found.shipped.low
    assert len(read_order(tmp_path / "order.txt").names) == report.functions > 50
    assert "open-close" in place_text(report)
    assert '"kdelta.place/2"' in place_json(report, "0")

    with pytest.raises(UserError, match="no operation that was run is called 'getppid'"):
        _place(tmp_path, weights={"getppid": 2.0})


@pytest.mark.guest
@pytest.mark.network
def test_a_run_that_failed_writes_no_order(tmp_path: Path) -> None:
    lab = PlaceRequest(kernel="", cpu=load_cpu("zen2"), file=tmp_path).lab
    machine = msgspec.structs.replace(lab.machine, append="init=/none rdinit=/none")
    report = _place(tmp_path, lab=msgspec.structs.replace(lab, machine=machine))
    assert report.regions == ()
    assert not (tmp_path / "order.txt").exists()
    assert "failed runs" in place_text(report)

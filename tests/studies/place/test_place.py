# SPDX-License-Identifier: GPL-2.0-or-later
"""A better order for a real kernel, and what cannot be asked."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.cli.reading import weights_of
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import Cache
from kdelta.kernels.kbuild.order_file import read_order
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.replay.order import SHIPPED
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.documents import document_text
from kdelta.studies.place.apply import NOT_SEARCHED
from kdelta.studies.place.model import PlaceReport
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place
from tests.machines.bench import OLD
from tests.report.shown import shown, unwrapped


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
        return asyncio.run(run_place(request, Lab(store, Silent())))


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
    with pytest.raises(UserError, match="no operation that is run is called 'getppid'"):
        _place(tmp_path, weights={"getppid": 2.0})
    with pytest.raises(UserError, match="is called 'open-close'") as raised:
        _place(tmp_path, workloads=("syscalls", "aes"), operations=(), weights={"open-close": 2.0})
    assert raised.value.hint == "there is: syscalls/open-close"
    with pytest.raises(UserError, match="all weights are 0"):
        _place(tmp_path, weights={"open-close": 0.0})
    small = msgspec.structs.replace(load_cpu("zen2"), l1d=Cache(64, 4, 32))
    with pytest.raises(UserError, match="lines of 32 bytes"):
        _place(tmp_path, cpu=small, lab=LabRequest(perturbations=1, data_lines=True))
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
@pytest.mark.slow
def test_an_order_of_a_real_kernel_is_better_by_prediction_and_is_written(tmp_path: Path) -> None:
    report = _place(tmp_path)
    (found,) = report.regions
    misses = found.misses["l1i"]
    assert misses.predicted < misses.best <= misses.median
    assert misses.predicted < misses.as_linked / 2
    assert report.payers() == ()
    assert misses.methods[report.method] == misses.predicted
    assert report.costs[report.method] == min(report.costs.values())
    assert found.predicted.high < found.as_linked.high
    assert found.predicted.low == found.as_linked.low
    assert len(read_order(tmp_path / "order.txt")) == report.functions > 50
    assert "open-close" in shown("place", report)
    assert '"kdelta.place/3"' in document_text(report, "0")


@pytest.mark.guest
@pytest.mark.slow
def test_a_run_that_failed_writes_no_order(tmp_path: Path) -> None:
    lab = PlaceRequest(kernel="", cpu=load_cpu("zen2"), file=tmp_path).lab
    machine = msgspec.structs.replace(lab.machine, append="init=/none rdinit=/none")
    report = _place(tmp_path, lab=msgspec.structs.replace(lab, machine=machine))
    assert report.regions == ()
    assert not (tmp_path / "order.txt").exists()
    assert ", perturbation 0: " in shown("place", report)


@pytest.mark.guest
@pytest.mark.slow
def test_with_data_the_l2_counts_where_a_method_is_taken(tmp_path: Path) -> None:
    code, data = (
        _place(
            tmp_path,
            operations=("mmap-touch-4k",),
            evaluations=50,
            layouts=4,
            lab=LabRequest(perturbations=1, data_lines=with_data),
        )
        for with_data in (False, True)
    )
    (plain,), (full,) = code.regions, data.regions
    for kind, found in plain.misses.items():
        assert full.misses[kind].methods == found.methods
        assert full.misses[kind].median == found.median
    assert full.misses.keys() - plain.misses.keys() == {"l2", "l2_code", "l2_data"}
    assert data.costs[SHIPPED] > code.costs[SHIPPED]
    whole, of_code, of_data = (full.misses[kind] for kind in ("l2", "l2_code", "l2_data"))
    assert whole.as_linked == pytest.approx(of_code.as_linked + of_data.as_linked)
    assert whole.as_linked > 0
    assert whole.associative is None
    assert full.as_linked.high > plain.as_linked.high
    assert data.costs[data.method] == min(data.costs.values())
    text = unwrapped("place", data)
    assert "L2 misses of code and data an iteration" in text
    assert "those of the L2 count where one of the methods is taken" in text
    assert NOT_SEARCHED not in code.notes

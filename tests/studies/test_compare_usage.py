# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison refuses before anything is obtained."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus import CPU, load_cpu
from kdelta.cpus.model import Cache
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.compare import run_compare
from kdelta.studies.requests import CompareRequest, LabRequest, Silent

SHORT = msgspec.structs.replace(load_cpu("zen3"), l1d=Cache(64, 4, 32))
MIXED = msgspec.structs.replace(load_cpu("zen3"), l2=Cache(1024, 8, 128))


@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        ((), "accesses to data are recorded for the L2 of a CPU, and none is named"),
        ((SHORT,), "lines of 32 bytes"),
        ((load_cpu("zen3"), MIXED), "lines of 64 and 128 bytes"),
    ],
)
def test_data_that_nothing_can_be_made_of(
    cpus: tuple[CPU, ...], words: str, tmp_path: Path, own_cache: Path
) -> None:
    request = CompareRequest(
        base="deb:a", others=("deb:b",), cpus=cpus, lab=LabRequest(data_lines=True)
    )
    with Store.open(tmp_path) as store, pytest.raises(UserError, match=words):
        asyncio.run(run_compare(request, store, Silent()))
    assert not (own_cache / "kernels").exists()

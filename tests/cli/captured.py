# SPDX-License-Identifier: GPL-2.0-or-later
"""What a command asks of the study of profiles."""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.counts.model import RunCounts
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store

Captured = pytest.CaptureFixture[str]

MACHINE: dict[str, str | int | float] = {
    "name": "tcg",
    "qemu": "7.2.22",
    "cpu": "qemu64,+ssse3",
    "memory_mib": 1024,
    "append": "",
}


def kdelta(*arguments: str) -> int:
    return cli.ended(arguments)


def stored(
    folder: Path,
    counts: RunCounts | None,
    *,
    status: RunStatus = RunStatus.OK,
    workload: str = "syscalls",
    perturbation: int = 0,
    **machine: str | int,
) -> Run:
    """A run in the store of that folder."""
    new = NewRun(
        key="key",
        kernel_identity="a" * 64,
        kernel_spec="deb:linux-image-a",
        kernel_release="6.1.0-a",
        machine={**MACHINE, **machine},
        workload=workload,
        workload_identity="b" * 64,
        perturbation=perturbation,
    )
    with Store.open(folder) as store:
        return store.finish_run(store.start_run(new), status, counts=counts, detail="why not")


def failed(arguments: list[str], words: list[str], capsys: Captured, code: int = 2) -> None:
    assert kdelta(*arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    for word in words:
        assert word in shown.err

# SPDX-License-Identifier: GPL-2.0-or-later
"""What a command asks of the study of profiles."""

import re
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


def without_head(text: str) -> str:
    """A report without its first line, which says which one it is and when it was made."""
    head, _, rest = text.partition("\n")
    assert re.fullmatch(r"(study|run) [0-9a-f]{12}, \d{4}-\d\d-\d\d [\d:]{8} UTC", head)
    return rest


def failed(arguments: list[str], words: list[str], capsys: Captured, code: int = 2) -> None:
    assert kdelta(*arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    for word in words:
        assert word in shown.err

# SPDX-License-Identifier: GPL-2.0-or-later
"""A series that is killed, or has a build that failed, goes on where it was."""

import asyncio
import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from kdelta.host.dirs import cache_dir, data_dir
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.store.store import Store
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.study import run_series
from tests.studies.series.patches import (
    Queue,
    SeriesLab,
    found,
    one_that_fails,
    run,
)

pytestmark = pytest.mark.build

MOMENTS = 50
NEVER = 10**6


class Doomed:
    """A study in a process of its own, which is killed when it starts a program for the n-th time;
    what it says goes to a file.
    """

    def __init__(self, request: SeriesRequest, said: Path) -> None:
        self.request = request
        self.said = said

    def run(self, moment: int) -> bool:
        """Whether it came to its end."""
        child = os.fork()
        if not child:
            self._study(moment)
        return os.waitpid(child, 0)[1] == 0

    def _study(self, moment: int) -> NoReturn:
        os.setsid()
        left = [moment]
        real, keep, log_file = subprocess.Popen, Lab._keep, self._log

        def start(*words: Any, **options: Any) -> Any:
            left[0] -= 1
            found = real(*words, **options)
            if not left[0]:
                os.killpg(0, signal.SIGKILL)
            return found

        def kept_failure(lab: Lab, failure: NoKernel) -> None:
            keep(lab, failure)
            log_file(f"failed {failure.identity}")

        subprocess.Popen = start  # type: ignore[assignment, misc]
        Lab._keep = kept_failure  # type: ignore[assignment]
        log = Silent()
        log.log = log_file  # type: ignore[method-assign]
        try:
            with Store.open(data_dir()) as store:
                asyncio.run(run_series(self.request, SeriesLab(store, progress=log)))
        except BaseException as error:  # noqa: BLE001  (it must not return into the test's process)
            log_file(f"error {error!r}")
            os._exit(1)
        os._exit(0)

    def _log(self, line: str) -> None:
        with self.said.open("a") as file:
            file.write(f"{line}\n")


@pytest.mark.slow
def test_a_build_that_failed_is_not_tried_again_unless_told_to(
    queue: Queue, lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = one_that_fails(queue)
    asked: list[str] = []
    first = run(request, lab)
    assert [one.status for one in first.builds].count("build-failed") == 1
    real = Lab.kernel

    def kernel(self: Lab, spec: str) -> Kernel | NoKernel:
        asked.append(spec)
        return real(self, spec)

    monkeypatch.setattr(Lab, "kernel", kernel)
    again = run(request, lab)
    assert found(again) == found(first)
    assert len(asked) == len(first.builds) - 1
    asked.clear()
    run(
        msgspec.structs.replace(request, lab=msgspec.structs.replace(request.lab, rerun=True)),
        lab,
    )
    assert len(asked) == len(first.builds)
    assert lab.measured


@pytest.mark.slow
def test_killed_at_any_moment_no_finished_build_is_repeated(
    queue: Queue, lab: SeriesLab, tmp_path: Path
) -> None:
    request = msgspec.structs.replace(one_that_fails(queue), rule_out=False)
    said = tmp_path / "said"
    doomed = Doomed(request, said)
    chance = random.Random(5)
    kills = 0
    while kills < MOMENTS:
        kills += not doomed.run(chance.randint(1, 90))
    assert doomed.run(NEVER)
    report = run(request, lab)
    assert found(report) == {"0003-pages-two": {"fault": 9}}
    assert [group.patches for group in report.groups] == [("0001-lock-bad", "0002-lock-good")]
    lines = said.read_text().splitlines()
    assert not [line for line in lines if line.startswith("error")]
    finished = [line.split(" in ")[0] for line in lines if line.startswith(("built", "failed"))]
    assert len(finished) == len(set(finished)) == 4
    assert not list(cache_dir("work").iterdir())
    assert lab.measured

# SPDX-License-Identifier: GPL-2.0-or-later
"""What two programs lacked in a guest is reported of each, as by `kdelta run`."""

from pathlib import Path

import pytest

from kdelta.counts.model import RunCounts
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.lab.lab import RunResult
from kdelta.lab.request import Program
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.against.model import ProgramSide
from kdelta.studies.against.study import AgainstRequest, _lacked, _Ran, _report
from kdelta.studies.run.request import RunRequest
from tests.report.example_against import against_report

RESOLVING = "curl: Could not resolve host: a"


def ran(store: Store, printed: str) -> _Ran:
    new = NewRun("k", "i" * 64, "deb:a", "6.1", {}, "run env", "w" * 64, 0)
    run = store.finish_run(
        store.start_run(new), RunStatus.OK, attachments={"stderr": printed.encode()}
    )
    return _Ran((RunResult(run, RunCounts(())),))


@pytest.mark.parametrize(
    ("printed", "begin"),
    [
        ((RESOLVING, ""), ["env ./old: the program printed"]),
        (("", f"{RESOLVING}\n"), ["env ./new: the program printed"]),
        ((RESOLVING, RESOLVING), ["the program printed"]),
        (("all is well", ""), []),
    ],
)
def test_network_that_a_program_wanted_is_warned_of(
    tmp_path: Path, printed: tuple[str, str], begin: list[str]
) -> None:
    side = against_report().old.side
    old, new = (ProgramSide(("env", name), side) for name in ("./old", "./new"))
    with Store.open(tmp_path) as store:
        both = ran(store, printed[0]), ran(store, printed[1])
        found = list(_lacked(old, new, both, store))
    assert [text.partition(' "')[0] for text in found] == begin
    assert all("a guest has no network" in text for text in found)


def test_report_has_the_warning(tmp_path: Path) -> None:
    old, new = (RunRequest(kernel="deb:a", program=Program(("env", one))) for one in "ab")
    with Store.open(tmp_path) as store:
        both = ran(store, RESOLVING), ran(store, "")
        none = NoKernel("deb:a", RunStatus.BUILD_FAILED, "", "")
        found = _report(AgainstRequest(old=old, new=new), none, both, store).warnings
    assert [text.partition(' "')[0] for text in found] == ["env a: the program printed"]

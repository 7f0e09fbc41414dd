# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on runs of two real kernels, which are made once a session: figures of one run are the
same in every command, and what the store has boots nothing.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kdelta.cli import main as cli
from kdelta.counts.model import RunCounts
from kdelta.host.dirs import data_dir
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.forms import FORMS
from tests.cli.studies import Captured
from tests.machines.bench import NEW, OLD

pytestmark = pytest.mark.guest

OPERATIONS = ("getppid", "chdir")
_CHOSEN = [word for name in OPERATIONS for word in ("-o", name)]
_ONE_RUN = ("--perturb", "1", "--skip-states")
COMPARED = ("compare", OLD, NEW, *_CHOSEN, *_ONE_RUN)
PROFILED = ("profile", OLD, "-o", "getppid", "--calls")


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with runs of two kernels: counted, and with their calls followed.

    The first worker of the session that wants it makes it; the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / "made-runs", shared / "made-runs.done"
    with (shared / "made-runs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            env = {**os.environ, "KDELTA_DATA_DIR": str(folder)}
            for words in (COMPARED, PROFILED):
                argv = [sys.executable, "-m", "kdelta", *words, "-q"]
                subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL)
            done.touch()
    return folder


@pytest.fixture(autouse=True)
def runs(made_runs: Path, own_data: Path) -> Iterator[list[Run]]:
    """The runs, in a store of the test's own; the test makes none."""
    shutil.copytree(made_runs, own_data, dirs_exist_ok=True)
    with Store.open(data_dir()) as store:
        before = store.runs()
    yield before
    with Store.open(data_dir()) as store:
        assert store.runs() == before


def kdelta(capsys: Captured, *words: str, code: int = 0) -> str:
    """Run a command in this process; return its standard output."""
    assert cli.ended(words) == code
    return capsys.readouterr().out


def document(capsys: Captured, *words: str) -> Any:
    """Run a command for its JSON."""
    return json.loads(kdelta(capsys, *words, "--json"))


def operations(capsys: Captured, *words: str) -> Any:
    """Run a comparison for what its JSON has of operations."""
    return document(capsys, *words)["machines"][0]["others"][0]["effects"]["operations"]


class Counted(NamedTuple):
    """A run of the comparison, and its counts."""

    id: str
    counts: RunCounts

    @property
    def mean_insns(self) -> dict[str, float]:
        """The same an iteration."""
        return {
            region.name: self.insns[region.name] / region.iteration_count
            for region in self.counts.regions
        }

    @property
    def insns(self) -> dict[str, int]:
        """The measured tasks' own instructions, by region."""
        return {
            region.name: sum(line.cost.insns for line in region.functions if line.context == "own")
            for region in self.counts.regions
        }


def compared(runs: list[Run]) -> list[Counted]:
    """Return the run of each kernel that the comparison made."""
    chosen = [run for run in runs if run.command.startswith("kdelta compare")]
    chosen.sort(key=lambda run: run.kernel_release.startswith("6.12."))
    with Store.open(data_dir()) as store:
        return [Counted(run.id, store.counts(run)) for run in chosen]


def test_compare_fewer_operations_takes_parts_of_stored_runs(
    runs: list[Run], capsys: Captured
) -> None:
    base, other = compared(runs)
    words = ("compare", OLD, NEW, "-o", "chdir", *_ONE_RUN)
    (row,) = operations(capsys, *words)
    assert row["name"] == "chdir"
    assert row["base"]["value"] == base.mean_insns["chdir"]
    assert row["other"]["value"] == other.mean_insns["chdir"]


def test_compare_stored_runs_has_their_sums(runs: list[Run], capsys: Captured) -> None:
    base, other = compared(runs)
    found = operations(capsys, *COMPARED)
    assert {row["name"]: row["base"]["value"] for row in found} == base.mean_insns
    assert {row["name"]: row["other"]["value"] for row in found} == other.mean_insns
    for row in found:
        difference = other.mean_insns[row["name"]] - base.mean_insns[row["name"]]
        assert difference
        assert row["costs"]["insns"]["effect"]["value"] == pytest.approx(difference)
        assert row["verdict"]["word"] == "unresolved"  # of one run a side


def test_compare_kernel_with_itself_has_no_difference(capsys: Captured) -> None:
    words = ("compare", OLD, OLD, *_CHOSEN, *_ONE_RUN)
    rows = operations(capsys, *words)
    assert [row["costs"]["insns"]["effect"]["value"] for row in rows] == [0, 0]


def test_gate_one_run_a_side_exits_125(capsys: Captured) -> None:
    said = kdelta(capsys, "gate", *COMPARED[1:], code=125)
    assert said.startswith("cannot tell: ")


def test_log_has_the_figures_of_compare(runs: list[Run], capsys: Captured) -> None:
    (series,) = document(capsys, "log", *_CHOSEN)["series"]
    by_kernel = [side.mean_insns for side in compared(runs)]
    for row in series["tracks"]:
        figures = [point["figure"]["value"] for point in row["points"]]
        assert figures == [insns[row["operation"]] for insns in by_kernel]


def test_diff_lines_add_up_to_the_difference(runs: list[Run], capsys: Captured) -> None:
    base, other = compared(runs)
    found = document(capsys, "diff", base.id, other.id, "-o", "chdir")
    added = sum(line["b"] - line["a"] for line in found["lines"])
    assert added == other.insns["chdir"] - base.insns["chdir"]


def test_profile_calls_add_up(runs: list[Run], capsys: Captured) -> None:
    base, _ = compared(runs)
    (region,) = document(capsys, *PROFILED)["regions"]
    whole = sum(line["cost"]["insns"] for line in region["lines"] if line["context"] == "own")
    assert whole == base.insns["getppid"]
    printed = kdelta(capsys, *PROFILED)
    (called,) = (line.split() for line in printed.splitlines() if line.endswith("_sys_getppid"))
    assert int(called[3]) == base.counts.regions[0].iteration_count


@pytest.mark.parametrize("form", FORMS)
def test_report_has_both_kernels_in_each_form(form: str, capsys: Captured) -> None:
    kdelta(capsys, *COMPARED)
    text = kdelta(capsys, "report", "--format", form)
    assert "6.1" in text
    assert "6.12" in text
    assert "chdir" in text


def test_runs_and_show_name_each_run(runs: list[Run], capsys: Captured) -> None:
    listed = kdelta(capsys, "runs")
    for run in runs:
        assert run.id[:8] in listed
        assert run.kernel_release in kdelta(capsys, "show", run.id)

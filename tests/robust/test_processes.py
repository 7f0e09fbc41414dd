# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals at any moment, and two at once: nothing is left over, lost or counted differently."""

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from reading import read_document

from tests.machines.bench import OLD
from tests.robust.lab import (
    Running,
    kdelta,
    processes,
    regions,
    run_words,
    shared_cache,
    snapshots,
    stored,
    wait_until,
)

pytestmark = [pytest.mark.guest, pytest.mark.slow]
Programs = Callable[[str], Path]

_QEMU = "qemu-system"


def _stop_moment(running: Running, moment: str) -> None:
    """Waits until a command is at it."""
    if moment == "download":
        running.wait_for("downloading")
        wait_until(lambda: processes("apt-get"), "apt-get")
    else:
        running.wait_for_guest(resumed=moment == "run")


def test_ctrl_c_during_a_download(own_cache: Path, tmp_path: Path, program: Programs) -> None:
    with Running(tmp_path, *run_words(program("good"))) as running:
        _stop_moment(running, "download")
        running.send(signal.SIGINT)
        ended = running.end()
    assert ended.code == 130
    assert "interrupted" in ended.err
    assert list((own_cache / "kernels").iterdir()) == []
    assert stored() == []


_ENDS = {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}


def test_an_end_during_boot(no_snapshots: Path, tmp_path: Path, program: Programs) -> None:
    for number, code in _ENDS.items():
        with Running(tmp_path, *run_words(program("good"))) as running:
            _stop_moment(running, "boot")
            running.send(number)
            assert running.end().code == code
        assert [path for path in snapshots() if path.suffix != ".partial"] == []
        assert stored() == []
    assert kdelta(*run_words(program("good"))).code == 0
    assert len(snapshots()) == 1
    assert [run.word for run in stored()] == ["ok"]
    _no_work_left(no_snapshots)


def test_an_end_during_a_run(
    no_snapshots: Path, user_cache: Path, tmp_path: Path, program: Programs
) -> None:
    shared_cache(no_snapshots, user_cache, "snapshots")
    words = run_words(program("spins"), "--perturb", "2")
    for number, code in _ENDS.items():
        with Running(tmp_path, *words) as running:
            _stop_moment(running, "run")
            assert stored()[0].word == "started"
            running.send(number)
            assert running.end().code == code
        assert {run.word for run in stored()} == {"interrupted"}
    assert "interrupted" in kdelta("runs").out
    assert "interrupted" in kdelta("show").out
    assert kdelta(*run_words(program("good"))).code == 0
    assert stored()[0].word == "ok"
    _no_work_left(no_snapshots)


def _no_work_left(cache: Path) -> None:
    """What a killed command could not remove, the next one did."""
    assert list((cache / "work").iterdir()) == []


def test_a_stopped_reader_changes_no_count(tmp_path: Path, program: Programs) -> None:
    """While the guest prints to its console and the workload to its output."""
    words = ["run", "--rerun", *run_words(program("prints"))[1:], "a-little"]
    assert kdelta(*words).code == 0
    with Running(tmp_path, *words) as running:
        _stop_moment(running, "run")
        wait_until(_some_guest_prints, "what the guest prints")
        running.send(signal.SIGSTOP)
        # The guest goes on alone, to its end.
        wait_until(lambda: all(_is_over(pid) for pid in processes(_QEMU)), "the guest's end")
        running.send(signal.SIGCONT)
        ended = running.end()
    assert ended.code == 0, ended.err
    second, first = stored()
    assert second.counts_blob == first.counts_blob


def _some_guest_prints() -> bool:
    for pid in processes(_QEMU):
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cwd/console").stat().st_size > 10_000
    return False


def _is_over(pid: int) -> bool:
    """Gone, or a zombie that its stopped parent has not waited for."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_two_at_once_with_nothing_in_the_cache(
    own_cache: Path, tmp_path: Path, program: Programs
) -> None:
    assert own_cache
    words = ["run", "-v", "--json", *run_words(program("good"))[1:]]
    with Running(tmp_path, *words) as one, Running(tmp_path, *words) as two:
        codes = one.process.wait(), two.process.wait()
        ended = one.end(), two.end()
    assert codes == (0, 0)
    said = [line for each in ended for line in each.err.splitlines()]
    assert len([line for line in said if line.startswith("downloading")]) == 1
    assert len([line for line in said if line == "compiling plugin"]) == 1
    assert len([line for line in said if line.startswith("waiting for another kdelta")]) >= 1
    started = [line for line in said if "-accel tcg" in line]
    assert len([line for line in started if "-incoming" not in line]) == 1
    assert regions(ended[0]) == regions(ended[1])
    assert len({run.counts_blob for run in stored()}) == 1


def test_two_profiles_of_one_kernel_at_once_and_one_that_was_killed(
    no_snapshots: Path, user_cache: Path, tmp_path: Path, program: Programs
) -> None:
    shared_cache(no_snapshots, user_cache, "snapshots")
    words = ["profile", "--calls", "--json", "--no-find", OLD, "--", str(program("good"))]
    with Running(tmp_path, *words) as killed:
        _stop_moment(killed, "run")
        killed.send(signal.SIGKILL)
        assert killed.end().code == -signal.SIGKILL
    wait_until(lambda: not processes(_QEMU), "the end of the killed one's guest")
    with Running(tmp_path, *words) as one, Running(tmp_path, *words) as two:
        assert (one.process.wait(), two.process.wait()) == (0, 0)
        ended = one.end(), two.end()
    assert processes(_QEMU) == []
    whole = [run for run in stored() if run.word == "ok"]
    assert {run.word for run in stored()} == {"ok", "interrupted"}
    assert len({run.counts_blob for run in whole}) == 1
    documents = [read_document(each.out) for each in ended]
    assert documents[0].regions == documents[1].regions
    assert documents[0].views == documents[1].views
    assert kdelta("run", "--rerun", *words[3:]).code == 0
    _no_work_left(no_snapshots)

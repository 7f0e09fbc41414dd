# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock in a series: both ends are timed, and the patches that were found to do something."""

from pathlib import Path

import msgspec
import pytest

from kdelta.infer.effects.effects import Word
from kdelta.kernels.kbuild.built import load_built
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.git import GitStore
from kdelta.lab.options import TimedBy
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from kdelta.studies.series.request import SeriesRequest
from tests.studies.fake_clock import FakeClock, set_clock
from tests.studies.series.patches import (
    LOCK,
    Queue,
    SeriesLab,
    checked,
    first_line,
    one_that_fails,
    run,
    usual,
)

pytestmark = pytest.mark.build

TIMED = TimedBy(clock="kvm", most_pairs=5)
MACHINE = MachineOptions(memory_mib=700)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return set_clock(monkeypatch)


def costs(kernel: Kernel) -> tuple[str, ...]:
    """Return what the patches of a kernel's tree say that they cost."""
    built = load_built(kernel.built or "")
    assert built is not None
    files = ("kernel/lock.c", "mm/pages.c")
    store = GitStore(Path(built.folder))
    text = b"".join(store.blob(f"{built.tree}:{name}") or b"" for name in files).decode()
    return tuple(line.split("/* ")[1][:-3] for line in text.splitlines() if "/* cost" in line)


def with_clock(request: SeriesRequest) -> SeriesRequest:
    return msgspec.structs.replace(request, timed=TIMED, lab=LabRequest(machine=MACHINE))


@pytest.mark.slow
def test_patches_that_do_something_and_both_ends_are_timed(
    queue: Queue, lab: SeriesLab, clock: FakeClock
) -> None:
    report = run(with_clock(usual(queue)), lab)
    measured = {row.name: row.measured for row in report.rows if row.measured}
    assert list(measured) == ["0002-lock-one", "0004-pages-two", "0005-lock-three"]
    one, two, three = "cost open 30", "cost fault -20", "cost open 37"
    pairs = [tuple(map(costs, pair)) for pair in clock.timed]
    assert pairs == [
        ((), (one,)),
        ((one,), (one, two)),
        ((one, two), (three, two)),
        ((), (three, two)),
    ]
    assert clock.machines == [MACHINE] * 4
    assert clock.asked[-1].timed == TIMED
    (found,) = measured["0004-pages-two"]
    assert {one.region: one.word for one in found.effects} == {
        "open": Word.SAME,
        "fault": Word.FASTER,
        "empty": Word.SAME,
    }
    (whole,) = report.measured
    assert whole.effects[0].change is not None
    assert whole.effects[0].change.low == pytest.approx(0.37)
    assert "0002-lock-one: 1 pairs of boots" in report.notes
    text = checked(report)
    assert "By times, from without to with all" in text
    assert "0004-pages-two fault 400 360 faster" in " ".join(text.split())


@pytest.mark.slow
def test_a_series_of_one_patch_is_timed_once(
    queue: Queue, lab: SeriesLab, clock: FakeClock
) -> None:
    queue.after("lock: one", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(with_clock(request), lab)
    assert len(clock.timed) == 1
    assert report.measured == report.rows[0].measured != ()
    assert "1 pairs of boots" in report.notes


@pytest.mark.slow
def test_a_group_that_is_not_split_is_timed(queue: Queue, lab: SeriesLab, clock: FakeClock) -> None:
    report = run(with_clock(one_that_fails(queue)), lab)
    (group,) = report.groups
    assert group.patches == ("0001-lock-bad", "0002-lock-good")
    (found,) = group.measured
    assert {one.region: one.word for one in found.effects}["open"] is Word.SLOWER
    assert len(clock.timed) == 3
    assert "group 1 open 200 210 slower" in " ".join(checked(report).split())


@pytest.mark.slow
def test_the_smallest_set_is_timed(queue: Queue, lab: SeriesLab, clock: FakeClock) -> None:
    request = msgspec.structs.replace(usual(queue), minimal=True)
    report = run(with_clock(request), lab)
    assert report.minimal is not None
    assert len(report.minimal.answer.members) == 3
    assert not any(row.measured for row in report.rows)
    # What it leaves out is a comment, so that it is the kernel with all patches.
    assert len(clock.timed) == 1
    assert report.minimal.measured == report.measured != ()
    assert "the smallest set" in checked(report)


@pytest.mark.slow
def test_nothing_is_timed_where_nothing_is_found(
    queue: Queue, lab: SeriesLab, clock: FakeClock
) -> None:
    queue.add("core: comment", "kernel/core.c", first_line(queue, "kernel/core.c"), "/* more */")
    request = SeriesRequest(tree=str(queue.tree), patches=(str(queue.done()),))
    report = run(with_clock(request), lab)
    assert clock.timed == []
    assert report.measured == ()
    assert "times are not known: no patch was found that does something" in report.notes


def test_what_cannot_be_timed_is_refused_before_anything_is_built(
    queue: Queue, lab: SeriesLab, clock: FakeClock
) -> None:
    request = SeriesRequest(tree=str(queue.tree), patches=("nothing",))
    with pytest.raises(UserError, match="are of a clock, and none is named"):
        run(msgspec.structs.replace(request, timed=TimedBy(most_pairs=3)), lab)
    clock.refused = "KVM cannot be used"
    with pytest.raises(UserError, match="KVM cannot be used"):
        run(with_clock(request), lab)
    assert lab.made == []

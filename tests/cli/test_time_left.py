# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a study is, and the estimate of what is left, by a clock that the test moves."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.cli.time_left import StepTimes, StudyTime, elapsed_text, left_text
from kdelta.host.lock import WAITING
from tests.odd_files import ODD


class Clock:
    """A clock that stands still unless it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


NOWHERE = Path("/dev/null/timings.json")


def study_time(tmp_path: Path, known: Mapping[str, float]) -> tuple[StudyTime, Clock]:
    path = tmp_path / "timings.json"
    path.write_bytes(msgspec.json.encode(known))
    clock = Clock()
    return StudyTime(StepTimes(path), clock), clock


def test_a_whole_study_from_the_first_step_to_the_last(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {"boot a": 20, "boot b": 20, "run old": 60})
    lines = [study.text()]
    study.expect("fetch", 2)
    study.expect("boot", 2, at_once=2)
    study.expect("run", 6, at_once=2)
    lines.append(study.text())  # nothing says how long a fetch takes
    study.found("fetch deb:a")
    study.begin("fetch deb:b")
    clock.now += 5
    study.end("fetch deb:b")
    lines.append(study.text())  # of runs nothing is known yet
    for name in ("a", "b"):
        study.begin(f"boot {name}")
    clock.now += 12
    for name in ("a", "b"):
        study.end(f"boot {name}")
    lines.append(study.text())
    for index in range(0, 6, 2):
        study.begin(f"run {index}")
        study.begin(f"run {index + 1}")
        clock.now += 30
        study.end(f"run {index}")
        study.end(f"run {index + 1}")
        lines.append(study.text())  # from now on a run takes 30 s
    assert lines == [
        "",
        "kernels 0 of 2, runs 0 of 6",
        "kernels 2 of 2, runs 0 of 6",
        "kernels 2 of 2, runs 0 of 6",
        "kernels 2 of 2, runs 2 of 6, about 60 s left",
        "kernels 2 of 2, runs 4 of 6, about 30 s left",
        "kernels 2 of 2, runs 6 of 6",
    ]
    assert study.seconds_left() == 0


def test_without_any_basis_there_is_no_estimate_until_a_step_ended(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {})
    study.expect("run", 3)
    study.begin("run a")
    assert study.seconds_left() is None
    clock.now += 8
    study.end("run a")
    assert study.seconds_left() == 16


def test_a_search_says_about_how_many_kernels_and_may_need_fewer(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {"build a": 300})
    study.expect("build", 5, rough=True)
    assert study.text() == "kernels 0 of about 5"
    study.begin("build a")
    clock.now += 100
    study.end("build a")
    study.expect("build", 2, rough=True)
    assert study.text() == "kernels 1 of about 3, about 4 min left"


def test_steps_that_were_not_expected_are_counted_as_well(tmp_path: Path) -> None:
    study, _ = study_time(tmp_path, {})
    study.expect("run", 1)
    for name in ("a", "b"):
        study.found(f"run {name}")
    assert study.counts() == {"runs": (2, 2)}


def test_a_step_that_takes_longer_than_it_should_has_nothing_left(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {"run a": 10})
    study.begin("run a")
    assert study.seconds_left() == 10
    clock.now += 20
    assert study.seconds_left() == 0
    assert study.current() == ("run a", 20)


def test_a_step_that_is_overdue_leaves_no_estimate(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {"run a": 10})
    study.begin("run a")
    clock.now += 21
    assert study.seconds_left() is None
    assert study.text() == "runs 0 of 1"


def test_a_step_that_takes_longer_takes_nothing_from_the_others(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {"run a": 10, "boot a": 60})
    study.begin("run a")
    clock.now += 18
    study.begin("boot a")
    assert study.seconds_left() == 60
    clock.now += 2
    assert study.seconds_left() == 58


def test_a_step_that_waited_for_another_process_says_nothing(tmp_path: Path) -> None:
    study, clock = study_time(tmp_path, {"boot a": 10, "boot b": 10})
    study.expect("boot", 2)
    study.begin("boot a")
    study.doing("boot a", f"{WAITING} (process 7), which is booting it")
    assert study.seconds_left() is None
    clock.now += 500
    study.end("boot a")
    assert study.begin("boot c") is None
    study.doing("boot c", "saves its snapshot")
    clock.now += 20
    study.end("boot c")
    assert study.begin("boot a") == 10
    assert study.begin("boot d") == 20


KINDS = st.sampled_from(["fetch", "build", "boot", "run", "replay"])
EVENTS = st.lists(
    st.tuples(st.sampled_from(["expect", "begin", "end", "found"]), KINDS, st.integers(0, 9)),
    max_size=40,
)


@given(EVENTS, st.lists(st.floats(0, 1000), min_size=40, max_size=40))
def test_left_is_never_negative_and_what_is_done_never_less(
    events: list[tuple[str, str, int]], seconds: list[float]
) -> None:
    clock = Clock()
    study = StudyTime(StepTimes(NOWHERE), clock)
    running: list[str] = []
    before: dict[str, tuple[int, int]] = {}
    for (event, kind, number), passed in zip(events, seconds, strict=False):
        clock.now += passed
        step = f"{kind} {number}"
        if event == "expect":
            study.expect(kind, number, at_once=number)
        elif event == "begin" and step not in running:
            study.begin(step)
            running.append(step)
        elif event == "end" and running:
            study.end(running.pop(0))
        elif event == "found":
            study.found(step)
        left, counts = study.seconds_left(), study.counts()
        assert left is None or left >= 0
        for name, (ended, total) in before.items():
            assert counts[name][0] >= ended
            assert counts[name][1] >= total
        assert all(ended <= total for ended, total in counts.values())
        before = counts


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=9))
def test_when_all_is_done_nothing_is_left(seconds: list[float]) -> None:
    clock = Clock()
    study = StudyTime(StepTimes(NOWHERE), clock)
    study.expect("run", len(seconds))
    for number, passed in enumerate(seconds):
        study.begin(f"run {number}")
        clock.now += passed
        study.end(f"run {number}")
    assert study.seconds_left() == 0
    assert study.text() == f"runs {len(seconds)} of {len(seconds)}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "a few seconds left"),
        (9.9, "a few seconds left"),
        (41, "about 50 s left"),
        (90, "about 90 s left"),
        (96, "about 2 min left"),
        (3599, "about 60 min left"),
        (3 * 3600, "about 3.0 h left"),
    ],
)
def test_what_is_left_in_words(seconds: float, text: str) -> None:
    assert left_text(seconds) == text


def test_what_has_passed_in_words() -> None:
    assert [elapsed_text(one) for one in (0.9, 59.9, 60, 754)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "12 min 34 s",
    ]


def test_timings_are_remembered_by_step(tmp_path: Path) -> None:
    known = {"boot a": 10, "boot b": 20, "run a": 1}
    study, clock = study_time(tmp_path, known)
    assert study.begin("boot a") == 10
    assert study.begin("boot c") is None
    assert study.begin("fetch") is None
    clock.now += 100
    assert study.end("fetch") == 100
    assert study.end("fetch") == 0
    times = StepTimes(tmp_path / "timings.json")
    times.note("fetch", 100)
    times.note("fetch", 0.1)  # at once, so there was nothing to do
    times.save()
    assert StepTimes(tmp_path / "timings.json").of("fetch") == 100


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"a": "b"}'])
def test_damaged_timings_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "timings.json"
    path.write_bytes(content)
    assert StepTimes(path).of("boot a") is None


@pytest.mark.parametrize("kind", ODD)
def test_timings_that_are_no_file_are_none(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "timings"
    ODD[kind](path)
    assert StepTimes(path).of("run a") is None
    StepTimes(path).save()


def test_timings_that_cannot_be_kept_are_no_error() -> None:
    StepTimes(Path("/proc/kdelta/timings.json")).save()

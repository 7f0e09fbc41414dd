# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bundle's file says, and files that say nothing."""

from pathlib import Path

import pytest

from kdelta.measures.clock.results import parse_run, read_run
from kdelta.spec.errors import UserError
from tests.measures.clock.made_runs import content, region


def test_figure_is_the_median_of_batches() -> None:
    found = parse_run(content({"stat": 250.0, "getppid": 80.0}), "1.json")
    assert found.ns == {"stat": 250.0, "getppid": 80.0}
    assert found.facts.kernel == ("a" * 40, "quiet")
    assert found.jumped == ()


def test_region_of_one_sample_is_its_mean_without_reading_the_clock() -> None:
    once = {"samples": [], "ticks": 3_000_030, "ns": 1_000_010, "iterations": 1}
    whole = region("command", 0, **once)
    found = parse_run(content({"stat": 1000.0}, whole), "1.json")
    assert found.ns["command"] == pytest.approx(1_000_000, rel=1e-4)


def test_region_in_which_the_clock_jumped_is_left_out() -> None:
    rows = {f"op{at}": 1000.0 for at in range(20)}
    far = region("late", 1000.0)
    found = parse_run(content(rows, far | {"ns": far["ns"] + 40_000_000}), "1.json")
    assert found.jumped == ("late",)
    assert set(found.ns) == set(rows)


def test_short_region_does_not_say_how_long_ticks_are() -> None:
    short = region("short", 1.0, ns=1000, ticks=3300, samples=[[3200, 300]])
    found = parse_run(content({"command": 10_000.0}, short), "1.json")
    assert set(found.ns) == {"command", "short"}
    assert found.ns["command"] == pytest.approx(10_000, rel=1e-3)


def test_counters_are_scaled_to_all_of_the_region() -> None:
    counted = {"user_instructions": [3000, 1000, 1000], "kernel_instructions": [9000, 1000, 500]}
    found = parse_run(content({}, region("stat", 100.0, counters=counted)), "1.json")
    assert found.counters["stat"] == {"user_instructions": 10.0, "kernel_instructions": 60.0}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda _: b"", "is not from a bundle"),
        (lambda _: b"kernel panic\n", "is not from a bundle"),
        (lambda text: text[:-40], "is cut off or damaged"),
        (lambda text: text.replace(b'"stat"', b'"\xe9"'), "is cut off or damaged"),
        (lambda text: text[: len(text) // 2], "is cut off or damaged"),
        (lambda text: text.replace(b'"iterations":300', b'"iterations":400'), "was changed"),
        (lambda text: text.replace(b"6.12.0", b"6.12.1"), "was changed"),
        (lambda text: text[: text.index(b"\n") + 1] + text[text.rindex(b"\n", 0, -1) + 1 :], "was"),
    ],
)
def test_damaged_file_is_refused(damage: object, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        parse_run(damage(content({"stat": 250.0})), "A/1.json")  # type: ignore[operator]
    assert caught.value.message.startswith("A/1.json")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (256, "failed with exit code 1"),
        (139, "was ended by signal 11"),
        (-1, "took longer than it may"),
    ],
)
def test_run_that_failed_is_refused(status: int, words: str) -> None:
    with pytest.raises(UserError, match=f"1.json: the program {words}"):
        parse_run(content({"getppid": 100.0}, status=status), "1.json")


def test_run_while_a_cpu_goes_offline_is_refused() -> None:
    text = content({"getppid": 100.0}, online="0-1")
    start, _, end = text.rpartition(b'"online": "0-1"')
    with pytest.raises(
        UserError, match="CPUs went online or offline during the run: from 0-1 to 0"
    ):
        parse_run(start + b'"online": "0"' + end, "1.json")
    parse_run(start.rstrip(b" ,") + end, "1.json")  # of a bundle that does not say it


def test_run_that_timed_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="no operation was timed"):
        parse_run(content({}), "1.json")


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        read_run(tmp_path / "none.json")


@pytest.mark.parametrize(
    "more",
    [
        {"samples": [[300, 0]]},
        {"samples": [[-300, 100]]},
        {"samples": [[10**400, 100]]},
        {"iterations": 0},
        {"ns": 10**400},
        {"ns": 0},
        {"ticks": -1},
        {"counters": {"user_instructions": [10**300, 10**300, 1]}},
        {"samples": [[float("nan"), 100]]},
    ],
)
def test_number_that_no_bundle_writes_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(UserError, match="is cut off or damaged"):
        parse_run(content({}, region("stat", 5.0) | more), "1.json")


def test_batches_that_are_more_than_their_region_are_refused() -> None:
    found = region("stat", 5.0)
    for name in ("ticks", "iterations"):
        with pytest.raises(UserError, match="the batches of stat are more than it"):
            parse_run(content({}, found | {name: found[name] // 3}), "1.json")


def test_nested_too_deep_is_refused() -> None:
    deep = b'{"kdelta_bundle":1,"x":' + b"[" * 100_000
    with pytest.raises(UserError, match="is cut off or damaged"):
        parse_run(deep + b"\n{}\n", "1.json")


def test_counters_and_processor_time_are_those_of_all_passes() -> None:
    passes = (
        region("stat", 100.0, user_us=300, counters={"user_cycles": [600, 10, 10]}),
        region("stat", 100.0, user_us=900, system_us=60, counters={"user_cycles": [900, 10, 5]}),
    )
    run = parse_run(content({}, *passes), "1.json")
    assert run.used == {"stat": (2000, 100)}  # of 600 iterations
    assert run.counters == {"stat": {"user_cycles": 4}}


def test_operation_that_is_timed_again_has_the_median_of_its_passes() -> None:
    found = parse_run(content({}, *(region("stat", ns) for ns in (30.0, 10.0, 20.0))), "1.json")
    assert found.ns == {"stat": pytest.approx(20.0)}


def test_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="is too large"):
        read_run(tmp_path / "large")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"boot_id": ""}, "does not say which boot it is from"),
        ({"when": 61}, "is of a machine whose date was not set"),
        ({"when": -(10**18)}, "is of a machine whose date was not set"),
        ({"when": 10**30}, "is cut off or damaged"),
        ({"uptime": "nan 1.0"}, "for how long its machine had run"),
        ({"uptime": ""}, "for how long its machine had run"),
        ({"uptime": "-5.0 1.0"}, "for how long its machine had run"),
    ],
)
def test_boot_that_has_no_place_is_refused(
    facts: dict[str, object], words: str, tmp_path: Path
) -> None:
    (tmp_path / "1.json").write_bytes(content({"stat": 1.0}, **facts))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=words):
        read_run(tmp_path / "1.json")

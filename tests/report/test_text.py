# SPDX-License-Identifier: GPL-2.0-or-later
"""The text forms: golden files of the examples, and what must hold of any report."""

import os
import re
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import CpuCounts, LeftWork, RunCounts
from kdelta.infer.effects.effects import compare_runs
from kdelta.infer.effects.estimate import Estimate
from kdelta.report import figures
from kdelta.report.kind import ALL
from kdelta.report.model import KernelRuns
from kdelta.report.text import text_of
from kdelta.spec.errors import UserError
from kdelta.studies.compare.model import Compared, CompareReport
from kdelta.studies.forms import text as printed
from kdelta.studies.run.document import BRIEF, RunDetail, run_document
from kdelta.studies.run.model import RunReport
from tests.report.example import MACHINE, failed_report, report, run_report
from tests.report.example_cycles import with_cycles
from tests.report.shown import stored as stored_as
from tests.synthetic import interrupts, own, region, run, user

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "KDELTA_UPDATE_GOLDEN"


def run_text(report: RunReport, *regions: str, functions: int = 20) -> str:
    """As `kdelta show -o REGION` prints it."""
    kept = stored_as("run", report)
    return text_of(run_document(kept, (report,), RunDetail(regions, functions)))


def against_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get(UPDATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"if that is meant, run the test once with {UPDATE}=1"
    fits_a_mail(text, 130 if name.startswith("first-screen") else 80)


def fits_a_mail(text: str, width: int = 80) -> None:
    """Names in the last column of a first screen are never cut: its lines may be longer."""
    assert text.isascii()
    assert [line for line in text.splitlines() if len(line) > width or line != line.rstrip()] == []


def several() -> CompareReport:
    """Two others; the second is no kernel, and one run a side says nothing of spreads."""
    counts = [run(region("getppid", {own("f"): 300, user("main"): 100}))]
    more = [run(region("getppid", {own("f"): 400, user("main"): 100}))]
    one = report()
    failed = KernelRuns("image:/tmp/vmlinux", "", "", (), failure="/tmp/vmlinux is for aarch64")
    return CompareReport(
        workload="syscalls",
        machine={"name": "tcg"},
        base=one.base,
        others=(
            Compared(one.others[0].side, compare_runs(counts, more)),
            Compared(failed, compare_runs(counts, [])),
        ),
    )


def compare_text(*reports: CompareReport, **asked: int) -> str:
    """As `kdelta compare --all` prints it."""
    kept = stored_as("compare", *reports)
    return printed(msgspec.structs.replace(kept, shown={**asked, ALL: 1}))


def test_misses_of_the_l2_are_shown_with_what_they_are_made_of() -> None:
    text = compare_text(with_cycles(data=True))
    fits_a_mail(text)
    rows = dict(re.findall(r"^open-close +(l2\S*) misses +([\d.]+)", text, re.MULTILINE))
    whole, code, of_data = (float(rows[name]) for name in ("l2", "l2_code", "l2_data"))
    assert whole == pytest.approx(code + of_data, abs=0.011)
    assert "(--data)" not in text
    plain = compare_text(with_cycles())
    assert "l2 misses are not in them, since accesses to data were not recorded (--data)" in (
        " ".join(plain.split())
    )
    assert "l2_code" not in plain


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.txt", lambda: run_text(run_report(), "open-close", functions=5)),
    ],
)
def test_golden(name: str, text: "object") -> None:
    assert callable(text)
    against_golden(name, text())


def test_how_much_is_explained() -> None:
    explained = compare_text(report(), explain=1)
    assert "And 6 more: --explain." in explained
    assert explained.count("\ntotal ") == 3, "interrupts and other tasks are always broken down"
    assert "17 other functions " in compare_text(report(), functions=2)


def test_what_a_guest_says_stays_ascii_and_narrow() -> None:
    said = msgspec.structs.replace(failed_report().run, console_tail=("\x1b[31m\u00e9" * 50,))
    fits_a_mail(run_text(msgspec.structs.replace(failed_report(), run=said)))


def test_output_is_cut_to_its_last_lines() -> None:
    found = run_text(
        msgspec.structs.replace(
            run_report(), stdout="".join(f"line {index}\n" for index in range(50)), stderr="oops\n"
        )
    )
    assert "standard output, the last 20 of 50 lines\n\n  line 30\n" in found
    assert "standard error\n\n  oops\n" in found


def test_few_regions_are_explained_unasked() -> None:
    counts = run(region("whole", {own("f"): 30, user("main"): 12}, iterations=1))
    found = run_text(RunReport(run_report().run, counts))
    first = " ".join(found.partition("\n\n")[0].split())
    assert first == (
        "syscalls on 6.1.0-47-cloud-amd64: 42 instructions an iteration of whole, "
        "71.4 % of them in the kernel."
    )
    assert "From kernel 71.4 %, syscalls 28.6 %." in found
    assert "total 42 an iteration: instructions" in " ".join(found.split())
    assert "-o NAME" not in found
    assert "-o NAME" in run_text(run_report())


def test_idle_is_apart_from_other_tasks_by_cpu() -> None:
    cpus = (CpuCounts(10, 20, 3, 45, 40), CpuCounts(0, 0, 5, 7))  # the last one did not count it
    counts = run(msgspec.structs.replace(region("whole", {own("f"): 30}), cpus=cpus))
    text = run_text(RunReport(run_report().run, counts))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "CPU kernel user interrupts idle other tasks" in lines
    assert "the one that began 20 10 3 40 5" in lines
    assert "another, 1 0 0 5 7" in lines


def test_what_run_prints_fits_a_screen_and_names_where_the_rest_is() -> None:
    functions = {own(f"f{n}"): n + 1 for n in range(50)} | {interrupts("tick"): 4}
    counts = run(region("whole", functions, iterations=1))
    found = RunReport(
        run_report().run, counts, stdout="line\n" * 50, files=("content /usr/bin/ls",)
    )
    whole = run_text(found)
    brief = text_of(run_document(stored_as("run", found), (found,), BRIEF))
    for words in ("Environment", "tick", "/usr/bin/ls", "How to reproduce it"):
        assert words in whole
        assert words not in brief
    assert "\n40 other functions" in brief
    assert brief.endswith(f"kdelta show {found.run.run.id}\n")
    assert len(brief.splitlines()) <= 50


def test_a_region_that_a_run_does_not_have() -> None:
    with pytest.raises(UserError, match="no region 'x'") as caught:
        run_text(run_report(), "x")
    assert "getppid, open-close" in caught.value.hint


def test_what_a_run_leaves_to_others_is_with_its_costs() -> None:
    plain = region("op", {own("f"): 1000}, 10)
    leaving = msgspec.structs.replace(plain, left=LeftWork(5050, 10))
    assert "left to others" not in run_text(RunReport(run_report().run, RunCounts((plain,))), "op")
    text = run_text(RunReport(run_report().run, RunCounts((leaving,))), "op")
    assert "left to others" in text
    assert re.search(r"\b505\b", text)


def test_a_run_without_regions() -> None:
    assert ": no region. " in run_text(RunReport(run_report().run, RunCounts(())))


costs = st.dictionaries(
    st.sampled_from([own(f"function_{index}") for index in range(20)] + [user("main")]),
    st.integers(0, 10**10),
)
sides = st.lists(
    st.builds(lambda cost, n: run(region("op", cost, n)), costs, st.integers(1, 300)),
    min_size=1,
    max_size=3,
)


@given(sides, sides, st.integers(0, 12))
def test_what_is_printed_adds_up(
    base: list[RunCounts], others: list[RunCounts], functions: int
) -> None:
    side = report().base
    effects = compare_runs(base, others)
    found = CompareReport("w", MACHINE, side, (Compared(side, effects),))
    text = compare_text(found, functions=functions)
    fits_a_mail(text)
    row = next(line for line in text.splitlines() if line.startswith("op   "))
    shown = re.findall(r" ([+-]?\d[\d.]*)(?= |$)", row)[:3]
    base_shown, other_shown, diff = map(Fraction, shown)
    assert other_shown - base_shown == diff
    _, title, account = text.partition("\nop: ")
    lines = re.findall(r"^.*? ([+-][0-9.]+|0)(?: .*)?$", account.partition("\n\n")[0], re.MULTILINE)
    if title and lines:
        *parts, total = (Fraction(line) for line in lines)
        assert sum(parts) == total == diff


@given(st.lists(st.fractions(-(10**6), 10**6), min_size=1, max_size=30), st.sampled_from([1, 100]))
def test_rounding_to_a_total(values: list[Fraction], unit: int) -> None:
    total = figures.scaled(sum(values, Fraction(0)), unit)
    rounded = figures.rounded_to_total(values, total, unit)
    assert sum(rounded) == total
    for whole, value in zip(rounded, values, strict=True):
        assert whole % unit == 0
        assert abs(whole - value * figures.SCALE) < 2 * unit


@pytest.mark.parametrize(
    ("hundredths", "text"),
    [(33700, "337"), (33750, "337.50"), (-5, "-0.05"), (0, "0"), (912456800, "9124568")],
)
def test_figures(hundredths: int, text: str) -> None:
    assert figures.plain(hundredths) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0%"),
        (Fraction(1, 1000), "+0.00%"),
        (Fraction(-5, 3), "-1.67%"),
        (Fraction(50), "+50.0%"),
        (Fraction(123456, 10), "+12346%"),
        (Fraction(10**8), "+1e+08%"),
        (None, "new"),
    ],
)
def test_percents(value: Fraction | None, text: str) -> None:
    assert figures.percent(value) == text


def test_a_difference_too_small_to_be_seen_keeps_its_sign() -> None:
    assert figures.signed(0, Fraction(1, 999)) == "+0.00"
    assert figures.signed(0, Fraction(-1, 999)) == "-0.00"
    assert figures.signed(0, Fraction(0)) == "0"


def effect(half: Fraction | int, n: int = 3) -> Estimate:
    return Estimate(Fraction(5), 5 - Fraction(half), 5 + Fraction(half), n)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (effect(0), "exact"),
        (effect(0, n=1), "n=1"),
        (effect(Fraction(1, 999)), "+-0.00"),
        (effect(3), "+-3"),
        (effect(Fraction(5, 2)), "+-2.50"),
        (effect(Fraction(205, 2)), "+-102.5"),
        (effect(99_999), "+-100k"),
        (effect(10**7), "+-10M"),
    ],
)
def test_spread(estimate: Estimate, text: str) -> None:
    assert figures.spread(estimate) == text
    assert len(text) <= 7

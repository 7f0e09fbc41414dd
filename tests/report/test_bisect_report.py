# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a bisection: what it says, that it adds up, and that it fits a mail."""

from fractions import Fraction

import msgspec
import pytest
from reading import read_document

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import ZERO, Estimate
from kdelta.report.model import KernelRuns
from kdelta.spec.errors import LabError
from kdelta.studies.bisect.mail import bisect_mails
from kdelta.studies.bisect.model import (
    BisectedCommit,
    BisectReport,
    FoundCommit,
    FoundGroup,
    FoundPlacement,
    RuledOutCommit,
)
from kdelta.studies.bisect.study import bisect_log
from kdelta.studies.documents import document_text
from kdelta.studies.search.model import BisectBuild, BisectedRegion
from tests.report.example_times import effect, times
from tests.report.shown import shown


def figure(value: int, reach: int = 0) -> Estimate:
    return Estimate(Fraction(value), Fraction(value - reach), Fraction(value + reach), 3)


def commit(number: int, subject: str) -> BisectedCommit:
    return BisectedCommit(
        f"{number:x}" * 40, subject, "A U Thor <author@example.org>", "2026-01-02"
    )


def region(name: str, good: int, bad: int, explained: int) -> BisectedRegion:
    return BisectedRegion(
        workload="syscalls",
        name=name,
        before=figure(good),
        after=figure(bad),
        whole=figure(bad - good),
        explained=figure(explained),
        remainder=figure(bad - good - explained),
    )


SLOWER = FoundCommit(
    commit=commit(1, "fs: open: look at the flags once more"),
    effects={"open-close": figure(30), "uname": figure(0)},
    functions={"open-close": {"do_sys_openat2": figure(30)}},
    confirmed=True,
    moved=False,
    how="it was measured, and so was its parent",
    measured=times(
        effect("open-close", Word.SLOWER, 0.012, 0.019, "explained by the path"),
        effect("uname", Word.SAME, -0.002, 0.003, "no difference"),
    ),
)
FASTER = FoundCommit(
    commit=commit(2, "sys: read the names without a lock"),
    effects={"open-close": figure(0), "uname": figure(-22, 4)},
    functions={"uname": {"down_read": figure(-12), "up_read": figure(-10)}},
    confirmed=False,
    moved=False,
    how="of all commits between 3 and 4 no other reaches executed code",
    measured=times(
        effect("uname", Word.SAME, -0.009, 0.001, "the path is faster, and the time is not"),
        effect("stat", Word.UNRESOLVED, -0.03, 0.02, "20 pairs of boots do not decide"),
    ),
)
REPORT = BisectReport(
    repository="/src/linux",
    names=("v6.12", "v6.13"),
    good=commit(8, "Linux 6.12"),
    bad=commit(9, "Linux 6.13"),
    ends=(KernelRuns("a", "a" * 64, "6.12.0", ()), KernelRuns("b", "b" * 64, "6.13.0", ())),
    workloads=("syscalls",),
    machine={"name": "tcg", "memory_mib": 1024},
    commits=40,
    candidates=14,
    regions=(
        region("open-close", 1782, 1815, 30),
        region("uname", 466, 444, -22),
        region("stat", 2000, 2040, 40),
        region("getppid", 214, 214, 0),
    ),
    found=(SLOWER, FASTER),
    groups=(
        FoundGroup(
            (commit(5, "stat: count"), commit(6, "file: what counts it")),
            {"stat": figure(40)},
            "what is between them failed, so they could not be distinguished",
        ),
    ),
    placement=(FoundPlacement(commit(3, "a"), commit(4, "b"), 2, {"open-close": figure(3)}),),
    ruled_out=tuple(
        RuledOutCommit(commit(number, f"unrelated {number}"), why)
        for number, why in (
            (10, "nothing was built from what it touches"),
            (11, "no executed code depends on it"),
            (12, "no executed code depends on it"),
        )
    ),
    builds=(
        BisectBuild("8" * 40, "the good end", "ok", "", 340.0, "i"),
        BisectBuild(
            "5" * 40, "halving", "build-failed", "fs/stat.c:1: error", None, "j", "stat: count"
        ),
    ),
    logs={"1" * 40: "git bisect start\n"},
    notes=("v6.12 is older",),
)


def test_the_text_says_all_and_fits_a_mail() -> None:
    text = shown("bisect", REPORT)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.isascii()
    flat = " ".join(text.split())
    for words in (
        "40 commits, 14 searched",
        "2 commits and 1 group of commits account for the difference.",
        '111111111111 ("fs: open: look at the flags once more")',
        "A U Thor <author@example.org>, 2026-01-02",
        "open-close slower +30 +1.68% exact",
        "open-close: do_sys_openat2 +30",
        "uname faster -22 -4.72% +-4",
        "uname: down_read -12, up_read -10",
        "2 commits together: what is between them failed",
        "3 of 40 commits needed no kernel.",
        "2: no executed code depends on it",
        '555555555555 ("stat: count") build-failed - fs/stat.c:1: error',
        "333333333333..444444444444 (2 commits): open-close +3",
        "v6.12 is older",
        "open-close 1782 1815 +33 exact +1.85% +30 exact +3 exact sum: does not add up",
        "stat 2000 2040 +40 exact +2.00% +40 exact 0 exact sum: adds up",
        "more than the spread is left in open-close",
    ):
        assert words in flat, words


def test_what_does_not_add_up_is_refused() -> None:
    wrong = msgspec.structs.replace(REPORT.regions[0], remainder=figure(7))
    with pytest.raises(LabError, match="open-close"):
        shown("bisect", msgspec.structs.replace(REPORT, regions=(wrong,)))


def test_nothing_to_explain_is_reported_with_figures() -> None:
    same = msgspec.structs.replace(
        REPORT, found=(), groups=(), regions=(region("open-close", 1000, 1001, 0),)
    )
    text = " ".join(shown("bisect", same).split())
    assert "no difference to explain: the largest is open-close 1000 -> 1001 (+0.10%)" in text
    asked = msgspec.structs.replace(same, asked=("uname", "stat"))
    text = " ".join(shown("bisect", asked).split())
    assert "no difference to explain in uname and stat: they have the same path at both" in text
    equal = msgspec.structs.replace(same, bad=REPORT.good, regions=())
    assert "the same commit" in shown("bisect", equal)
    failed = msgspec.structs.replace(same, failure="nothing to compare: v6.13: build-failed")
    assert "nothing to compare: v6.13: build-failed" in shown("bisect", failed)


def test_what_was_not_asked_for_is_not_said() -> None:
    asked = msgspec.structs.replace(REPORT, asked=("open-close",), found=(SLOWER,), groups=())
    assert "1 commit accounts for the difference in open-close." in shown("bisect", asked)
    first = msgspec.structs.replace(asked, first=True)
    assert "The largest effect in open-close was searched for, and no other." in shown(
        "bisect", first
    )
    document = read_document(document_text(first, "0.1"))
    assert (document.asked, document.first) == (["open-close"], True)


def test_a_mail_for_what_is_slower() -> None:
    mail = bisect_mails(REPORT)
    lines = mail.splitlines()
    assert lines[0] == "To: A U Thor <author@example.org>"
    assert lines[1] == "Cc: regressions@lists.linux.dev"
    assert lines[2].startswith("Subject: [REGRESSION] open-close +1.68% by 111111111111")
    assert f"#regzbot introduced: {'1' * 40}" in lines
    assert '  Fixes: 111111111111 ("fs: open: look at the flags once more")' in lines
    times = "By times, on these two builds: open-close slower (+1.20% to +1.90%)."
    assert times in lines
    assert "FASTER" not in mail
    assert "without a lock" not in mail
    faster = msgspec.structs.replace(REPORT, found=(FASTER,))
    assert "No commit was found" in bisect_mails(faster)


def test_a_mail_leaves_out_times_of_an_emulator() -> None:
    emulated = tuple(msgspec.structs.replace(one, weighs=False) for one in SLOWER.measured)
    slower = msgspec.structs.replace(SLOWER, measured=emulated)
    assert "By times" not in bisect_mails(msgspec.structs.replace(REPORT, found=(slower,)))


def test_the_json_has_what_the_text_has() -> None:
    found = read_document(document_text(REPORT, "0.1"))
    assert found.schema == "kdelta.bisect/2"
    assert [one.commit.name for one in found.found] == ["1" * 40, "2" * 40]
    assert found.logs["1" * 40] == "git bisect start\n"
    assert found.found[0].functions["open-close"]["do_sys_openat2"].value == 30
    assert [one.subject for one in found.groups[0].commits] == [
        "stat: count",
        "file: what counts it",
    ]
    assert len(found.ruled_out) == 3
    assert [one.status for one in found.builds] == ["ok", "build-failed"]


def test_the_log_narrows_as_git_does() -> None:
    parents = {"a": (), "b": ("a",), "c": ("b",), "d": ("c",), "e": ("d",)}
    seen = [("c", True), ("d", True), ("b", False)]
    log = bisect_log(parents, ("a", "e"), seen, "c", {"c": "what it was"})
    assert log.splitlines() == [
        "# bad: [e]",
        "# good: [a]",
        "git bisect start 'e' 'a'",
        "# bad: [c] what it was",
        "git bisect bad c",
        "# skip: [b]",
        "git bisect skip b",
        "# first bad commit: [c] what it was",
    ]
    faster = bisect_log(parents, ("a", "e"), [("b", True)], "c", {}, slower=False)
    assert "git bisect start '--term-new=fast' '--term-old=slow' 'e' 'a'" in faster
    assert "git bisect slow b" in faster


def test_no_figure_is_lost_to_rounding() -> None:
    third = Estimate(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3), 3)
    rest = Estimate(Fraction(2, 3), ZERO, Fraction(1), 3)
    odd = msgspec.structs.replace(region("odd", 1000, 1001, 0), explained=third, remainder=rest)
    text = shown("bisect", msgspec.structs.replace(REPORT, regions=(odd,)))
    assert "+0.33 exact +0.67 +-0.50" in " ".join(text.split())
    assert "whether what was found is all of it is not known" not in " ".join(text.split())

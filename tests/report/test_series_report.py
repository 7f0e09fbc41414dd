# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a series: what it says, that it adds up, and that it fits a mail."""

from fractions import Fraction

import msgspec
import pytest
from reading import read_document

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.minimal import Member, MinimalAnswer, PatchRole
from kdelta.infer.search.search_model import (
    InteractionAnswer,
    PatchAnswer,
    PatchNeed,
    PatchOutcome,
    Proof,
    View,
    ViewAnswer,
)
from kdelta.report.model import KernelRuns
from kdelta.spec.errors import LabError
from kdelta.studies.documents import document_text
from kdelta.studies.search.model import AblatedRegion, AblationBuild
from kdelta.studies.series.held import StatedOutcome, held
from kdelta.studies.series.model import KeptBranch, Minimal, SeriesGroup, SeriesReport, SeriesRow
from tests.report.example_times import effect, times
from tests.report.shown import shown


def figure(value: int, reach: int = 0) -> Estimate:
    return Estimate(Fraction(value), Fraction(value - reach), Fraction(value + reach), 3)


def region(name: str, before: int, after: int, explained: int, reach: int = 0) -> AblatedRegion:
    return AblatedRegion(
        workload="syscalls",
        name=name,
        before=figure(before),
        after=figure(after),
        whole=figure(after - before, reach),
        explained=figure(explained),
        remainder=figure(after - before - explained, reach),
        lookups=figure(-40 if name == "open" else 0),
    )


def effects(**values: int) -> dict[str, Estimate]:
    return {name: figure(value) for name, value in values.items()}


def row(
    name: str,
    fate: PatchOutcome = PatchOutcome.MEASURED,
    *,
    others: tuple[str, ...] = (),
    earlier: tuple[str, ...] = (),
    **values: int,
) -> SeriesRow:
    views = [ViewAnswer(effects(**values), others, ""), ViewAnswer({}, (), "alone build-failed")]
    text = "on top of all before it"
    answer = PatchAnswer(name, fate, text, effects(**values), views[0], views[1])
    out = fate is PatchOutcome.RULED_OUT
    why = "no executed code depends on it" if out else text
    return SeriesRow(answer, f"mm: {name}", ("mm/x.c",), why, 3, 0 if out else 1, earlier)


REPORT = SeriesReport(
    tree="deb-src:linux-source-6.12 +speed.config",
    words=("debian/patches/series",),
    ends=(
        KernelRuns("without", "a" * 64, "6.12.9", ()),
        KernelRuns("with all", "b" * 64, "6.12.9", ()),
    ),
    workloads=("syscalls",),
    machine={"name": "tcg", "memory_mib": 1024},
    views=tuple(View),
    rows=(
        row("mm-faster-free", open=-250, stat=-18),
        row("mm-a-name-that-is-much-longer-than-the-column", open=10),
        row("docs-typo", PatchOutcome.RULED_OUT),
        row("driver-fix", PatchOutcome.RULED_OUT),
        row("fs-cleanup", PatchOutcome.CLEARED, open=0),
        row("sched-part-1", PatchOutcome.TOGETHER),
        row("sched-part-2", PatchOutcome.TOGETHER),
    ),
    regions=(
        region("open", 1000, 720, -280),
        region("stat", 500, 480, -18, 3),
        region("empty", 4, 4, 0),
    ),
    groups=(
        SeriesGroup(
            ("sched-part-1", "sched-part-2"),
            effects(open=-40, stat=0),
            "the tree up to sched-part-1 fails: build-failed: kernel/sched.c:1: no such thing",
            measured=times(effect("open", Word.FASTER, -0.04, -0.02, "explained by the path")),
        ),
    ),
    needs=(PatchNeed("sched-part-2", ("sched-part-1",), "kernel/sched.c, hunk 1: differs"),),
    interactions=(
        InteractionAnswer(("mm-faster-free", "fs-cleanup"), effects(open=5), "these two alone"),
    ),
    proof=Proof(True, "with the 5 patches that were kept the path is that of the whole series"),
    builds=(
        AblationBuild("without the patches", "ok", "", 300.0, "a" * 64, 1000),
        AblationBuild("with all patches", "ok", "", None, "b" * 64, 1000),
        AblationBuild("in order: all up to sched-part-1", "build-failed", "no", 9.0, "", None),
    ),
    notes=("something was assumed",),
    warnings=("without: a warning",),
    measured=times(
        effect("open", Word.FASTER, -0.11, -0.09, "explained by the path"),
        effect("empty", Word.SAME, -0.001, 0.001, "no difference"),
    ),
)


def lines(report: SeriesReport) -> list[str]:
    text = shown("series", report)
    found = text.splitlines()
    assert not [line for line in found if len(line) > 80]
    return found


def flat(report: SeriesReport) -> str:
    """The text as one line."""
    return " ".join(shown("series", report).split())


def test_what_it_says() -> None:
    text = flat(REPORT)
    assert lines(REPORT)[0].startswith("All patches together change the path by -10.7%")
    assert "2 patches are known to do something." in text
    assert "2 patches were ruled out without a build." in text
    assert "patch % in order spread % left out spread % alone" in text
    # (-25 % - 3.6 % + 0) / 3
    assert "mm-faster-free -9.53% exact -9.53% exact most in: open -25.0% exact" in text
    assert "mm-a-name-that-is-much-longer-than-the-column" in lines(REPORT)
    assert "sum of these -10.5% exact all patches -10.7% +-0.20" in text
    assert "patches without effect -0.13% +-0.20 what became of it: cannot tell" in text
    assert "group 1 -1.33% exact most in: open -4.00% exact" in text
    assert "No effect seen -------------- The interval of the mean holds 0;" in text
    assert "fs-cleanup exactly 0" in text
    assert "docs-typo 3 0 no executed code depends on it" in text
    assert "sched-part-2 sched-part-1 kernel/sched.c, hunk 1: differs" in text
    assert "mm-faster-free + fs-cleanup: most in open +0.50% exact; these two alone" in text
    assert "3 kernels, 1 of them from the cache, 5 minutes of building" in text
    assert "one build a patch would be 8" in text
    assert "in order: all up to sched-part-1 9 no" in text
    assert "something was assumed" in text
    assert "without: a warning" in text


def test_what_code_costs_more_is_named_where_runs_vary_by_more() -> None:
    def coded(one: SeriesRow, *regions: str) -> SeriesRow:
        code = {region: {"copy_process": Fraction(10)} for region in regions}
        return msgspec.structs.replace(one, answer=msgspec.structs.replace(one.answer, code=code))

    rows = (coded(row("fork-count", open=0), "open", "stat", "empty", "fork"), row("none", open=0))
    text = flat(msgspec.structs.replace(REPORT, rows=(*REPORT.rows, *rows)))
    where = "+10 copy_process in open, stat and 2 more"
    assert f"do something. Exact, but less than runs vary by: fork-count {where}." in text
    assert text.count(where) == 2
    assert "Exact, but" not in flat(REPORT)


def test_a_region_is_broken_down_and_adds_up() -> None:
    found = lines(REPORT)
    start = found.index("open: 1000 -> 720 instructions an iteration (-28.0%)")
    assert [line.split() for line in found[start + 4 : start + 8]] == [
        ["mm-faster-free", "-250", "exact", "-25.0%"],
        ["group", "1", "(2", "patches)", "-40", "exact", "-4.00%"],
        ["mm-a-name-that-is-much-longer-than-the-column", "+10", "exact", "+1.00%"],
        ["all", "patches", "-280", "exact", "-28.0%"],
    ]
    text = flat(REPORT)
    assert "Besides that -40 in functions that look up addresses, which is placement." in text
    assert "patches without effect, cannot tell -2 +-3 -0.40% all patches -20" in text


def test_what_does_not_add_up_is_an_error() -> None:
    wrong = region("open", 1000, 700, -280)
    wrong = msgspec.structs.replace(wrong, remainder=figure(0))
    with pytest.raises(LabError, match="open: the patches add up to -280"):
        shown("series", msgspec.structs.replace(REPORT, regions=(wrong, *REPORT.regions[1:])))


def test_a_failure_and_no_effect() -> None:
    failed = msgspec.structs.replace(REPORT, failure="nothing to compare: with all: boot-failed")
    text = shown("series", failed)
    assert "nothing to compare" in text
    assert "most in" not in text
    still = msgspec.structs.replace(
        REPORT, regions=(region("empty", 4, 4, 0),), rows=(row("a", empty=0),), groups=()
    )
    text = flat(still)
    assert text.startswith("All patches together change no region's path")
    assert "What does a patch do" not in text, "what was asked is known"
    assert "0 patches are known to do something" in text


def minimal(*, complete: bool = True) -> SeriesReport:
    answer = MinimalAnswer(
        members=(
            Member("sched-part-1", PatchRole.NEEDED, "without it build-failed"),
            Member("mm-faster-free", PatchRole.CULPRIT, "without it the effect is not there"),
        ),
        complete=complete,
        confirmed=complete,
        tests=9,
        refused=1,
        note="" if complete else "the search ended after 9 builds",
    )
    found = Minimal(answer, effects(open=-260, stat=-18), Fraction(1, 10))
    return msgspec.structs.replace(REPORT, minimal=found)


def test_the_smallest_set() -> None:
    text = flat(minimal())
    assert "2 patches have the effect of all, within 10.0% of it." in text
    assert "- sched-part-1: needed: without it build-failed - mm-" in text
    assert "- mm-faster-free: without it the effect is not there " in text
    assert "Together, without the others: -9.87% exact in the mean, most in open -26.0%" in text
    assert "9 kernels tried for it, 1 set refused without one. Left out one by one" in text
    text = flat(minimal(complete=False))
    assert "2 patches have to be there, and perhaps more." in text
    assert "the search ended after 9 builds" in text
    none = Minimal(MinimalAnswer((), True, True, 1, 0), {}, Fraction(0))
    assert "No set was found" in flat(msgspec.structs.replace(REPORT, minimal=none))


def test_what_still_holds_on_a_new_base() -> None:
    told = [
        ("holds", "open -25.10 % path (exact)", -250),
        ("less", "open -25.00 % path (+-0.01 %)", -100),
        ("more", "open -10.00 % path (exact)", -100 - 50),
        ("reversed", "open -10.00 % path (exact)", 100),
        ("gone", "open -10.00 % path (exact)", 0),
        ("unknown", "shut -10.00 % path (exact)", 0),
    ]
    rows = [row(word, earlier=(f"syscalls/{text}",), open=now) for word, text, now in told]
    rows.append(row("none", earlier=("none",), open=0))
    group = row("group", PatchOutcome.TOGETHER, earlier=("syscalls/open -1.00 % path (exact)",))
    whole = sum(now for _, _, now in told)
    report = msgspec.structs.replace(
        REPORT,
        rows=(*rows, group),
        groups=(),
        regions=(region("open", 1000, 1000 + whole, whole),),
    )
    found = held(report)
    assert [one.word.value for one in found] == [*(word for word, _, _ in told), "unknown"]
    assert (found[0].earlier, found[0].now) == (-25.1, -25.0)
    assert found[5].now is found[6].now is None
    text = flat(report)
    assert "1 holds, 1 less, 1 more, 1 gone, 1 reversed, 2 unknown." in text
    assert "holds syscalls/open -25.1% -25.0% holds" in text
    assert {one.word for one in found} == set(StatedOutcome)
    assert "What still holds" not in flat(REPORT)


def test_a_branch_that_was_kept() -> None:
    kept = KeptBranch("/src/linux:fast", "c" * 40, ("a", "b"), ("slow",), ("slower",))
    text = flat(msgspec.structs.replace(REPORT, kept=kept))
    assert f"/src/linux:fast, 2 commits, tip {'c' * 12}." in text
    assert "Dropped, since slower: slow." in text
    assert "Marked, since slower: slower." in text


def test_json_has_everything() -> None:
    kept = KeptBranch("/src/linux:fast", "c" * 40, ("a", "b"), ("slow",), ("slower",))
    report = msgspec.structs.replace(minimal(), kept=kept)
    found = read_document(document_text(report, "1.0"))
    assert (found.schema, found.kdelta) == ("kdelta.series/2", "1.0")
    patches = [one.answer for one in found.rows]
    assert [one.outcome for one in patches][:3] == ["measured", "measured", "ruled out"]
    first = patches[0]
    assert first.effects["open"].value == -250
    assert first.left_out is not None
    assert first.alone is not None
    assert first.alone.text == "alone build-failed"
    assert found.groups[0].patches == ["sched-part-1", "sched-part-2"]
    assert found.minimal is not None
    assert found.minimal.within == 0.1
    assert [one.role for one in found.minimal.answer.members] == ["needed", "culprit"]
    assert found.kept is not None
    assert found.kept.dropped == ["slow"]
    assert [one.name for one in found.regions] == ["open", "stat", "empty"]
    assert found.builds[2].status == "build-failed"

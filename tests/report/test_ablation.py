# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of an ablation: what it says, that it adds up, and that it fits a mail."""

from fractions import Fraction

import msgspec
import pytest
from reading import read_document

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Adds, Estimate
from kdelta.infer.search.search_model import Proof
from kdelta.report.model import KernelRuns, Mismatch
from kdelta.spec.errors import LabError
from kdelta.studies.ablate.model import (
    AblatedGroup,
    AblationReport,
    GroupOutcome,
    Interaction,
    SwitchShare,
)
from kdelta.studies.documents import document_text
from kdelta.studies.search.model import AblatedRegion, AblationBuild
from tests.report.decoded import decoded
from tests.report.example_cycles import cycles_of
from tests.report.example_cycles import with_cycles as compare_report
from tests.report.example_times import effect, times
from tests.report.shown import shown


def figure(value: int, reach: int = 0) -> Estimate:
    return Estimate(Fraction(value), Fraction(value - reach), Fraction(value + reach), 3)


def region(name: str, before: int, after: int, explained: int, reach: int = 0) -> AblatedRegion:
    whole = figure(after - before, reach)
    return AblatedRegion(
        workload="syscalls",
        name=name,
        before=figure(before),
        after=figure(after),
        whole=whole,
        explained=figure(explained),
        remainder=figure(after - before - explained, reach),
        lookups=figure(-40 if name == "open" else 0),
    )


def unit(name: str, fate: GroupOutcome = GroupOutcome.MEASURED, **effects: int) -> AblatedGroup:
    return AblatedGroup(
        name=name,
        options=(f"{name} y -> n",),
        needs=(),
        outcome=fate,
        why="no executed code depends on it" if fate is GroupOutcome.DEAD else "",
        objects=12,
        alive=0 if fate is GroupOutcome.DEAD else 3,
        effects={region: figure(value) for region, value in effects.items()},
        how="alone",
        switch=SwitchShare("slub_debug=-", True, {"open": figure(-250)})
        if name == "SLUB_DEBUG_ON"
        else None,
    )


REPORT = AblationReport(
    tree="deb-src:linux-source-6.12",
    names=("stock.config", "speed.config"),
    ends=(
        KernelRuns("stock.config", "a" * 64, "6.12.117", ()),
        KernelRuns("speed.config", "b" * 64, "6.12.117", ()),
    ),
    workloads=("syscalls",),
    machine={"name": "tcg", "memory_mib": 1024},
    options=7,
    regions=(
        region("open", 1000, 700, -300),
        region("stat", 500, 480, -18, 3),
        region("empty", 4, 4, 0),
    ),
    option_groups=(
        unit("SLUB_DEBUG_ON", open=-250, stat=0, empty=0),
        unit("DEBUG_LIST", open=-40, stat=-18, empty=0),
        unit("KPROBES", GroupOutcome.CLEARED, open=0, stat=0, empty=0),
        unit("OLD_DRIVER", GroupOutcome.DEAD),
        unit("PREEMPT", GroupOutcome.UNRESOLVED),
    ),
    interactions=(Interaction(("SLUB_DEBUG_ON", "DEBUG_LIST"), {"open": figure(-10)}),),
    proof=Proof(True, "A with 4 kept units flipped has B's path in all 3 regions"),
    builds=(
        AblationBuild("B", "ok", "", None, "b" * 64, 9_000_000),
        AblationBuild("A", "ok", "", 300.0, "a" * 64, 10_000_000),
        AblationBuild("PREEMPT alone", "boot-failed", "panic", 240.0, "c" * 64, None),
    ),
    strategy="one at a time",
    notes=("a note",),
)


def test_what_it_says() -> None:
    text = shown("ablate", REPORT)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    table = flat[flat.index("option group % mean") :]
    names = ["SLUB_DEBUG_ON", "DEBUG_LIST", "PREEMPT"]
    assert sorted(names, key=table.index) == names, "the largest first"
    assert "SLUB_DEBUG_ON -8.33% exact open -25.0% exact" in flat
    assert "B - A -11.3% +-0.20" in flat
    assert "not accounted for -0.13% +-0.20 what became of it: cannot tell" in flat
    assert "No effect seen -------------- The interval of the mean holds 0;" in flat
    assert "KPROBES exactly 0" in flat
    assert "SLUB_DEBUG_ON 74 % (72 to 75 %)" in flat
    assert "open: 1000 -> 700 instructions an iteration" in text
    assert "OLD_DRIVER not executed 12 0 in words: no executed code depends on it" in flat
    assert "SLUB_DEBUG_ON slub_debug=- -8.33% exact" in flat
    assert "together: SLUB_DEBUG_ON + DEBUG_LIST" in text
    assert "Besides that -40 in functions" in text
    assert "unresolved (1) PREEMPT" in flat
    assert "PREEMPT alone 240 panic" in flat
    assert "3 kernels, 1 of them from the cache, 9 minutes of building; one at a time" in flat


def test_times_of_option_groups_are_next_to_those_of_the_ends() -> None:
    one = times(
        effect("open", Word.SAME, -0.002, 0.001, "the path is faster, and the time is not"),
        effect("stat", Word.SAME, -0.002, 0.001, "no difference"),
    )
    first = msgspec.structs.replace(REPORT.option_groups[0], measured=one)
    report = msgspec.structs.replace(
        REPORT,
        option_groups=(first, *REPORT.option_groups[1:]),
        measured=times(effect("open", Word.FASTER, -0.3, -0.2, "explained by the path")),
    )
    flat = " ".join(shown("ablate", report).split())
    assert "By times, from A to B" in flat
    assert "SLUB_DEBUG_ON open 200 199.90 same -0.20% to +0.10% why: the path is faster" in flat
    assert "SLUB_DEBUG_ON stat" not in flat
    assert "No times are known of DEBUG_LIST, KPROBES." in flat
    assert "By times" not in shown("ablate", REPORT)


def with_cycles() -> AblationReport:
    """The same on a CPU: of one unit alone from A, of one on top of that."""
    plain = compare_report("zen3")
    held = {one.region: one for one in cycles_of(plain).effects}
    names = {"open": "open-close", "stat": "page-fault", "empty": "getppid"}
    effects = tuple(held[source].renamed(name) for name, source in names.items())
    found = (msgspec.structs.replace(cycles_of(plain), effects=effects, notes=()),)
    units = list(REPORT.option_groups)
    units[0] = msgspec.structs.replace(units[0], measured=found)
    units[1] = msgspec.structs.replace(units[1], measured=found, flipped=("SLUB_DEBUG_ON",))
    return msgspec.structs.replace(
        REPORT,
        option_groups=tuple(units),
        cpu=plain.cpu,
        measured=found,
        mismatches=(Mismatch("ERMS", "strings move by eight bytes", ("A", "B"), ("open",)),),
    )


def test_model_cycles_are_besides_the_path() -> None:
    text = shown("ablate", with_cycles())
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    table = words[words.index("option group path model cycles regions") :]
    assert "SLUB_DEBUG_ON -8.33% exact -5.00% to +1.22% 1? 1- 1=" in table, (
        "the mean of -25 %, 0, 0"
    )
    names = ["SLUB_DEBUG_ON", "DEBUG_LIST", "B - A"]
    assert sorted(names, key=table.index) == names
    assert "stat unresolved -3.76% to +8.70%" in words
    assert "Not from A: - DEBUG_LIST on top of SLUB_DEBUG_ON" in words
    assert "Path only, no two of these kernels differ by it alone: KPROBES." in words
    assert "strings move by eight bytes A, B open" in words
    document = read_document(document_text(with_cycles(), "1"))
    assert document.option_groups[1].measured
    assert document.option_groups[1].flipped == ["SLUB_DEBUG_ON"]
    assert document.option_groups[2].measured == []
    (cycles,) = document.measured
    assert [one.region for one in cycles.effects] == ["open", "stat", "empty"]
    assert [one.regions for one in document.mismatches] == [["open"]]


def test_model_cycles_of_nothing_that_was_traced() -> None:
    report = msgspec.structs.replace(with_cycles(), measured=())
    assert "Not known: no operation was traced on both sides." in shown("ablate", report)


def test_a_regions_units_add_up_as_printed() -> None:
    lines = shown("ablate", REPORT).splitlines()
    at = lines.index("open: 1000 -> 700 instructions an iteration (-30.0%)") + 4
    end = next(i for i in range(at, len(lines)) if lines[i].startswith("total "))
    figures = [int(line.split()[-3]) for line in lines[at : end + 1]]
    assert len(figures) == 4
    assert sum(figures[:-1]) == figures[-1] == -300


def test_a_sum_that_is_wrong_is_not_printed() -> None:
    regions = tuple(
        msgspec.structs.replace(one, remainder=figure(0)) if one.name == "stat" else one
        for one in REPORT.regions
    )
    with pytest.raises(LabError, match="stat: the option groups add up to"):
        shown("ablate", msgspec.structs.replace(REPORT, regions=regions))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ("-2.4", "0.1", "cannot tell"),
        ("-2.2", "-1.8", "more than the spread"),
        ("-2", "0", "cannot tell"),
    ],
)
def test_a_remainder_is_within_the_spread_only_if_that_is_narrow(
    low: str, high: str, words: str
) -> None:
    rest = Estimate(Fraction(-2), Fraction(low), Fraction(high), 3)
    assert f"not accounted for, {words}" in shown("ablate", with_remainder(rest))


def test_a_narrow_remainder_around_zero_is_within_the_spread() -> None:
    """The region costs 500 in A: 0.2 % of that is 1."""
    regions = tuple(
        msgspec.structs.replace(one, remainder=rest, explained=figure(-20), whole=figure(-20))
        if one.name == "stat"
        else one
        for one in REPORT.regions
        for rest in (Estimate(Fraction(0), Fraction("-0.5"), Fraction("0.5"), 3),)
    )
    region = next(one for one in regions if one.name == "stat")
    assert region.adds is Adds.ADDS_UP
    wider = Estimate(Fraction(0), Fraction("-0.5"), Fraction("0.51"), 3)
    assert msgspec.structs.replace(region, remainder=wider).adds is Adds.CANNOT_TELL


def with_remainder(rest: Estimate) -> AblationReport:
    regions = tuple(
        msgspec.structs.replace(one, remainder=rest) if one.name == "stat" else one
        for one in REPORT.regions
    )
    return msgspec.structs.replace(REPORT, regions=regions)


def test_units_that_cannot_be_told_apart_are_no_further_unit() -> None:
    names = [f"CONFIG_WITH_A_LONG_NAME_{n}" for n in range(9)]
    name = "9 option groups together"
    group = unit(name, GroupOutcome.TOGETHER, open=0, stat=0, empty=0)
    group = msgspec.structs.replace(group, why=", ".join(names))
    text = shown(
        "ablate", msgspec.structs.replace(REPORT, option_groups=(*REPORT.option_groups, group))
    )
    assert "in 5 option groups" in text
    assert "one at a time would be 7" in " ".join(text.split())
    assert all(name in text for name in names)
    assert max(map(len, text.splitlines())) <= 80


def test_ends_that_failed() -> None:
    report = msgspec.structs.replace(
        REPORT, failure="nothing to compare: B: build-failed", option_groups=()
    )
    assert "nothing to compare: B: build-failed" in shown("ablate", report)


def test_json_has_it_all() -> None:
    plain = decoded(document_text(REPORT, "0.1.0"))
    assert [one["outcome"] for one in plain["option_groups"]] == [
        "measured",
        "measured",
        "cleared",
        "dead",
        "unresolved",
    ]
    assert plain["option_groups"][0]["effects"]["open"]["value"] == -250
    assert plain["option_groups"][0]["switch"]["whole"] is True
    assert plain["proof"]["held"] is True
    assert plain["interactions"][0]["option_groups"] == ["SLUB_DEBUG_ON", "DEBUG_LIST"]

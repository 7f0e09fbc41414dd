# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of a comparison: golden files, and what holds of any."""

import json
import re
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost, Iterations, LeftWork, RunCounts
from kdelta.infer.effects.by_code import with_code
from kdelta.infer.effects.effects import MARGIN, compare_runs
from kdelta.infer.effects.gains import PathGain, Reach
from kdelta.report.kind import ALL
from kdelta.report.model import KernelRuns, Mismatch
from kdelta.spec.note import SpecNote
from kdelta.studies.compare.answer import LEAST_PPM
from kdelta.studies.compare.document import facts_of
from kdelta.studies.compare.first_screen import LINES
from kdelta.studies.compare.model import Compared, CompareReport
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.forms import FORMS
from tests.report.example import report
from tests.report.example_cycles import with_cycles
from tests.report.shown import stored
from tests.report.test_text import against_golden, fits_a_mail, several
from tests.synthetic import Function, other, own, region, run

OPERATIONS = 44


def first_screen_of(reports: list[CompareReport], least: Fraction = MARGIN) -> str:
    """What the command prints of them."""
    one = stored("compare", *reports)
    shown = {LEAST_PPM: int(least * 10**6)}
    return FORMS["text"].render(msgspec.structs.replace(one, shown=shown))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("first-screen.txt", lambda: first_screen_of([report()])),
        ("first-screen-several.txt", lambda: first_screen_of([several()])),
        ("first-screen-cycles.txt", lambda: first_screen_of([with_cycles("zen3")])),
    ],
)
def test_golden(name: str, text: "object") -> None:
    assert callable(text)
    against_golden(name, text())


LIKE = {"cpu": "EPYC-Milan,family=25", "cpu_like": "AMD Zen 4: EPYC 9004"}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {**LIKE, "force": "fsrm"},
            "operations of syscalls, as on AMD Zen 4: EPYC 9004, by instructions",
        ),
        (LIKE, "as on AMD Zen 4: EPYC 9004 without its forced features, by "),
        ({"cpu": "qemu64"}, "operations of syscalls, by instructions executed, not time: "),
        (
            {"cpu": "qemu64", "cpus": 2},
            "operations of syscalls, 2 CPUs, by instructions executed, ",
        ),
        (
            {**LIKE, "force": "fsrm", "cpus": 4},
            "as on AMD Zen 4: EPYC 9004, 4 CPUs, by instructions",
        ),
        (
            {**LIKE, "cpu": "EPYC-Milan,family=25,-hypervisor", "force": "fsrm"},
            "operations of syscalls, bare-metal paths of an AMD Zen 4: EPYC 9004, by instructions",
        ),
    ],
)
def test_the_first_sentence_names_the_default_cpu_and_several(
    facts: dict[str, str | int], words: str
) -> None:
    found = msgspec.structs.replace(report(), machine={**report().machine, **facts})
    first = " ".join(first_screen_of([found]).partition("\n\n")[0].split())
    assert words in first
    named = [text for name, text in facts_of([found]) if name == "CPU"]
    assert named == ["AMD Zen 4: EPYC 9004, since none was named"] * ("cpu_like" in facts)


def test_a_cpu_that_was_named_is_the_one_in_the_first_sentence() -> None:
    named = with_cycles("zen3")
    found = msgspec.structs.replace(named, machine={**named.machine, **LIKE})
    first = " ".join(first_screen_of([found]).partition("\n\n")[0].split())
    assert "as on AMD Zen 3: EPYC 7003, by instructions" in first
    assert "forced" not in first
    assert named.cpu
    guest = msgspec.structs.replace(named.cpu, name="zen3:guest")
    found = msgspec.structs.replace(found, cpu=guest)
    first = " ".join(first_screen_of([found]).partition("\n\n")[0].split())
    assert "a guest's paths on an AMD Zen 3: EPYC 7003, by instructions" in first


def sides(spec: str, release: str = "") -> KernelRuns:
    return KernelRuns(spec, "0" * 64, release, ())


def table(changes: list[int], base: KernelRuns, other: KernelRuns) -> CompareReport:
    """Operations of 10,000 instructions that change by so many hundredths of a per cent."""
    names = [f"operation-{number}" for number in range(len(changes))]
    runs = [
        [run(*(region(name, {own("f"): 100 * (10_000 + more)}) for name, more in rows))] * 2
        for rows in (zip(names, [0] * len(names), strict=True), zip(names, changes, strict=True))
    ]
    return CompareReport("syscalls", {"name": "tcg"}, base, (Compared(other, compare_runs(*runs)),))


A, B = sides("deb:linux-image-a=6.1.192-2"), sides("deb:linux-image-b=6.12.117-1", "6.12.117")


@given(st.lists(st.integers(-9_000, 9_000), min_size=1, max_size=OPERATIONS))
def test_any_table_fits_a_screen_and_each_operation_is_listed_or_counted(
    changes: list[int],
) -> None:
    text = first_screen_of([table(changes, A, B)])
    lines = text.splitlines()
    fits_a_mail(text)
    assert len(lines) <= LINES
    answer = " ".join(text.partition("\n\n")[0].split())
    assert answer.startswith("Linux 6.12.117-1 against 6.1.192-2, ")
    body = text.partition("\n\n")[2].splitlines()
    rows = [line for line in body if line.startswith("operation-") and "," not in line]
    more = [int(line.split()[1]) for line in lines if re.match(r"- \d+ more ", line)]
    large = [change for change in changes if abs(change) >= 50]
    others = len(changes) - len(large)
    assert len(rows) + sum(more) == len(large) + (others if others <= 5 or not large else 0)
    slower, faster = (sum(sign * change > 0 for change in large) for sign in (1, -1))
    for count, word in ((slower, "slower"), (faster, "faster")):
        assert (f"{count} {word}" in answer) == bool(count)
    small = sum(0 < abs(change) < 50 for change in changes)
    assert (f"{small} changed by less than 0.5%" in answer) == bool(small)


def test_equal_operations_without_others_have_rows_with_their_figures() -> None:
    text = first_screen_of([table([0, 0, 3], A, B)])
    assert "+3 (+0.03%)" in text
    assert "2 same" in " ".join(text.split())
    rows = [line.split()[:4] for line in text.splitlines() if line.startswith("operation-")]
    assert ["operation-0", "10000", "10000", "0%"] in rows
    assert ["operation-2", "10000", "10003", "+3"] in rows


def test_the_worst_and_the_best_are_in_the_answer_with_the_function_that_did_it() -> None:
    text = " ".join(first_screen_of([table([100, 700, -200, -300], A, B)]).split())
    assert "2 slower, 2 faster." in text
    assert "Slower by most: operation-1 +7.00% (+700 f)." in text
    assert "Faster by most: operation-3 -3.00% (-300 f)." in text


@pytest.mark.parametrize(
    ("spread", "row"),
    [
        (0, ["10000", "10712", "+7.12%", "exact"]),
        (10, ["10000", "10712", "+7.12%", "+-0.10%"]),
        (42, ["10000", "10712", "+7.1%", "+-0.5%"]),
        (300, ["10000", "10712", "+7%", "+-3%"]),
        (3000, ["10000", "10712", "+7%", "+-30%"]),
    ],
)
def test_a_change_has_the_decimals_that_its_interval_supports(spread: int, row: list[str]) -> None:
    """Of four runs an interval is the sum of both ranges on either side."""
    runs = [
        [run(region("op", {own("f"): 100 * (insns + more)})) for more in (-far, 0, 0, far)]
        for insns, far in ((10_000, 0), (10_712, spread // 2))
    ]
    found = CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*runs)),))
    text = first_screen_of([found])
    assert [line.split()[1:5] for line in text.splitlines() if line.startswith("op ")] == [row]
    assert "in per cent of the base, by all runs, 4 a kernel." in " ".join(text.split())


def test_a_smaller_margin_lists_what_a_larger_one_counts() -> None:
    found = table([10, 600, 0, 0, 0, 0, 0], A, B)
    assert "\noperation-0" not in first_screen_of([found])
    assert "\n- less than 0.5%: operation-0\n" in first_screen_of([found])
    assert "\noperation-0" in first_screen_of([found], Fraction(1, 1000))


def test_kernels_of_one_version_are_named_by_their_changes() -> None:
    one = sides("~/linux", "6.12.117")
    text = first_screen_of(
        [table([100], one, msgspec.structs.replace(one, spec="~/linux +x.patch"))]
    )
    assert text.startswith("~/linux with x.patch against ~/linux without, 1 operation of syscalls")
    assert "\ndiffer in patches\nkernel    tree:~/linux\n" in text
    assert re.search(r"^operation +without +with x.patch +change", text, re.MULTILINE)


def test_the_stored_comparison_is_shown_as_it_was_asked_for() -> None:
    one = stored("compare", table([10, 600], A, B))
    text = FORMS["text"].render
    assert text(one) == first_screen_of([table([10, 600], A, B)])
    shown = msgspec.structs.replace(one, shown={LEAST_PPM: 0})
    assert text(shown) == first_screen_of([table([10, 600], A, B)], Fraction(0))
    assert "1 operation is the same" in text(
        msgspec.structs.replace(stored("compare", report()), shown={ALL: 1})
    )


def test_a_wide_interval_is_unresolved_and_names_the_runs_it_takes() -> None:
    base = {
        "calm": (100, 100),
        "shaken": (9_000, 11_000),
        "stirred": (9_999, 10_000),
        **{f"still-{at}": (at, at) for at in range(5)},
        "slower": (100, 100),
    }
    other = base | {"shaken": (10_000, 10_000), "stirred": (10_000, 10_001)}
    other |= {"slower": (200, 200)}
    runs = [
        [run(*(region(name, {own("f"): side[name][at]}) for name in side)) for at in range(2)]
        for side in (base, other)
    ]
    found = CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*runs)),))
    text = " ".join(first_screen_of([found]).split())
    assert "unresolved: shaken (-20 to +20%; 8 runs a side would probably decide)" in text
    assert "same within 0.03%: stirred" in text
    assert "same: calm, still-0" in text


def test_the_default_cpu_is_compared_with_the_real_one_in_every_form() -> None:
    """On the first screen in a line, which is short whatever the operation is called."""
    (compared,) = report().others
    name = next(one.name for one in compared.effects.operations if one.costs)
    paths = ("address spaces kept apart by PCID",)
    gain = PathGain(name, paths, Reach(0, 166), Reach(6, 83), Reach(-160, 83))
    mismatch = Mismatch(paths[0], f"{paths[0]}: flushes (no pcid)", ("base", "other"), (name,))
    compared = msgspec.structs.replace(compared, mismatches=(mismatch,), gains=(gain,))
    machine = {**report().machine, **LIKE, "force": "fsrm"}
    found = msgspec.structs.replace(report(), machine=machine, others=(compared,))
    screen = first_screen_of([found])
    (line,) = [one for one in screen.splitlines() if "not as on a real CPU" in one]
    assert line.startswith("- not as on a real CPU: 1 path; by their bounds ")
    assert len(line) <= 80
    plain = msgspec.structs.replace(found, others=report().others)
    assert len(screen.splitlines()) <= LINES
    assert "real CPU" not in first_screen_of([plain])
    one = stored("compare", found)
    for form in ("html", "markdown"):
        text = FORMS[form].render(one)
        assert "Not as on a real AMD Zen 4: EPYC 9004" in text
        assert "flushes (no pcid)" in text
        assert "-160 to +83" in text
    assert '"gains"' in FORMS["json"].render(one)


def screen_of(base: dict[Function, int], changed: list[dict[Function, int]]) -> str:
    """Of one operation of 100 iterations; of the other kernel so many runs."""
    sides = [
        [run(region("op", {key: 100 * insns for key, insns in one.items()}, 100)) for one in side]
        for side in ([base] * len(changed), changed)
    ]
    found = CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*sides)),))
    return " ".join(first_screen_of([found]).split())


def test_what_other_tasks_do_is_named_with_what_is_not_known_of_it() -> None:
    base = {own("f"): 10_000, other("rcu"): 0}
    known = screen_of(base, [{own("f"): 9_000, other("rcu"): 500}] * 4)
    assert "1 faster" in known
    assert "- other tasks meanwhile, instructions: op +500" in known
    varied = [{own("f"): 9_000, other("rcu"): each} for each in (0, 1200, 0, 1200)]
    assert "- other tasks meanwhile, instructions: op +600 +-1200" in screen_of(base, varied)
    small = [{own("f"): 9_000, other("rcu"): each} for each in (0, 400, 0, 400)]
    assert "other tasks" not in screen_of(base, small).partition("Instructions of")[0]


def test_what_is_left_hides_no_other_tasks_of_another_operation() -> None:
    left = region("left", {own("f"): 10_000}, 1)
    sides = [
        [
            run(
                msgspec.structs.replace(left, left=LeftWork(insns, 1) if insns else None),
                region("meanwhile", {own("f"): 10_000, other("rcu"): insns}, 1),
            )
        ]
        * 4
        for insns in (0, 700)
    ]
    found = CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*sides)),))
    text = " ".join(first_screen_of([found]).split())
    assert "- left to other tasks, instructions: left +700 - other tasks meanwhile, " in text
    assert "meanwhile, instructions: meanwhile +700" in text


def test_a_row_without_a_word_whose_interval_excludes_zero_says_why() -> None:
    """The mean is larger than before, and the median smaller."""
    none = (0,) * 100
    sides = [
        [run(msgspec.structs.replace(made, iterations=Iterations(none, each, none, none)))] * 4
        for each in ((1_000,) * 100, (990, 990, 1_100, 990, 1_100) * 20)
        for made in [region("op", {own("f"): sum(each)}, 100)]
    ]
    found = CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*sides)),))
    row = r"op +1000 +1034 +\+3.40% +exact +unresolved: the mean and the median iteration"
    text = first_screen_of([found])
    assert re.search(row, text)
    assert text.count("median") == 1
    base = {own("f"): 1_000}
    noisy = screen_of(base, [{own("f"): each} for each in (900, 1_300, 900, 1_300)])
    assert " unresolved - " in noisy  # the row has the interval


def test_code_that_costs_more_is_named_where_runs_vary_by_more() -> None:
    turns = (0, 90_000, -40_000, 55_000, 7_000)
    sides = [
        [
            run(
                region("still", {own("g"): 50_000 * 100}),
                region("send", {own("f"): (50 + more) * 100, own("turn"): 10**6 + by}),
                region("ping", {own("f"): (50 + more) * 100, own("turn"): 10**9 + by}),
            )
            for by in turns
        ]
        for more, turns in ((0, (0,) * 5), (40, turns))
    ]
    code = {name: {("kernel", "f")} for name in ("send", "ping")}
    effects = with_code(compare_runs(*sides), lambda: code)
    text = first_screen_of([CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, effects),))])
    answer = " ".join(text.partition("\n\n")[0].split())
    assert "2 same, 1 unresolved." in answer
    assert answer.endswith("Exact, but less than runs vary by: +40 f in send and 1 other.")
    rows = [line for line in text.splitlines() if line.endswith("+40 f")]
    assert [line.split()[0] for line in rows] == ["send", "ping"]
    assert "unresolved: +40 f" in rows[0]


def test_paths_of_a_real_cpu_without_a_bound_say_so() -> None:
    (compared,) = report().others
    mismatch = Mismatch("PCID", "PCID: flushes (no pcid)", ("base",), ("getppid",))
    compared = msgspec.structs.replace(compared, mismatches=(mismatch,))
    text = first_screen_of([msgspec.structs.replace(report(), others=(compared,))])
    assert "- not as on a real CPU: 1 path; how much they cost there is not known" in text


def test_paths_of_a_real_cpu_on_which_no_operation_depends_are_bounded_by_zero() -> None:
    (compared,) = report().others
    mismatch = Mismatch("PCID", "PCID: flushes (no pcid)", ("base",), ())
    compared = msgspec.structs.replace(compared, mismatches=(mismatch,))
    text = first_screen_of([msgspec.structs.replace(report(), others=(compared,))])
    assert "- not as on a real CPU: 1 path; their bound is 0" in text


def test_functions_of_one_purpose_are_one_row_of_their_table() -> None:
    base = {own("kmem_cache_alloc"): 60, own("gone"): 20, own("same"): 900}
    changed = {own("kmem_cache_alloc_noprof"): 90, own("new"): 7, own("same"): 900}
    text = screen_of(base, [changed] * 4)
    for row in (
        "kmem_cache_alloc_noprof (was kmem_cache_alloc) +30 +50.0% 60 90",
        "gone -20 to 0 20 0",
        "new +7 from 0 0 7",
        "total +17 +1.73% 980 997",
    ):
        assert row in text


def test_variants_have_their_certainty_and_what_is_no_plain_instruction() -> None:
    def runs(*insns: int, specials: int = 0) -> list[RunCounts]:
        kinds = {"port-io": specials} if specials else {}
        return [
            run(region("op", {own("f"): Cost(100 * one, specials=kinds)}, 100)) for one in insns
        ]

    base = runs(1_000, 1_000, 1_000, 1_000)
    others = [
        Compared(KernelRuns(f"image:/{name}", "0" * 64, "", ()), compare_runs(base, found))
        for name, found in (
            ("exact", runs(*[1_100] * 4)),
            ("noisy", runs(1_090, 1_110, 1_090, 1_110)),
            ("port", runs(*[1_000] * 4, specials=100)),
        )
    ]
    text = first_screen_of([CompareReport("syscalls", {"name": "tcg"}, A, tuple(others))])
    assert re.search(r"op +1000 +\+10.0% exact +\+10% \+-2% +slower 0% exact\n", text)
    assert "- besides instructions, /port: op +1 port-io\n" in text


def test_the_same_sum_of_other_functions_is_apart_from_the_same_code() -> None:
    base = {own("f"): 100, own("g"): 900}
    rest = {own(f"many-{at}"): 10 for at in range(9)}
    names = [region(f"op-{at}", {key: 100 * n for key, n in base.items()}, 100) for at in range(6)]
    sides = [
        [run(*names, region("op", {key: 100 * n for key, n in {**one, **rest}.items()}, 100),
             region("up", {own("f"): 100 * more}, 100))] * 4
        for one, more in ((base, 100), ({own("f"): 150, own("g"): 850}, 200))
    ]  # fmt: skip
    found = CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*sides)),))
    text = " ".join(first_screen_of([found]).split())
    assert "- same: op-0, op-1, op-2, op-3, op-4, op-5 -" in text
    assert re.search(r"- same in sum: op \((\+50 f|-50 g)\)", text)


def alike() -> CompareReport:
    """Two operations whose functions change alike, and one of its own; both kernels warn."""
    functions = {"write-1b": {}, "write-64k": {}, "uname": {own("names"): 500}}
    sides_ = [
        [
            run(
                *(
                    region(name, {own("f"): 100 * cost, own("copy"): 900 + len(name), **more})
                    for name, more in functions.items()
                ),
                warnings=("the guest never became quiet",),
            )
        ]
        * 4
        for cost in (1000, 1100)
    ]
    sides_[1] = [
        run(*one.regions[:2], region("uname", {own("names"): 900}), warnings=one.warnings)
        for one in sides_[1]
    ]
    return CompareReport("syscalls", {"name": "tcg"}, A, (Compared(B, compare_runs(*sides_)),))


def test_a_table_that_operations_share_is_printed_once() -> None:
    first = first_screen_of([alike()])
    assert "\nwrite-1b, as write-64k, instructions an iteration\n" in first
    assert len(re.findall(r"^f  .*\+100 ", first, re.MULTILINE)) == 1
    kept = stored("compare", alike())
    whole = FORMS["text"].render(msgspec.structs.replace(kept, shown={ALL: 1}))
    assert "\n+100 instructions, shared by 2 operations: write-1b, write-64k\n" in whole
    assert len(re.findall(r"^f  .*\+100 ", whole, re.MULTILINE)) == 1
    page = FORMS["html"].render(kept)
    links = set(re.findall(r'href="#(functions-of-[^"]*)"', page))
    assert len(links) == 2
    assert all(f'id="{one}"' in page for one in links)


def test_what_was_asked_for_and_lost_is_on_the_first_screen_and_other_notes_with_all() -> None:
    lost = SpecNote("this tree does not have CONFIG_GONE", lost=True)
    idle = SpecNote("x.config changes nothing: what it sets is so already")
    found = table([0, 700], A, B)
    with_notes = [
        msgspec.structs.replace(side, notes=notes)
        for side, notes in ((found.base, (lost,)), (found.others[0].side, (lost, idle)))
    ]
    others = (msgspec.structs.replace(found.others[0], side=with_notes[1]),)
    found = msgspec.structs.replace(found, base=with_notes[0], others=others)
    text = first_screen_of([found])
    assert "- base, other: this tree does not have CONFIG_GONE\n" in text
    assert "changes nothing" not in text
    kept = stored("compare", found)
    whole = FORMS["text"].render(msgspec.structs.replace(kept, shown={ALL: 1}))
    assert "- base, other: this tree does not have CONFIG_GONE\n" in whole
    assert "- other: x.config changes nothing: what it sets is so already\n" in whole
    base, other = (
        json.loads(FORMS["json"].render(kept))["machines"][0][side] for side in ("base", "others")
    )
    assert base["notes"] == [{"text": lost.text, "lost": True}]
    assert other[0]["side"]["notes"][1] == {"text": idle.text, "lost": False}


def test_a_warning_that_holds_for_both_kernels_is_printed_once() -> None:
    text = first_screen_of([alike()])
    assert "\n- base, other: the guest never became quiet (4 runs)\n" in text
    assert text.count("became quiet") == 1


def test_path_margin_judges_and_lists_unless_operations_are_named() -> None:
    asked = CompareRequest(base="a", others=("b",))
    some = msgspec.structs.replace(asked, operations=("stat",))
    named = msgspec.structs.replace(some, path_margin=Fraction(1, 100))
    found = [(one.judged_margin, one.listed_from) for one in (asked, some, named)]
    assert found == [(MARGIN, MARGIN), (MARGIN, 0), (named.path_margin, named.path_margin)]

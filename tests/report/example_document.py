# SPDX-License-Identifier: GPL-2.0-or-later
"""One document with every kind of block, and with all that each may have."""

from kdelta.report.document import (
    Answer,
    Case,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Document,
    Facts,
    Failure,
    Flames,
    Fold,
    Items,
    Made,
    Outcome,
    Point,
    Prose,
    Section,
    Spread,
    Suite,
    Table,
    Verbatim,
)
from tests.report.html.pages import two_flames

LONG = "a sentence that is so long that it has to be broken in any form whose lines have an end"

FIGURES = Table(
    "figures",
    "What each operation costs",
    (
        Column("operation", "name", "the workload's name for it"),
        Column("base", "number", "instructions an iteration", sums=True),
        Column("other", "number", sums=True),
        Column("verdict", "word"),
        Column("because"),
    ),
    (
        (
            Cell("getppid", link="fold"),
            Cell("337"),
            Cell("214"),
            Cell("faster", tone="faster"),
            Cell(LONG),
        ),
        (
            Cell("a|b <c> `d` *e*"),
            Cell("1000000"),
            Cell("2000000.25"),
            Cell("slower", tone="slower"),
            Cell(""),
        ),
        (Cell("empty"), Cell("-"), Cell(""), Cell("same"), Cell("nothing", sort=1.0)),
    ),
    total=(Cell("total"), Cell("1000337"), Cell("2000214.25"), Cell(""), Cell("")),
    foot=((Cell("per cent"), Cell("100"), Cell("200"), Cell(""), Cell("")),),
    filtered=True,
)

SMALL = Table(
    "small",
    "Two rows",
    (Column("a", "name"), Column("b", "number")),
    (
        (Cell("x"), Cell("-1")),
        (Cell("y"), Cell("+1.50%", sort=1.5)),
    ),
)

POINTS = (
    Point("getppid", -36.5, -36.5, -36.5, "faster"),
    Point("chdir", 12.0, 9.0, 1500.0, "slower"),
)
CHARTS = Charts(
    (
        Chart("effects", POINTS, "%", "Changes", "Two changes around zero."),
        Chart(
            "history",
            POINTS,
            "instructions",
            "One figure over two kernels",
            "It falls, then rises.",
        ),
        Chart(
            "spreads",
            (
                Spread("open", (1.0, 2.0, 2.5, 4.0), 2.0, "base"),
                Spread("close", (3.0,), 1.0, "other"),
            ),
            "cycles",
            "Layouts",
            "Two ensembles.",
        ),
    )
)

EVERYTHING = Document(
    title="2 slower & 1 faster",
    heading="6.12 against 6.1",
    made=Made("compare", "Is B slower than A?", "kdelta compare A 'B C'", "1.2.3", 1767225600.0),
    answers=(
        Answer(
            (f"Two are slower: {LONG}.", "One is faster."),
            (Chip("slower", 2, "slower"), Chip("faster", 1)),
            "A",
            "slower",
        ),
        Answer(("All are the same.",), about="B"),
    ),
    facts=(("base", "Linux 6.1 <x86-64>"), ("other", LONG)),
    sections=(
        Section(
            "figures",
            "Figures",
            (FIGURES, CHARTS, Prose("A paragraph. " + LONG, "slower"), Prose("Another.")),
        ),
        Section(
            "details",
            "Details",
            (
                Chart("effects", POINTS[:1], "%", "One", "One change.", wide=True),
                Items(("first", LONG)),
                Facts((("key", "value"),)),
                Verbatim("[    0.000000] Linux\n\ttab & <tag>\n"),
                Verbatim("kdelta show 1", command=True),
                Verbatim("-" * 100, wide=True),
                Flames("flames", two_flames()),
                Fold("One table", (SMALL,), "fold"),
                Fold(
                    "More",
                    (Prose("inside"), Fold("Deeper", (Items(("deep",)),))),
                    open=True,
                    always=True,
                ),
            ),
            detail=True,
        ),
    ),
    environment=(Section("machine", "Machine", (Facts((("QEMU", "10.0.13"),)),), detail=True),),
    suites=(
        Suite(
            "kernels",
            (
                Case("6.1 #1", Outcome.OK, "booted"),
                Case("6.12", Outcome.FAILED, "did not boot", ("a line", "another")),
            ),
        ),
        Suite(
            "path",
            (
                Case("getppid", Outcome.SLOWER, "slower (+1%)", ("337 -> 340",)),
                Case("stat", Outcome.UNKNOWN, "not comparable"),
            ),
        ),
    ),
    failures=(Failure("6.12: panic", ("line one", "line <two>")), Failure("6.13: build-failed")),
    notices=("Cut short.",),
    notes=("A note.", "A note.", LONG),
    warnings=("A warning & more.",),
)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of what crossing into the kernel costs."""

from fractions import Fraction

from kdelta.infer.crossing import OperationCrossing, Share
from kdelta.infer.ensembles import Interval
from kdelta.infer.estimate import ZERO
from kdelta.report.crossing_model import ARM_NAMES, ARM_TEXTS, CrossingReport
from kdelta.report.crossing_text import (
    added_up,
    crossing_text,
    gained,
    share_name,
    share_text,
    shown_total,
)
from kdelta.report.html import common, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Section,
    Table,
)
from kdelta.report.outlines.crossing import crossing_sentence
from kdelta.report.stored import Stored

_OPERATIONS = 60


def document(stored: Stored, report: CrossingReport) -> Document:
    """The page of the arms."""
    total = shown_total(report.found)
    failures = common.failures(report.sides)
    text = crossing_text(report, stored.shown.get("explain", _OPERATIONS))
    return Document(
        title="kdelta crossing",
        question=stored.question,
        answers=(Answer((f"{crossing_sentence(total)}.", *failures), tone="same"),),
        facts=(
            ("workload", report.workload),
            *((ARM_NAMES[arm.name], ARM_TEXTS[arm.name]) for arm in report.arms),
            *((("priced", f"{report.cpu.name} ({report.cpu.title})"),) if report.cpu else ()),
        ),
        sections=(
            Section("arms", f"The arms: {total.name}, one iteration", _arms(total)),
            Section("operations", "Operations", (_operations(report),)),
            *_chosen(report),
            *(common.unlike_section(report.cpu.name, report.unlike) if report.cpu else ()),
            *common.notes([("Of the figures", report.notes), ("Warnings", report.warnings)]),
            common.environment(stored, report.machine, report.sides),
            common.as_text(text),
        ),
    )


def _arms(total: OperationCrossing) -> tuple[Block, ...]:
    if not total.arms:
        return ()
    return (_costs(total), *_shares(total), _specials(total))


def _costs(total: OperationCrossing) -> Table:
    columns = (
        Column("arm", "name"),
        Column("total", "number", "instructions of the tasks' own work"),
        Column("user", "number"),
        Column("system", "number"),
        Column("interrupts", "number", "executed meanwhile"),
        Column("other tasks", "number", "executed meanwhile"),
        Column("model cycles", "number", "of the path, without misses"),
    )
    rows = tuple(
        (
            Cell(ARM_NAMES[arm.arm]),
            *(
                _number(one.value)
                for one in (arm.insns, arm.user, arm.kernel, arm.interrupts, arm.other)
            ),
            _cycles(arm.cycles),
        )
        for arm in total.arms
    )
    return Table("arms-table", "What each arm executes", columns, rows)


def _shares(total: OperationCrossing) -> tuple[Block, ...]:
    if total.whole is None:
        return ()
    rows = [*total.shares, total.whole]
    insns, user, kernel = (
        added_up([getattr(share, figure) for share in rows])
        for figure in ("insns", "user", "kernel")
    )
    columns = (
        Column("part", "name"),
        Column("gained", "number", "instructions"),
        Column("user", "number"),
        Column("system", "number"),
        Column("share", "number", "of the whole gain"),
        Column("model cycles", "number", "gained, from the lowest prices to the highest"),
    )
    made = [
        _share_row(share, figures)
        for share, *figures in zip(rows, insns, user, kernel, strict=True)
    ]
    made[-1] = (Cell("whole"), *made[-1][1:])
    caption = "Where the gain is from; the parts add up to the whole"
    return (Table("shares", caption, columns, tuple(made[:-1]), foot=(made[-1],)),)


def _share_row(share: Share, printed: list[int]) -> tuple[Cell, ...]:
    return (
        Cell(share_name(share)),
        *(Cell(words.hundredths(value), value) for value in printed),
        Cell(share_text(share), float(share.of_whole or 0)),
        _cycles(share.cycles),
    )


def _specials(total: OperationCrossing) -> Table:
    kinds = sorted({kind for arm in total.arms for kind in arm.specials})
    columns = (
        Column("instruction", "name"),
        *(Column(ARM_NAMES[arm.arm], "number") for arm in total.arms),
    )
    rows = tuple(
        (Cell(kind), *(_number(arm.amounts.get(kind, ZERO)) for arm in total.arms))
        for kind in kinds
    )
    return Table("specials", "Special instructions of the tasks' own work", columns, rows)


def _operations(report: CrossingReport) -> Table:
    arms = [arm.name for arm in report.arms]
    columns = (
        Column("operation", "name"),
        *(Column(ARM_NAMES[name], "number") for name in arms),
        Column("gain", "number", "of its instructions in the first arm"),
    )
    rows = []
    for one in report.found.operations:
        having = [one.arm(name) for name in arms]
        cells = (_number(arm.insns.value) if arm else Cell("") for arm in having)
        part = gained(one)
        rows.append((Cell(one.name), *cells, Cell(words.percent(100 * part), float(part))))
    return Table(
        "operations-table", "Instructions an iteration", columns, tuple(rows), filtered=True
    )


def _chosen(report: CrossingReport) -> tuple[Section, ...]:
    """What the kernels said of vulnerabilities."""
    names = sorted({name for arm in report.arms for name in arm.chose})
    if not names:
        return ()
    arms = [arm for arm in report.arms if arm.chose]
    columns = (
        Column("vulnerability", "name"),
        *(Column(ARM_NAMES[arm.name]) for arm in arms),
    )
    rows = tuple((Cell(name), *(Cell(arm.chose.get(name, "")) for arm in arms)) for name in names)
    table = Table("chosen-table", "As the kernel of each arm said", columns, rows)
    blocks: list[Block] = [table]
    priced = {**report.found.assumed, **report.found.unpriced}
    if priced:
        facts = tuple((kind, _cycles(price).text) for kind, price in priced.items())
        blocks.append(Facts(facts))
    return (Section("chosen", "What the kernels chose", tuple(blocks)),)


def _number(value: Fraction) -> Cell:
    return Cell(words.number(value), float(value))


def _cycles(found: Interval | None) -> Cell:
    return Cell(words.ends(found.low, found.high), found.low) if found else Cell("")

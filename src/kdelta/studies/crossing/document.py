# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of what crossing into the kernel costs."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.cycles.crossing import Crossing, OperationCrossing, Share
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.estimate import ZERO
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Column,
    Document,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.stored import Stored
from kdelta.studies.crossing.model import NOT_AFFECTED, VARIANT_NAMES, VARIANT_TEXTS, CrossingReport

HEADS = dict(zip(VARIANT_NAMES, ("stock", "mit.off", "kernel", "direct", "no entry"), strict=True))
"""By variant, a name that fits above a column."""


def crossing_document(stored: Stored) -> Document:
    """Return the document of the variants."""
    report = stored.one(CrossingReport)
    total = shown_total(report.found)
    sentence = crossing_sentence(total)
    return Document(
        title=f"{report.workload}: {sentence} on {report.variants[0].side.spec}",
        made=common.made_of(stored),
        answers=(Answer((f"{sentence[:1].upper()}{sentence[1:]}.",), tone="same"),),
        facts=(
            ("workload", report.workload),
            *(
                (VARIANT_NAMES[variant.name], VARIANT_TEXTS[variant.name])
                for variant in report.variants
            ),
            *((("priced", f"{report.cpu.name} ({report.cpu.title})"),) if report.cpu else ()),
            ("runs", f"{_runs(report)} a variant, perturbed by {words.PERTURBED}"),
            ("counted", words.COUNTED),
        ),
        sections=(
            Section(
                "variants",
                f"The variants: {_title(total, report)}, one iteration",
                _variants(total),
            ),
            Section("operations", "Operations", tuple(_operations(report))),
            *_chosen(report),
            *(common.unlike_section(report.cpu.name, report.mismatches) if report.cpu else ()),
        ),
        environment=common.environment(stored, report.machine, report.sides),
        suites=(
            common.kernels_suite(report.sides),
            Suite("operations", tuple(map(_case, report.found.operations))),
        ),
        failures=common.failures(report.sides),
        notes=report.notes,
        warnings=report.warnings,
    )


def _title(total: OperationCrossing, report: CrossingReport) -> str:
    if total is not report.found.total:
        return total.name
    summed = len(report.found.operations) - len(report.found.left_out)
    return f"total of {words.counted(summed, 'operation')}"


def _runs(report: CrossingReport) -> str:
    return " and ".join(map(str, sorted({len(variant.side.runs) for variant in report.variants})))


def crossing_sentence(total: OperationCrossing) -> str:
    """Return what is gained in all, and which part of it is what."""
    if total.whole is None:
        return "nothing can be said: fewer than two variants ran"
    first = total.variants[0].insns.value
    gained = figures.percent(-100 * total.whole.insns / first) if first else "0%"
    shares = ", ".join(f"{share_name(one)} {share_text(one)}" for one in total.shares)
    return (
        f"from {VARIANT_NAMES[total.whole.before]} to {VARIANT_NAMES[total.whole.after]} {gained} "
        f"of instructions, of which {shares}"
    )


def _case(one: OperationCrossing) -> Case:
    # A gain is no verdict on a kernel: no case is slower.
    return Case(one.name, Outcome.OK if one.whole else Outcome.UNKNOWN, crossing_sentence(one))


def _variants(total: OperationCrossing) -> tuple[Block, ...]:
    return (_costs(total), *_shares(total), _specials(total)) if total.variants else ()


def _costs(total: OperationCrossing) -> Table:
    columns = (
        Column("variant", "name"),
        Column("total", "number", "instructions of the tasks' own work"),
        Column("user", "number"),
        Column("system", "number"),
        Column("gain", "number", "of the total of the first variant"),
        Column("spread", "number", "of the total"),
        Column("interrupts", "number", "executed meanwhile"),
        Column("other tasks", "number", "executed meanwhile"),
        Column("model cycles", "number", "of the path, without misses"),
    )
    first = total.variants[0].insns.value
    rows = tuple(
        (
            Cell(VARIANT_NAMES[variant.name]),
            *(cells.number(one.value) for one in (variant.insns, variant.user, variant.kernel)),
            cells.percent(100 * (first - variant.insns.value) / first if first else None),
            cells.spread(variant.insns),
            *(cells.number(one.value) for one in (variant.interrupts, variant.other)),
            _cycles(variant.cycles),
        )
        for variant in total.variants
    )
    return Table("variants-table", "What each variant executes", columns, rows)


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
        Column("gained", "number", "instructions", sums=True),
        Column("user", "number", sums=True),
        Column("system", "number", sums=True),
        Column("share", "number", "of the whole gain"),
        Column("model cycles", "number", "gained, from the lowest prices to the highest"),
    )
    made = [
        _share_row(share, *printed)
        for share, *printed in zip(rows, insns, user, kernel, strict=True)
    ]
    made[-1] = (Cell("whole"), *made[-1][1:])
    caption = "Where the gain is from; the parts add up to the whole"
    return (Table("shares", caption, columns, tuple(made[:-1]), made[-1]),)


def _share_row(share: Share, insns: int, user: int, kernel: int) -> tuple[Cell, ...]:
    return (
        Cell(share_name(share)),
        cells.difference(insns, share.insns),
        cells.difference(user, share.user),
        cells.difference(kernel, share.kernel),
        Cell(share_text(share), float(share.of_whole or 0)),
        _cycles(share.cycles),
    )


def _specials(total: OperationCrossing) -> Table:
    kinds = sorted({kind for variant in total.variants for kind in variant.specials})
    columns = (
        Column("instruction", "name"),
        *(Column(HEADS[variant.name], "number") for variant in total.variants),
    )
    rows = tuple(
        (Cell(kind), *(cells.number(variant.amounts.get(kind, ZERO)) for variant in total.variants))
        for kind in kinds
    )
    return Table("specials", "Special instructions of the tasks' own work", columns, rows)


def _operations(report: CrossingReport) -> Iterator[Block]:
    variants = [variant.name for variant in report.variants]
    columns = (
        Column("operation", "name"),
        *(Column(HEADS[name], "number") for name in variants),
        Column("gain", "number", "of its instructions in the first variant"),
    )
    rows = tuple(
        (
            Cell(one.name),
            *(
                cells.number(variant.insns.value) if variant else cells.NOTHING
                for variant in map(one.variant, variants)
            ),
            Cell(gain_text(one), float(part_gained(one))),
        )
        for one in sorted(report.found.operations, key=part_gained, reverse=True)
    )
    yield Table("operations-table", "Instructions an iteration", columns, rows, filtered=True)
    if left_out := ", ".join(report.found.left_out):
        yield Prose(f"Not in the total, since not every run has it: {left_out}.")


def _chosen(report: CrossingReport) -> tuple[Section, ...]:
    """What the kernels said of vulnerabilities, each answer once; and what prices are no more than
    assumed.
    """
    names = sorted({name for variant in report.variants for name in variant.chose})
    if not names:
        return tuple(_prices(report))
    columns = (Column("vulnerability", "name"), Column("the kernel said"), Column("of variant"))
    rows = [row for name in names for row in _answers(name, report)]
    table = Table("chosen-table", "As the kernel of each variant said", columns, tuple(rows))
    unaffected = len(names) - len({row[0].text for row in rows})
    text = f"In no variant affected by {unaffected} of {len(names)}."
    less = (Prose(text),) if unaffected else ()
    chosen = Section("chosen", "What the kernels chose", (table, *less))
    return (chosen, *_prices(report))


def _answers(name: str, report: CrossingReport) -> Iterator[tuple[Cell, ...]]:
    said: dict[str, list[str]] = {}
    for variant in report.variants:
        if name in variant.chose:
            said.setdefault(variant.chose[name], []).append(VARIANT_NAMES[variant.name])
    if set(said) != {NOT_AFFECTED}:
        for text, variants in said.items():
            yield (Cell(name), Cell(text), Cell(", ".join(variants)))


def _prices(report: CrossingReport) -> Iterator[Section]:
    """Prices that were neither published nor measured."""
    reasons = (
        (report.found.assumed, "assumed by the CPU's file"),
        (report.found.unpriced, "the file has none: from least to most"),
    )
    rows = tuple(
        (Cell(kind), _cycles(price), Cell(why))
        for priced, why in reasons
        for kind, price in priced.items()
    )
    if rows:
        columns = (Column("instruction", "name"), Column("cycles", "number"), Column("why"))
        caption = "Neither published nor measured; cycles beyond those of an instruction"
        yield Section("prices", "Prices", (Table("prices-table", caption, columns, rows),))


def _cycles(found: Interval | None) -> Cell:
    return cells.ends(found) if found else cells.NOTHING


def shown_total(found: Crossing) -> OperationCrossing:
    """What stands for all: of a single operation, that one."""
    return found.operations[0] if len(found.operations) == 1 else found.total


def added_up(values: Sequence[Fraction]) -> list[int]:
    """The values in hundredths, so that all but the last add up to it."""
    total = figures.scaled(values[-1])
    return [*figures.rounded_to_total(values[:-1], total), total]


def share_name(share: Share) -> str:
    """What was left out between two variants."""
    return " + ".join(share.parts)


def share_text(share: Share) -> str:
    """How much of the whole gain it is, in per cent."""
    return "-" if share.of_whole is None else f"{float(100 * share.of_whole):.1f}%"


def part_gained(one: OperationCrossing) -> Fraction:
    """Which part of its work in the first variant the last one does without."""
    first = one.variants[0].insns.value
    return one.whole.insns / first if one.whole and first else ZERO


def gain_text(one: OperationCrossing) -> str:
    """The same in per cent."""
    return f"{float(100 * part_gained(one)):.1f}%" if one.whole else "-"

# SPDX-License-Identifier: GPL-2.0-or-later
"""A mail about a commit that makes a kernel slower, as its people want to be told of it.

The form is that of Documentation/admin-guide/reporting-regressions.rst (whom to write to, the
subject, regzbot's line) and Documentation/process/submitting-patches.rst (how a commit is cited,
what the trailers are): read at 6.12.
"""

from collections.abc import Iterator, Sequence

import msgspec

from kdelta.report import figures
from kdelta.report.lines import finished, wrapped
from kdelta.spec.identity import short_id
from kdelta.studies.bisect.document import changed_regions, part_of_cost
from kdelta.studies.bisect.model import BisectReport, FoundCommit

REGIONS = 5
FUNCTIONS = 6
LIST = "regressions@lists.linux.dev"


class Regression(msgspec.Struct, frozen=True):
    """A mail about one commit: its headers as they are read, and its text."""

    headers: dict[str, str]
    body: str


def bisect_mails(report: BisectReport) -> str:
    """A mail for each commit that makes some region slower, or a sentence if there is none."""
    mails = [
        [*(f"{name}: {text}" for name, text in one.headers.items()), "", one.body.rstrip("\n")]
        for one in regressions(report)
    ]
    if not mails:
        return finished(["No commit was found that makes anything slower."])
    return finished("\n\n".join("\n".join(lines) for lines in mails).split("\n"))


def regressions(report: BisectReport) -> list[Regression]:
    """A mail for each commit that makes some region slower."""
    return [
        _mail(one, report)
        for one in report.found
        if any(effect.value > 0 for _, effect in changed_regions(one.effects, report))
    ]


def _measured(found: FoundCommit, regions: Sequence[str]) -> Iterator[str]:
    """Yield what each measure that counts for hardware says of these regions, on these builds."""
    for one in found.measured:
        texts = [
            f"{effect.region} {effect.word} ({figures.in_per_cent(effect.change)})"
            for effect in one.effects
            if effect.region in regions and effect.change
        ]
        if one.weighs and texts:
            yield f"By {one.measure}, on these two builds: {', '.join(texts)}."


def _mail(found: FoundCommit, report: BisectReport) -> Regression:
    commit = found.commit
    rows = changed_regions(found.effects, report)
    worst, effect = next(row for row in rows if row[1].value > 0)
    share = figures.percent(100 * part_of_cost(effect.value, worst))
    good, bad = report.names
    headers = {
        "To": commit.author,
        "Cc": LIST,
        "Subject": f"[REGRESSION] {worst.name} {share} by {commit.cited}",
    }
    lines = wrapped(
        f"commit {commit.cited} changes what the kernel executes for the workload "
        f"{' '.join(report.workloads)}, in {worst.unit} an iteration:",
        "",
        "",
    )
    lines.append("")
    for region, its in rows[:REGIONS]:
        value = figures.brief(its.value, 10)
        part = figures.percent(100 * part_of_cost(its.value, region))
        lines += wrapped(f"{region.name} {value} ({part}, {figures.spread(its)})", "  ", "    ")
        functions = found.functions.get(region.name, {})
        ranked = sorted(functions.items(), key=lambda item: -abs(item[1].value))[:FUNCTIONS]
        shown = [f"{name} {figures.brief(one.value, 10)}" for name, one in ranked]
        lines += wrapped(", ".join(shown), "    ", "    ") if shown else []
    lines.append("")
    lines += wrapped(
        f"{found.how[:1].upper()}{found.how[1:]}. It was found between {good} and {bad} "
        f"({report.commits} commits) with {len(report.builds)} kernels. The figures are executed "
        "instructions, counted under QEMU; where the code was linked to is no part of them.",
        "",
        "",
    )
    for paragraph in _measured(found, [region.name for region, _ in rows[:REGIONS]]):
        lines += wrapped(paragraph, "", "")
    facts = [f"{name} {value}" for name, value in report.machine.items() if value != ""]
    lines += wrapped(f"Machine: {', '.join(facts)}", "", "  ") if facts else []
    for word, side in zip(("good", "bad"), report.ends, strict=True):
        lines += wrapped(f"{word}: {side.release}, kernel {short_id(side.identity)}", "", "  ")
    lines += ["", f"#regzbot introduced: {commit.name}", ""]
    lines += wrapped("A patch that fixes it would carry, each on a line of its own:", "", "")
    lines += ["", f"  Fixes: {commit.cited}", "  Closes: <the address of this mail>"]
    return Regression(headers, "\n".join(lines) + "\n")

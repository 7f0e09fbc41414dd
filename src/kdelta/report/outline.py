# SPDX-License-Identifier: GPL-2.0-or-later
"""A report taken apart into sentences, tables and cases, from which forms are made that people mail
and paste, and that a CI reads. report/outlines/ makes it, for each kind of study.
"""

import enum

import msgspec


class Outcome(enum.StrEnum):
    """What a case means to somebody who waits for yes or no."""

    OK = "ok"
    SLOWER = "slower"
    FAILED = "failed"
    """Something was not built, booted or run."""
    UNKNOWN = "unknown"


class Case(msgspec.Struct, frozen=True):
    """What is known of one region, commit, patch or kernel. `name` stays the same from study to
    study; `verdict` says what was found, and `figures` what it is from, in lines.
    """

    name: str
    outcome: Outcome
    verdict: str
    figures: tuple[str, ...] = ()


class Suite(msgspec.Struct, frozen=True):
    """Cases that belong together: the regions of one kernel against another, say."""

    name: str
    cases: tuple[Case, ...]

    def count(self, *outcomes: Outcome) -> int:
        """How many cases have one of these outcomes."""
        return sum(case.outcome in outcomes for case in self.cases)


class Table(msgspec.Struct, frozen=True):
    """Rows of cells under their heads, the name first; `total` is the row below. `note` says what
    the figures are, `folded` that it is detail, which not everybody reads. `groups`: the second
    column has the same in rows that follow each other, and may stand above them instead.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] = ()
    note: str = ""
    folded: bool = False
    groups: bool = False

    @property
    def body(self) -> tuple[tuple[str, ...], ...]:
        """All rows, that of the total last."""
        return (*self.rows, self.total) if self.total else self.rows


class Failure(msgspec.Struct, frozen=True):
    """What was not built, booted or run, and how its console ended."""

    text: str
    console: tuple[str, ...] = ()


class Outline(msgspec.Struct, frozen=True):
    """The whole. `subject`: in some words; `short`: in sentences. `facts`: the environment."""

    subject: str
    short: tuple[str, ...]
    suites: tuple[Suite, ...] = ()
    tables: tuple[Table, ...] = ()
    failures: tuple[Failure, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

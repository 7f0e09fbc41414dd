# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta run --against` reports: the answer first, but for different output."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.infer.effects.gate import Exit
from kdelta.infer.profiles.system_calls import KernelCostChange, PartKind
from kdelta.report.document import Table
from kdelta.studies.against.document import against_document
from kdelta.studies.against.model import names_of
from tests.report.example_against import against_report, failed_against
from tests.report.shown import shown, stored, unwrapped


def test_the_first_sentence_is_the_answer() -> None:
    text = unwrapped("against", against_report(output=False))
    assert text.startswith(
        "./ls is slower than /opt/old/ls: 80400 instructions instead of 45200 (+77.9%). The "
        "system call that changed most is write: 200 calls instead of 100, +30000 instructions in "
        "the kernel."
    )
    assert "exit code 1, slower: command +77.9% instructions, with a margin of 1 %" in text


def test_fewer_calls_are_faster_and_equal_ones_the_same() -> None:
    faster = unwrapped("against", against_report(50, output=False))
    assert faster.startswith("./ls is faster than /opt/old/ls: 27600 instructions instead of 45200")
    same = unwrapped("against", against_report(100, output=False))
    assert same.startswith(
        "./ls is as fast as /opt/old/ls: 45200 instructions instead of 45200 (0%)."
    )
    assert "Both make the same system calls, at the same cost." in same


def test_calls_that_are_as_many_are_no_finding() -> None:
    """A call at the end of a program takes some instructions more or less by what is in memory."""
    found = against_report(100, output=False)
    (region,) = found.regions
    exit_group = KernelCostChange(PartKind.SYSTEM_CALL, "exit_group", 1, 1, 5000, 5012)
    for parts, words in (
        ((exit_group,), "Both make the same system calls, at about the same cost."),
        (
            (msgspec.structs.replace(exit_group, new_insns=9000),),
            "Both make the same system calls; that whose cost changed most is exit_group: +4000",
        ),
        (
            (exit_group, KernelCostChange(PartKind.SYSTEM_CALL, "read", 2, 1, 5000, 5001)),
            "The system call that changed most is read: 1 call instead of 2, +1 instructions",
        ),
    ):
        regions = (msgspec.structs.replace(region, parts=parts),)
        text = unwrapped("against", msgspec.structs.replace(found, regions=regions))
        assert words in text


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("./a x", "./b x", ("a", "b")),
        ("/one/p x", "/two/p x", ("/one/p", "/two/p")),
        ("./p 100000", "./p 101000", ("p 100000", "p 101000")),
        ("env A=1 ./old -v", "env A=1 ./new -v", ("env ./old", "env ./new")),
        ("./p", "./p --fast", ("p", "p --fast")),
        ("./p a b c", "./p a c", ("p b", "p")),
        ("./p a", "./p a", ("old p", "new p")),
        (f"./p {'x' * 99}", "./p y", (f"p {'x' * 40}...", "p y")),
    ],
)
def test_programs_are_named_by_what_differs(old: str, new: str, names: tuple[str, str]) -> None:
    assert names_of(old.split(), new.split()) == names


def test_different_output_comes_before_any_figure() -> None:
    text = shown("against", against_report())
    first = text.index("print different output (standard output)")
    assert first < text.index("80400")
    assert text.index("The first line that differs") < text.index("Old and new")


@pytest.mark.parametrize(
    ("margin", "exit_code"),
    [(0, Exit.SLOWER), (77, Exit.SLOWER), (78, Exit.NOT_SLOWER)],
)
def test_a_margin_decides_the_exit_code(margin: int, exit_code: Exit) -> None:
    found = against_report(200, Fraction(margin, 100))
    assert found.decision.exit is exit_code


def test_system_calls_add_up_to_the_kernels_work() -> None:
    found = against_document(stored("against", against_report()), against_report())
    (table,) = (
        block
        for section in found.sections
        for block in section.blocks
        if isinstance(block, Table) and block.id == "calls-table"
    )
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in (*table.rows, table.total)}
    assert rows["write"] == ["100", "200", "+100", "30000", "60000", "+30000"]
    assert rows["statx"] == ["0", "7", "+7", "0", "0", "0"]
    assert rows["entry and exit"] == ["", "", "", "4000", "8000", "+4000"]
    assert rows["total"] == ["", "", "", "34400", "68400", "+34000"]


def test_a_program_that_failed_is_no_verdict() -> None:
    text = unwrapped("against", failed_against())
    assert text.startswith("Exit code 125: cannot tell: old: workload-failed: old: exit 2.")

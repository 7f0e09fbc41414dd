# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as a mail that can be sent as it is."""

import email
import email.policy
import re
import subprocess

import msgspec
import pytest

from kdelta.host.invoked import command_line
from kdelta.report.document import Cell, Column, Table
from kdelta.report.text import WIDTH, table_lines
from kdelta.studies.bisect.mail import bisect_mails
from kdelta.studies.forms import mail
from tests.report import test_bisect_report
from tests.report.example import report
from tests.report.example_stored import EVERY, EXAMPLES
from tests.report.shown import stored


def parsed(text: str) -> "email.message.EmailMessage":
    found = email.message_from_bytes(text.encode(), policy=email.policy.default)
    assert isinstance(found, email.message.EmailMessage)
    assert not found.defects
    return found


def table_of(titles: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Table:
    columns = (Column(titles[0], "name"), *(Column(title, "number") for title in titles[1:]))
    return Table("t", "t", columns, tuple(tuple(map(Cell, row)) for row in rows))


@EVERY
def test_a_mail_is_one(name: str) -> None:
    text = mail(EXAMPLES[name])
    found = parsed(text)
    assert found["Subject"].startswith("[kdelta] " if name != "bisect" else "[REGRESSION] ")
    assert found["Date"].datetime.isoformat() == "2026-01-01T00:00:00+00:00"
    assert found.get_content_type() == "text/plain"
    head, _, body = text.partition("\n\n")
    assert found.get_content() == body
    assert max(map(len, head.splitlines())) <= 78
    assert text.isascii()


@EVERY
def test_a_mails_lines(name: str) -> None:
    """At most 76, save for a word that is longer and what must stay whole: names, the command."""
    body = mail(EXAMPLES[name]).partition("\n\n")[2]
    for line in body.splitlines():
        assert len(line) <= (WIDTH if name != "bisect" else 80) or " " not in line.strip(), line


def test_a_mail_says_what_and_how() -> None:
    body = mail(EXAMPLES["compare cycles"])
    order = [
        "In short\n--------\n- instructions executed: Linux 6.12.57 against 6.1.0, 10 operations",
        "workload-failed: signal 11 SIGSEGV (run ",
        "\nbase, 6.1.0: deb:linux-image-6.1.0",
        "identity 3f9a0c12be77)",
        "\nOperations\n----------\n",
        "\nslower (3)\n",
        "\nfaster (2)\n",
        "\nModel cycles and misses, in figures\n",
        "\nFunctions\n---------\n",
        "\nread-zero-64k: +1201 instructions",
        "\nNotes\n",
        "\nWarnings\n",
        "\nEnvironment\n",
        "machine   tcg, 1024 MiB, QEMU 7.2.22",
        "\nHow to reproduce it\n-------------------\n  kdelta compare 'a b' c\n",
    ]
    places = [body.index(text) for text in order]
    assert places == sorted(places)


def test_a_mail_with_names_of_all_the_world() -> None:
    whole = report()
    base = msgspec.structs.replace(
        whole.base, spec="tree:/home/j\u00f6rg/\u7a3c\u50cd\nBcc: x@y", release=""
    )
    one = stored("compare", msgspec.structs.replace(whole, base=base))
    text = mail(one)
    found = parsed(text)
    assert found.get_content_charset() == "utf-8"
    assert found["Content-Transfer-Encoding"] == "8bit"
    assert parsed(mail(EXAMPLES["run"]))["Content-Transfer-Encoding"] == "7bit"
    assert found["Bcc"] is None
    assert "j\u00f6rg/\u7a3c\u50cd" in found["Subject"]
    assert "j\u00f6rg/\u7a3c\u50cd" in found.get_content()
    assert text.partition("\n\n")[0].isascii()


def test_no_name_makes_a_header() -> None:
    whole = report()
    base = msgspec.structs.replace(
        whole.base, spec="tree:/x\nBcc: everybody@example.org", release=""
    )
    text = mail(stored("compare", msgspec.structs.replace(whole, base=base)))
    found = parsed(text)
    assert found["Bcc"] is None
    assert "tree:/x Bcc: everybody" in found["Subject"]


def test_a_line_that_begins_like_a_mail_is_no_other_one() -> None:
    slower = msgspec.structs.replace(test_bisect_report.SLOWER, how="from here on it is so")
    both = msgspec.structs.replace(test_bisect_report.REPORT, found=(slower, slower))
    lines = mail(stored("bisect", both)).splitlines()
    assert sum(line.startswith("From ") for line in lines) == 2
    assert sum(line.startswith(">From here on") for line in lines) == 2


def test_a_mail_for_each_commit_that_is_slower() -> None:
    one = mail(EXAMPLES["bisect"])
    found = parsed(one)
    assert found["To"] == "A U Thor <author@example.org>"
    assert found["Cc"] == "regressions@lists.linux.dev"
    printed = bisect_mails(test_bisect_report.REPORT)
    assert found.get_content() == printed.partition("\n\n")[2]
    slower = test_bisect_report.SLOWER
    author = msgspec.structs.replace(slower.commit, author="J\u00f6rg \u0141 <j@example.org>")
    again = msgspec.structs.replace(slower, commit=author)
    both = msgspec.structs.replace(test_bisect_report.REPORT, found=(slower, again))
    box = mail(stored("bisect", both))
    parts = re.split(r"^From kdelta .*\n", box, flags=re.MULTILINE)
    assert len(parts) == 3
    assert parsed(parts[2])["To"] == "J\u00f6rg \u0141 <j@example.org>"
    faster = msgspec.structs.replace(both, found=(test_bisect_report.FASTER,))
    assert parsed(mail(stored("bisect", faster)))["Subject"].startswith("[kdelta] syscalls: v6.12")


@pytest.mark.parametrize(
    "words",
    [
        ["kdelta", "compare", "a"],
        ["kdelta", *(f"+CONFIG_{number}=y" for number in range(30)), "+# CONFIG_X is not set"],
        ["kdelta", "x y " * 40, "it's", "tab\t quote' and \\ " * 10, "$HOME", '"a b"' * 9, "z"],
    ],
)
def test_a_long_command_can_still_be_pasted(words: list[str]) -> None:
    one = msgspec.structs.replace(EXAMPLES["run"], command=command_line(words))
    script = mail(one).rpartition("----\n")[2]
    said = subprocess.run(
        ["bash", "-c", f"kdelta() {{ printf '%s\\0' kdelta \"$@\"; }}; {script}"],
        capture_output=True,
        check=True,
    ).stdout
    assert said.decode().split("\0")[:-1] == words


def test_a_table_without_room_is_a_list() -> None:
    """Nothing is left out: what has no room stands below its row."""
    rows = (("a", f"{'1' * 40} {'1' * 40}", "2" * 40), ("b", "3", ""))
    assert table_lines(table_of(("name", "first", "second"), rows)) == [
        "a",
        f"  first: {'1' * 40}",
        f"    {'1' * 40}",
        f"  second: {'2' * 40}",
        "b",
        "  first: 3",
    ]


def test_columns_without_room_stand_below_their_row() -> None:
    rows = (("a", "1" * 40, "2" * 40, "4"), ("b", "3", "", "5"))
    assert table_lines(table_of(("name", "first", "second", "third"), rows)) == [
        f"name  {'first':>40}",
        f"a     {'1' * 40}",
        f"  second: {'2' * 40}; third: 4",
        f"b     {'3':>40}",
        "  third: 5",
    ]


def test_rows_in_the_order_of_a_word_are_grouped_by_it() -> None:
    columns = (Column("name", "name"), Column("verdict", "word"), Column("diff", "number"))
    words = ("slower", "slower", "same")
    rows = tuple((Cell(f"r{at}"), Cell(word), Cell(f"+{at}")) for at, word in enumerate(words))
    total = (Cell("total"), Cell("in all"), Cell("+3"))
    assert table_lines(Table("t", "t", columns, rows, total)) == [
        "name   diff",
        "",
        "slower (2)",
        "r0       +0",
        "r1       +1",
        "",
        "same (1)",
        "r2       +2",
        "",
        "total    +3",
        "  verdict: in all",
    ]


def test_a_long_name_has_a_line_of_its_own() -> None:
    lines = table_lines(table_of(("name", "first"), (("n" * 80, "1"), ("b", "2" * 30))))
    assert lines[1] == "n" * 80
    assert lines[2].split() == ["1"]
    assert lines[3].split() == ["b", "2" * 30]
    assert len(lines[2]) == len(lines[3]) == WIDTH

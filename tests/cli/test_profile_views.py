# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile` and `kdelta diff` on recorded runs: calls, source lines, instructions."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from reading import read_document

from kdelta.counts.source_lines import Frame, SourceLines
from kdelta.host.emulator import HostQemu
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import PROFILES
from tests.cli.recorded import A, kdelta, recorded
from tests.profiles import FUNCTION_BYTES, Stack

Captured = pytest.CaptureFixture[str]
B: dict[Stack, int] = {
    ("work:main",): 10,
    ("work:main", "entry"): 7,
    ("work:main", "entry", "vfs_read"): 190,
    ("irq",): 3,
}
KERNEL = Kernel("a" * 64, "tree:/linux", "/vmlinuz", "x86_64", "6.12.0")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is still there, and has debug info: line 1 of a file of its own each function."""

    def lines(wanted: Mapping[str, set[int]], *_: object) -> SourceLines:
        return SourceLines(
            {
                (origin, address): (Frame(f"f{address:x}", f"dir/{address:x}.c", 1),)
                for origin, addresses in wanted.items()
                if origin == "kernel"
                for address in addresses
            }
        )

    monkeypatch.setattr("kdelta.studies.recorded.recorded.kernel_of", lambda *_: KERNEL)
    monkeypatch.setattr("kdelta.studies.profile.views.read_lines", lines)


def shown(capsys: Captured) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_what_each_function_called(own_data: Path, capsys: Captured) -> None:
    recorded(own_data, A)
    assert kdelta("profile") == 0
    lines = [line.split() for line in shown(capsys)]
    assert ["function", "insns", "%", "incl.", "%", "calls", "loads", "stores"] in lines
    assert ["vfs_read", "100", "59.9%", "89.8%", "1"] in lines
    assert kdelta("profile", "--sort", "inclusive", "--json") == 0
    document = read_document(capsys.readouterr().out)
    assert document.calls == "all"
    inclusive = {one.name: one.inclusive for one in document.regions[0].lines}
    assert inclusive == {"main": 167, "entry": 157, "vfs_read": 150, "small": 50, "irq": 3}
    views = document.views
    assert (views.tree, views.lines, views.annotated) == (None, None, [])


def test_calls_from_the_top_and_callers(own_data: Path, capsys: Captured) -> None:
    recorded(own_data, A)
    assert kdelta("profile", "--calls", "--callers", "small", "--cut", "31") == 0
    lines = shown(capsys)
    top = lines.index("calls, from the top, cut below 31% of what is shown")
    assert [line.split()[-1] for line in lines[top + 2 : top + 6]] == [
        "[work]",
        "work",
        "entry",
        "vfs_read",
    ]
    up = lines.index("callers of small, cut below 31% of what it costs")
    assert [line.split()[0] for line in lines[up + 2 : up + 7]] == ["50"] * 5
    assert lines[up + 3].endswith("    vfs_read")
    assert kdelta("profile", "--calls", "--callers", "small", "--json") == 0
    document = read_document(capsys.readouterr().out)
    assert sum(document.views.tree.own) == 167
    ((_, calls),) = document.views.callers
    assert [name for _, name in calls.key] == [
        "small",
        "vfs_read",
        "entry",
        "main",
        "work",
    ]


@pytest.mark.usefixtures("kernel")
def test_source_lines(own_data: Path, capsys: Captured) -> None:
    recorded(own_data, A)
    assert kdelta("profile", "--source", "--functions", "1") == 0
    lines = shown(capsys)
    at = lines.index("source lines")
    address = 3 * FUNCTION_BYTES
    assert [line.split() for line in lines[at + 2 : at + 6]] == [
        ["100", "59.9%", f"dir/{address:x}.c:1", f"f{address:x}"],
        ["57", "34.1%", "other", "lines", "(2)"],
        ["10", "6.0%", "of", "which", "no", "line", "is", "known"],
        ["167", "100.0%", "total"],
    ]
    assert "No debug info, so no source lines: work." in lines


@pytest.mark.usefixtures("kernel")
def test_instructions(own_data: Path, capsys: Captured) -> None:
    recorded(own_data, A)
    assert kdelta("profile", "--annotate", "vfs_read") == 0
    lines = shown(capsys)
    at = lines.index("vfs_read: 100 instructions executed")
    address = 3 * FUNCTION_BYTES
    assert lines[at + 2].split() == [f"dir/{address:x}.c:1"]
    assert lines[at + 3].split() == ["100", f"{address:x}", "nop"]
    assert kdelta("profile", "--annotate", "main work", "--json") == 0
    document = read_document(capsys.readouterr().out)
    (one,) = document.views.annotated
    assert (one.key[0], [insn.count for insn in one.insns]) == ("work", [10])


@pytest.mark.usefixtures("kernel")
def test_both_runs_by_calls_lines_and_instructions(own_data: Path, capsys: Captured) -> None:
    a, b = recorded(own_data, A), recorded(own_data, B)
    assert kdelta("diff", a.id, b.id) == 0
    assert "- small was inlined into vfs_read" in shown(capsys)
    views = ("--calls", "--cut", "0", "--annotate", "vfs_read", "--source")
    assert kdelta("diff", a.id, b.id, *views) == 0
    lines = shown(capsys)
    assert "           40           -          1          1    entry" in lines
    assert "           90          90          1          1    vfs_read" not in lines
    assert any(line.split() == ["40", "90", "1", "1", "vfs_read"] for line in lines)
    assert any(line.split() == ["-50", "-50", "1", "-", "small"] for line in lines)
    at = lines.index("vfs_read: 100 instructions executed in A, 190 in B, +90")
    assert lines[at + 2].split() == ["100", "nop", "190", "nop"]
    source = lines.index("source lines")
    assert [line.split()[0] for line in lines[source + 2 : source + 5]] == ["90", "-50", "40"]
    assert kdelta("diff", a.id, b.id, *views, "--json") == 0
    found = read_document(capsys.readouterr().out).views
    assert sum(one.b_own - one.a_own for one in found.changes) == 40
    assert sum(one.b - one.a for one in found.lines) == 40
    assert [(one.outcome, one.key[1]) for one in found.hints] == [("inlined", "small")]


@pytest.mark.usefixtures("kernel")
def test_what_debug_info_says_was_inlined_is_matched(
    own_data: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:

    def lines(wanted: Mapping[str, set[int]], *_: object) -> SourceLines:
        return SourceLines(
            {
                ("kernel", address): (Frame("small", "a.c", 2), Frame("vfs_read", "a.c", 9))
                for address in wanted["kernel"]
                if address == 3 * FUNCTION_BYTES
            }
        )

    monkeypatch.setattr("kdelta.studies.profile.views.read_lines", lines)
    # In A it is a function of its own, and what is at vfs_read stays there.
    a, b = recorded(own_data, {**A, ("work:main", "entry", "x"): 1}), recorded(own_data, B)
    assert kdelta("diff", a.id, b.id, "--inlined") == 0
    found = [line.split()[:4] for line in shown(capsys)]
    assert ["small", "(inlined)", "+140", "+280.0%"] in found
    assert ["vfs_read", "-100", "-100.0%", "100"] in found


@pytest.mark.parametrize("command", ["profile", "diff"])
def test_a_function_that_is_not_there(command: str, own_data: Path, capsys: Captured) -> None:
    runs = [recorded(own_data, A).id] * (1 if command == "profile" else 2)
    assert kdelta(command, *runs, "--annotate", "vfs_raed") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "no function 'vfs_raed' was executed there" in said.err
    assert "there is: vfs_read" in said.err
    if command == "profile":
        assert kdelta("profile", "--callers", "$(reboot)") == 2
        assert "no function '$(reboot)' was executed there" in capsys.readouterr().err


def test_a_kernel_that_is_gone(own_data: Path, capsys: Captured) -> None:
    made = recorded(own_data, A)
    assert kdelta("profile", "--source") == 0
    assert "No debug info, so no source lines: kernel, work." in shown(capsys)
    assert kdelta("profile", "--annotate", "small") == 2
    said = capsys.readouterr().err
    assert f"the kernel of run {made.id} is not here any more" in said
    assert "kdelta build tree:/linux" in said


def test_a_recording_that_was_pruned(
    own_data: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions are shown by the counts; what needs the recording has to be made again."""
    monkeypatch.setattr(HostQemu, "must_have_cpu", lambda *_: None)
    made = recorded(own_data, A)
    blob = made.attachments[PROFILES]
    (own_data / "blobs" / blob[:2] / blob[2:]).unlink()
    assert kdelta("profile") == 0
    heads = ["function", "insns", "%", "loads", "stores", "string", "special"]
    assert heads in [line.split() for line in shown(capsys)]
    assert kdelta("profile", "--calls") == 2
    assert "it cannot be made again with more" in capsys.readouterr().err


def test_a_run_of_which_the_kernels_calls_alone_were_recorded(
    own_data: Path, capsys: Captured
) -> None:
    recorded(own_data, A, "kernel")
    assert kdelta("profile", "--calls") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "calls, from the top" in said
    assert "Calls were followed in the kernel alone" in said
    # The same run, recorded in full, is better.
    recorded(own_data, A)
    assert kdelta("profile", "--calls") == 0
    assert "in the kernel alone" not in capsys.readouterr().out


def test_misses_without_a_cpu(own_data: Path, capsys: Captured) -> None:
    recorded(own_data, A)
    assert kdelta("profile", "--sort", "misses") == 2
    assert "name one with --cycles" in capsys.readouterr().err
    assert kdelta("profile", "--cpu", "zen") == 2
    assert "no CPU is called 'zen'" in capsys.readouterr().err

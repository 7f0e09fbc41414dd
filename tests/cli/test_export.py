# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --export` on runs of the store, as a user calls them."""

import gzip
from pathlib import Path

import pytest

from kdelta.cli import export as cli_export
from kdelta.cli import main as cli
from kdelta.report.exports import EXPORTS
from tests.cli.stored_profile import stored
from tests.report.exports.example import READ, example

Captured = pytest.CaptureFixture[str]
WHOLE = sum(READ.values())


def kdelta(*arguments: str) -> int:
    return cli.ended(arguments)


def failed(arguments: list[str], words: list[str], capsys: Captured, code: int = 2) -> None:
    assert kdelta(*arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    for word in words:
        assert word in shown.err


@pytest.mark.parametrize("name", EXPORTS)
def test_a_run_is_written_for_another_tool(name: str, own_data: Path, tmp_path: Path) -> None:
    made = stored(own_data, example())
    file = tmp_path / "a b;$(c).out"
    assert kdelta("profile", made.id, "--export", name, "--output", str(file)) == 0
    data = file.read_bytes()
    text = gzip.decompress(data) if name == "pprof" else data
    for word in (b"do_syscall_64", b"tick", b"read"):
        assert word in text
    if name != "folded":
        assert b"$(reboot) <b>.img" in text
        assert made.id.encode() in text or name == "speedscope"


def test_a_folder_gets_a_file_named_after_the_run(
    own_data: Path, tmp_path: Path, capsys: Captured
) -> None:
    made = stored(own_data, example())
    assert kdelta("profile", "--export", "pprof", "--output", str(tmp_path)) == 0
    (file,) = tmp_path.iterdir()
    assert file.name == f"syscalls-{made.id}.pb.gz"
    assert capsys.readouterr().err == f"pprof: {file}, {file.stat().st_size} bytes\n"


def test_without_a_file_it_goes_to_stdout(
    own_data: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stored(own_data, example())
    assert kdelta("profile", "--export", "pprof") == 0
    shown = capfdbinary.readouterr()
    assert b"do_syscall_64" in gzip.decompress(shown.out)
    assert shown.err == b""


def test_regions_contexts_and_code_are_chosen(own_data: Path, capsys: Captured) -> None:
    stored(own_data, example())

    def whole(*arguments: str) -> int:
        assert kdelta("profile", "--export", "folded", *arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        return sum(int(line.rpartition(" ")[2]) for line in lines)

    assert whole() == WHOLE + 3
    assert whole("-o", "read") == WHOLE
    assert whole("-o", "read", "--context", "interrupts") == 110
    assert whole("-o", "read", "--context", "own") == WHOLE - 110
    assert whole("-o", "read", "--code", "modules") == 1000
    assert whole("-o", "read", "--code", "user") == 5
    assert whole("-o", "read", "--figure", "loads") == 100 + 3 + 4 + 30 + 60


def test_that_there_are_no_lines_is_reported(own_data: Path, capsys: Captured) -> None:
    stored(own_data, example())
    assert kdelta("profile", "--export", "folded", "--source") == 0
    assert capsys.readouterr().err.startswith("no source lines: there is no debug info")


def test_slips_are_reported_before_anything_is_run(
    own_data: Path, tmp_path: Path, capsys: Captured
) -> None:
    stored(own_data, example())
    profile = ["profile", "--export"]
    failed([*profile, "kallgrind"], ["no export format", 'did you mean "callgrind"?'], capsys)
    failed([*profile, "foo"], ['"foo" is no export format', "callgrind, pprof, folded"], capsys)
    failed([*profile, "folded", "--figure", "lods"], ['"lods" is no column', '"loads"'], capsys)
    failed([*profile, "folded", "--json"], ["--export folded and --json at once"], capsys)
    failed([*profile, "firefox"], ['"firefox" is no export format', "speedscope"], capsys)
    failed(["profile", "--output", "x"], ["--output x without --export"], capsys)
    failed(["profile", "--figure", "loads"], ["--figure loads without --export"], capsys)
    failed([*profile, "folded", "-o", "raed"], ["no region 'raed'", "read"], capsys)
    nowhere = str(tmp_path / "none" / "file")
    failed([*profile, "folded", "--output", nowhere], ["there is no folder"], capsys)
    file = tmp_path / "file"
    file.write_text("")
    below = str(file / "page.html")
    failed(["profile", "--html", below], [f"there is no folder {file}"], capsys)
    failed([*profile, "folded", "--output", below], [f"there is no folder {file}"], capsys)
    failed(
        [*profile, "folded", "--output", "/proc/kdelta"],
        ["nothing can be written to /proc", "nothing was run yet"],
        capsys,
    )


def test_a_disk_that_is_full(own_data: Path, capsys: Captured) -> None:
    stored(own_data, example())
    arguments = ["profile", "--export", "folded", "--output", "/dev/full"]
    failed(arguments, ["/dev/full", "No space left"], capsys, code=3)


def test_binary_data_is_not_for_a_terminal(
    own_data: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(own_data, example())
    monkeypatch.setattr(cli_export, "_at_terminal", lambda: True)
    words = ["pprof is no text, and stdout is a terminal", "--output NAME.pb.gz"]
    failed(["profile", "--export", "pprof"], words, capsys)


def test_a_run_without_calls_whose_kernel_is_gone(own_data: Path, capsys: Captured) -> None:
    stored(own_data, example(), recorded=False)
    failed(["profile", "--export", "folded"], ["cannot be made again", "its kernel"], capsys)

# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked wrongly of placement: named, with a hint, before anything is run."""

import re
from pathlib import Path

import pytest

from kdelta import cpus
from kdelta.cli import main as cli
from kdelta.cpus.catalog import DEFAULT_CPU

KERNEL = "deb:linux-image-cloud-amd64@bookworm"
COMMANDS = {
    "layout": ["layout", KERNEL],
    "place": ["place", KERNEL, "--output", "order.txt"],
    "compare": ["compare", KERNEL, KERNEL],
    "gate": ["gate", KERNEL, KERNEL],
}
_WRONG = {
    "sets = 64": ("sets = 48", r"`l1i\.sets` is 48, which is no power of two"),
    "ways = 8": ("ways = 7", r"64 sets x 7 ways x 64 bytes are 28672 bytes, not 32768"),
    "line_bytes = 64": ("line_bytes = 96", r"`l1i\.line_bytes` is 96, which is no power of two"),
}
USAGE, NEVER_BAD = 2, 255


def refused(
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """That a command ends as wrong usage ends, and says these words and a hint."""
    monkeypatch.setenv("PATH", "/nothing")  # no program is needed to say no
    code = cli.ended(words)
    error = capsys.readouterr().err
    assert code == (NEVER_BAD if words[0] == "gate" else USAGE), error
    assert re.search(said, error), error
    assert re.search("^(hint|try): ", error, re.MULTILINE), error
    assert "bug in kdelta" not in error


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("right", _WRONG)
@pytest.mark.slow
def test_a_cpu_of_impossible_geometry(
    command: str,
    right: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong, said = _WRONG[right]
    text = Path(cpus.__file__).with_name(f"{DEFAULT_CPU}.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(right, wrong, 1))
    monkeypatch.chdir(tmp_path)
    refused([*COMMANDS[command], "--cpu", str(path)], said, monkeypatch, capsys)
    assert not (tmp_path / "order.txt").exists()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("count", ["0", "1", "-5", "100001", "9" * 30, "many"])
def test_a_number_of_layouts_that_cannot_be(
    command: str,
    count: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused([*COMMANDS[command], "--layouts", count], "--layouts", monkeypatch, capsys)

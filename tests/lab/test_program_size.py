# SPDX-License-Identifier: GPL-2.0-or-later
"""A program or a file that no guest can take is refused before it is read."""

import os
from pathlib import Path

import pytest

from kdelta.lab import program as module
from kdelta.lab.program import check_program
from kdelta.lab.request import Program
from kdelta.spec.errors import UserError


def read(*_: object) -> None:
    raise AssertionError("it was read")


@pytest.mark.parametrize("what", ["program", "file"])
def test_check_program_too_large_is_refused_unread(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "program_files", read)
    monkeypatch.setattr(module, "target_of", read)
    large = tmp_path / "large"
    large.touch(0o755)
    os.truncate(large, 5 << 30)
    command = str(large) if what == "program" else "true"
    with pytest.raises(UserError, match=r"takes 512 MiB at most; the largest: .*/large \(5120 MiB"):
        check_program(Program((command,), (str(large),) if what == "file" else ()))

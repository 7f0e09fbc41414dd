# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's hash is the same by kdelta and by what runs in a bundle."""

import os
import subprocess
from pathlib import Path

import pytest

from kdelta.host.machine import machine_hash
from kdelta.workloads.calibration import bundle
from kdelta.workloads.calibration.bundle import compiled_file, linked


def test_no_id_no_hash(tmp_path: Path) -> None:
    assert machine_hash(tmp_path / "none") == ""
    (tmp_path / "short").write_text("ab\n")
    assert machine_hash(tmp_path / "short") == ""


def test_another_id_another_hash(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("0123456789abcdef0123456789abcdef\n")
    (tmp_path / "bare").write_text("0123456789abcdef0123456789abcdef")
    (tmp_path / "other").write_text("0123456789abcdef0123456789abcdee\n")
    assert machine_hash(tmp_path / "one") == machine_hash(tmp_path / "bare") != ""
    assert machine_hash(tmp_path / "one") != machine_hash(tmp_path / "other")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it is run here")
def test_as_the_bundles_program_has_it(tmp_path: Path) -> None:
    text = (Path(bundle.__file__).parent / "facts.c").read_text()
    facts = linked([compiled_file("facts", text, tmp_path, arch="x86_64")], 0, tmp_path / "facts")
    done = subprocess.run([facts], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert said["machine"] == (machine_hash() or "0")

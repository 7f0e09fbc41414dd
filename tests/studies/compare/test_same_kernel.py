# SPDX-License-Identifier: GPL-2.0-or-later
"""Two kernels that are one: what was asked for changed nothing, and that is no "same"."""

import msgspec
import pytest

from kdelta.cli import main as cli
from kdelta.studies.lab.lab import Lab
from tests.studies.lab.fake_lab import FakeLab, for_real, kernel


@pytest.fixture(autouse=True)
def one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab in which all specs lead to one kernel."""
    one = kernel("image:a")
    FakeLab({"image:a": (for_real, 0)}).install(monkeypatch)
    monkeypatch.setattr(
        Lab, "kernel", lambda *_: msgspec.structs.replace(one, spec="image:c", built="b" * 64)
    )


def test_compare_of_kernels_that_are_one_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["compare", "image:a", "image:b"]) == 2
    said = capsys.readouterr()
    assert "image:b is the same kernel as image:a: what was asked for changes nothing" in said.err
    assert "hint: kdelta kernels bbbbbbbbbbbb shows its config" in said.err
    assert said.out == ""


def test_gate_of_kernels_that_are_one_exits_125(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["gate", "image:a", "image:b"]) == 125
    assert "cannot tell: nothing to compare: image:b is the same kernel" in capsys.readouterr().out

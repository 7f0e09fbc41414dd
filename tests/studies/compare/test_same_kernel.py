# SPDX-License-Identifier: GPL-2.0-or-later
"""Two kernels that are one: what was asked for changed nothing, and that is no "same"."""

import msgspec
import pytest

from kdelta.cli import main as cli
from kdelta.kernels.model import Kernel
from tests.lab.fake_lab import CostsByName, kernel, without_guests


class OneKernel(CostsByName):
    """All specs lead to one kernel."""

    def kernel(self, _spec: str) -> Kernel:
        return msgspec.structs.replace(kernel("image:a"), spec="image:c", built="b" * 64)


@pytest.fixture(autouse=True)
def one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab in which all specs lead to one kernel."""
    without_guests(monkeypatch)
    monkeypatch.setattr("kdelta.cli.publish.Lab", lambda store, _: OneKernel({}).in_store(store))


def test_compare_of_kernels_that_are_one_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["compare", "image:a", "image:b"]) == 2
    said = capsys.readouterr()
    assert "image:b is the same kernel as image:a: what was asked for changes nothing" in said.err
    assert "hint: kdelta kernels bbbbbbbbbbbb shows its config" in said.err
    assert said.out == ""


def test_gate_of_kernels_that_are_one_exits_125(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["gate", "image:a", "image:b"]) == 125
    assert "cannot tell: nothing to compare: image:b is the same kernel" in capsys.readouterr().out

# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of studies: what obtaining a kernel reports, and how many steps are expected."""

from collections.abc import Callable

import pytest

from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.progress import Progress
from kdelta.lab.request import LabRequest
from kdelta.lab.steps import expect_kernels, expect_runs, obtained
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import RunStatus

Log = Callable[[str], None]
SOURCE = parse_kernel_spec("git:/linux@v6.12")
KERNEL = Kernel(identity="1", spec=str(SOURCE), image="/x", arch="x86_64", release="6.12.0")
FAILURE = NoKernel(str(SOURCE), RunStatus.BUILD_FAILED, "1", "cc1: error")


class Noted(Progress):
    """Notes all that is reported."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        self.calls.append(("expect", kind, count, at_once, rough))

    def found(self, step: str) -> None:
        self.calls.append(("found", step))

    def log(self, line: str) -> None:
        self.calls.append(("log", line))

    def show(self, text: Callable[[], str]) -> None:
        self.calls.append(("show", text()))

    def begin(self, step: str, seconds: float | None = None) -> None:
        self.calls.append(("begin", step, seconds))

    def doing(self, step: str, what: str) -> None:
        self.calls.append(("doing", step, what))

    def end(self, step: str, result: str) -> None:
        self.calls.append(("end", step, result))


def obtaining(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], result: Kernel | NoKernel | BaseException
) -> Noted:
    def obtain(_: object, log: Log) -> Kernel | NoKernel:
        for line in lines:
            log(line)
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr("kdelta.lab.steps.obtain", obtain)
    return Noted()


STEP = f"build {SOURCE}"


def test_a_kernel_that_is_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = obtaining(monkeypatch, [], KERNEL)
    assert obtained(SOURCE, noted) is KERNEL
    assert noted.calls == [("found", STEP)]


def test_a_build_is_a_step_with_its_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = obtaining(monkeypatch, ["building x", "  12 files compiled, now a.o"], KERNEL)
    assert obtained(SOURCE, noted) is KERNEL
    assert noted.calls == [
        ("begin", STEP, None),
        ("log", "building x"),
        ("doing", STEP, "building x"),
        ("doing", STEP, "12 files compiled, now a.o"),
        ("end", STEP, "6.12.0"),
    ]


@pytest.mark.parametrize("result", [FAILURE, LabError("no network"), KeyboardInterrupt()])
def test_a_kernel_that_cannot_be_had_ends_its_step(
    monkeypatch: pytest.MonkeyPatch, result: NoKernel | BaseException
) -> None:
    noted = obtaining(monkeypatch, ["building x"], result)
    if isinstance(result, NoKernel):
        assert obtained(SOURCE, noted) is result
    else:
        with pytest.raises(type(result)):
            obtained(SOURCE, noted)
    assert noted.calls[-1] == ("end", STEP, "failed")


def test_packages_are_fetched_sources_built_and_what_is_no_spec_is_left_out() -> None:
    noted = Noted()
    expect_kernels(noted, ["deb:linux-image-a", "git:/linux@v6.12", "deb:linux-image-b", "nothing"])
    assert noted.calls == [("expect", "fetch", 2, 1, False), ("expect", "build", 1, 1, False)]


def test_runs_are_one_a_kernel_work_and_perturbation() -> None:
    noted = Noted()
    expect_runs(noted, LabRequest(perturbations=3, jobs=4), kernels=2, works=5, rough=True)
    boot, run = noted.calls
    assert run == ("expect", "run", 30, 4, True)
    assert boot[:2] == ("expect", "boot")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Stand-ins for studies: commands are called as a user calls them, and no guest is booted."""

import msgspec
import pytest

from kdelta.cli import main as cli
from kdelta.cpus import CPU
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunResult
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.cycles.measure import ModelCycles
from kdelta.measures.model import Judgement, MeasureRequest, RunSide
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison
from kdelta.studies.run.request import RunRequest
from tests.report.example import base_counts, other_counts, report
from tests.report.example_cycles import cycle_effects

Captured = pytest.CaptureFixture[str]


def kdelta(*arguments: str) -> int:
    """Runs a command in this process; returns its exit code."""
    return cli.ended(arguments)


def make_run(store: Store, status: RunStatus, index: int = 0, **more: object) -> RunResult:
    counts = base_counts(index) if status is RunStatus.OK else None
    new = NewRun(
        key=f"key {index}",
        kernel_identity="a" * 64,
        kernel_spec="deb:linux-image-a",
        kernel_release="6.1.0-a",
        machine={"name": "tcg", "memory_mib": 1024},
        workload="syscalls",
        workload_identity="b" * 64,
        perturbation=index,
    )
    run_id = store.start_run(new)
    made = store.finish_run(
        run_id,
        status,
        counts=counts,
        console="".join(f"console {line}\n" for line in range(30)),
        attachments={"stdout": b"hello\n", "cpuinfo": b"model name\t: QEMU CPU\nflags\t: erms\n"},
        **more,  # type: ignore[arg-type]
    )
    return RunResult(made, counts)


def of_cycles(cycles: Cycles, cpu: CPU) -> Judgement:
    """Return model cycles as a comparison has them."""
    return ModelCycles(MeasureRequest(cpu), cpu).judgement(cycles)


def _on(cpu: CPU, comparison: Comparison, *, judged: bool) -> Comparison:
    if not judged:
        return msgspec.structs.replace(comparison, cpu=cpu)
    effects = cycle_effects(report().others[0].effects, cpu.name)
    cycles = Cycles(effects)
    return msgspec.structs.replace(comparison, cpu=cpu, judged=(of_cycles(cycles, cpu),))


class Studies:
    """Stands in for the studies: notes what was asked for, and makes runs without a guest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[CompareRequest | RunRequest] = []
        self.error: BaseException | None = None
        monkeypatch.setattr("kdelta.cli.compare.run_compare", self.compare)
        monkeypatch.setattr("kdelta.cli.run.run_command", self.command)

    async def compare(
        self, request: CompareRequest, lab: Lab, *_: object
    ) -> tuple[Comparison, ...]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        lab.progress.begin("boot 6.1.0-a")
        lab.progress.doing("boot 6.1.0-a", "waiting until it is quiet")
        lab.progress.end("boot 6.1.0-a", "ready")
        done = tuple(make_run(lab.store, RunStatus.OK, index) for index in range(3))
        bad = (make_run(lab.store, RunStatus.BOOT_FAILED, 3, detail="panic: oops"),)
        others = tuple(
            msgspec.structs.replace(one, counts=other_counts(index))
            for index, one in enumerate(done)
        )
        kernel = Kernel("a" * 64, request.base, "/vmlinuz", "x86_64", "6.1.0-a")
        sides = RunSide(request.base, kernel, done), RunSide(request.base, kernel, others + bad)
        comparison = Comparison("syscalls", sides[0], sides[1], None)
        return tuple(_on(cpu, comparison, judged=request.cycles) for cpu in request.cpus) or (
            comparison,
        )

    async def command(self, request: RunRequest, lab: Lab) -> tuple[RunResult, ...]:
        self.asked.append(request)
        lab.progress.log("a line")
        return tuple(
            make_run(lab.store, RunStatus.OK, index) for index in range(request.lab.perturbations)
        )

# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run keeps of its machine and mode, and how these are read again."""

import msgspec

from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.plan import RunPlan
from kdelta.lab.unseen import UnseenContentError
from kdelta.machines.tcg import Guest
from kdelta.spec.errors import KdeltaError, LabError
from kdelta.spec.identity import identity
from kdelta.spec.run import MODES, MachineOptions, Mode, RunStatus
from kdelta.store.model import NewRun, Run


def ending_of(error: KdeltaError) -> tuple[RunStatus | None, str]:
    """Return the status and the detail of a run that this ended: none where the lab is at fault,
    which says nothing of kernel or program.
    """
    if isinstance(error, LabError):
        return None, f"lab: {error}"
    unseen = isinstance(error, UnseenContentError)
    return RunStatus.WORKLOAD_FAILED if unseen else RunStatus.BOOT_FAILED, error.message


def unusual_facts(guest: Guest, mode: Mode) -> dict[str, str | int | float]:
    """Return what of the machine and the mode is not as usual."""
    usual = MachineOptions()
    facts: dict[str, tuple[str | int, str | int]] = {
        "as": (guest.runs_as, usual.runs_as),
        "loaded": (int(guest.loaded), int(usual.loaded)),
        "icount_shift": (guest.icount_shift, usual.icount_shift),
        "mode": (mode, MODES[0]),
        "force": (" ".join(guest.force), ""),
        "cpus": (guest.cpus, usual.cpus),
        "turn_us": (guest.turn_us, 0),
        "guest_programs_by": (guest.programs_by, ""),
    }
    return {name: value for name, (value, usually) in facts.items() if value != usually}


def machine_of(run: Run) -> MachineOptions:
    """Return the machine that a run was on, as far as it decides what the run counts."""
    # Of the QEMU a run has the version, and no path.
    others = {"as", "qemu", "force", "guest_programs_by"}
    facts: dict[str, object] = {k: fact for k, fact in run.machine.items() if k not in others}
    facts["runs_as"] = run.machine.get("as", MachineOptions().runs_as)
    facts["force"] = str(run.machine.get("force", "")).split()
    facts["short_turns"] = bool(facts.pop("turn_us", 0))
    compiled_by = str(run.machine.get("guest_programs_by", ""))
    facts["compile_guest"] = bool(compiled_by) and ", pin " not in compiled_by
    return msgspec.convert(facts, MachineOptions, strict=False)


def mode_of(run: Run) -> Mode:
    """Return the mode that a run's programs were in."""
    return next(mode for mode in MODES if mode == run.machine.get("mode", "user"))


def no_kernel_key(asked: str) -> str:
    """Return the key of the run that is kept in place of a kernel which could not be built."""
    return identity({"no-kernel": asked})


def no_kernel_run(failure: NoKernel) -> NewRun:
    """Return that run."""
    return NewRun(
        key=no_kernel_key(failure.identity),
        kernel_identity=failure.identity,
        kernel_spec=failure.spec,
        kernel_release="",
        machine={},
        workload="",
        workload_identity="",
        perturbation=0,
    )


def new_run(kernel: Kernel, guest: Guest, work: RunPlan, index: int, key: str) -> NewRun:
    """Return what the store keeps of a run that begins."""
    facts = guest.snapshot_facts()
    return NewRun(
        key=key,
        kernel_identity=kernel.identity,
        kernel_spec=kernel.spec,
        kernel_release=kernel.release,
        machine={
            "name": "tcg",
            "qemu": str(facts["qemu"]),
            "cpu": str(facts["cpu"]),
            "memory_mib": guest.memory_mib,
            "append": guest.append,
            **unusual_facts(guest, work.job.mode),
        },
        workload=work.name,
        workload_identity=work.identity,
        perturbation=index,
    )

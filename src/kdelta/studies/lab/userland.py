# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload needs of a guest besides the kernel's modules: its files, and its config."""

from collections.abc import Callable
from pathlib import Path

from kdelta.guests.job import JobFile
from kdelta.guests.kernel_tree import kernel_tree
from kdelta.guests.userland import userland
from kdelta.host.files import lab_errors
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import Workload


def carried_files(
    workload: Workload, program: Path, arch: str, talk: Callable[[str], None]
) -> list[JobFile]:
    """The files that a workload's programs need in a guest of that architecture, besides its image:
    those of the distribution, a kernel's source that is compiled, and its own program if that is
    not part of the image.
    """
    files = [JobFile(program, workload.program, 0o755)] if workload.image == "job" else []
    if workload.userland:
        programs = userland(workload.userland, arch, talk)
        files += programs.files
        if workload.kernel_tree:
            files += kernel_tree(workload.kernel_tree, workload.folder, programs, talk).files
    return files


def check_needs(workload: Workload, kernel: Kernel) -> None:
    """That a kernel can run a workload, as far as its config shows: UserError with what it lacks.
    Of a kernel without a config the workload finds out itself, before it begins.
    """
    if workload.architectures and kernel.arch not in workload.architectures:
        raise UserError(
            f"the workload {workload.name} runs on {', '.join(workload.architectures)}, and "
            f"{kernel.spec} is a kernel for {kernel.arch}",
            "kdelta workloads lists the others",
        )
    if kernel.config is None:
        return
    with lab_errors("reading", Path(kernel.config)):
        config = parse_config(Path(kernel.config).read_text(errors="replace"))
    options = [f"CONFIG_{name}" for name in workload.needs]
    lacking = [option for option in options if config.get(option) not in {"y", "m"}]
    if lacking:
        raise UserError(
            f"the workload {workload.name} needs {', '.join(lacking)}, which is off in "
            f"{kernel.spec}",
            f"build it with: {' '.join(f'+{option}=y' for option in lacking)}",
        )

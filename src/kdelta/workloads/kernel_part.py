# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a workload is built for one kernel: its module, and its code by the kernel's own flags.

Neither has to be possible: what could not be built is left out, and why is reported.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Log, run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.environment import FIXED
from kdelta.host.files import lab_errors, sha256_file, write_atomic, write_json
from kdelta.host.gcc import Compiler, compiler_identity
from kdelta.host.lock import fill_once
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, native_folder
from kdelta.host.target import Target, target
from kdelta.kernels.kbuild.workbench import module_build
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.cmdfiles import read_cmd
from kdelta.spec.errors import KdeltaError, LabError
from kdelta.spec.identity import identity
from kdelta.workloads import kernel_flags
from kdelta.workloads.catalog import KernelSide, Workload
from kdelta.workloads.kernel_flags import UserFlags, user_flags

KERNEL_FLAGS_ENDING = "-kflags"


class KernelPart(msgspec.Struct, frozen=True):
    """Paths on the host; None is what there is not. `warnings` say why, and name the kernel."""

    module: Path | None = None
    program: Path | None = None
    warnings: tuple[str, ...] = ()


def build_kernel_part(workload: Workload, kernel: Kernel, log: Log, *, by: Compiler) -> KernelPart:
    """Builds what a workload has for that kernel, unless the cache has it: the module, and the code
    by the kernel's own flags, as the kernel's headers say; the rest of that program by `by`.
    """
    side = workload.kernel
    if side is None:
        return KernelPart()
    folder = cache_dir("kernel-parts") / f"{side.module}-{_key(workload, side, kernel, by)[:32]}"
    part = KernelPart(folder / f"{side.module}.ko", folder / (workload.name + KERNEL_FLAGS_ENDING))
    doing = f"building {side.module} for {kernel.release}"

    def fill(partial: Path) -> None:
        log(f"building the module {side.module} for {kernel.release}")
        flags = _build(side, kernel, partial, _files(workload, side), log)
        name = workload.name + KERNEL_FLAGS_ENDING
        _compile(workload, side, flags, partial / name, by)
        write_json(partial / "flags.json", flags)

    try:
        fill_once(folder, doing, log, fill)
    except KdeltaError as error:
        hint = f" ({error.hint})" if error.hint else ""
        why = f"no module {side.module} for {kernel.release}: {error.message}{hint}"
        return KernelPart(warnings=(why,))
    return part


def _key(workload: Workload, side: KernelSide, kernel: Kernel, by: Compiler) -> str:
    """Return the identity of all that the result comes from. A kernel's identity has none of its
    compiler's flags, so its config and the record of its build stand next to it.
    """
    return identity(
        {
            "kernel": kernel.identity,
            "built": kernel.built,
            "config": sha256_file(Path(kernel.config)) if kernel.config else "",
            "sources": {path.name: sha256_file(path) for path in _files(workload, side)},
            "program": {name: sha256_file(workload.folder / name) for name in workload.sources},
            "flags": workload.cflags,
            "environment": FIXED,
            "compiler": (by.identity, compiler_identity(target(kernel.arch).find_compiler())),
            "rules": sha256_file(Path(kernel_flags.__file__)),
        }
    )


def _files(workload: Workload, side: KernelSide) -> list[Path]:
    """What stands next to each other in the module's folder."""
    native = native_folder()
    own = sorted(path for path in (native / "kmod" / side.module).iterdir() if path.is_file())
    if not any(path.name == "Kbuild" for path in own):
        raise LabError(f"no sources of the module {side.module}", "install kdelta again")
    shared = [workload.folder / name for name in side.sources]
    return [*own, *shared, *sorted((native / "include").glob("*.h"))]


def _build(
    side: KernelSide, kernel: Kernel, folder: Path, files: Sequence[Path], log: Log
) -> UserFlags:
    """Builds the module of these files into the folder; how the kernel compiled the shared code."""
    place = folder / "build"
    with lab_errors("preparing", place):
        place.mkdir()
        for path in files:
            shutil.copyfile(path, place / path.name)
    with module_build(kernel, log) as (argv, env):
        result = run_program([*argv, f"M={place}", "modules"], env=env)
    module = place / f"{side.module}.ko"
    if not result.ok or not module.is_file():
        raise _failure(side, kernel, result.stdout + result.stderr)
    _strip(module, folder / module.name, target(kernel.arch))
    flags = _flags_of(place / side.flags_of)
    shutil.rmtree(place)
    return flags


def _failure(side: KernelSide, kernel: Kernel, said: str) -> LabError:
    log_file = cache_dir("logs") / f"{side.module}-build.log"
    write_atomic(log_file, said.encode())
    lines = said.splitlines()
    first = next((line for line in lines if "error:" in line.lower()), (lines or ["?"])[-1])
    return LabError(
        f"it does not build against {kernel.spec}: {first.strip()}", f"all it said is in {log_file}"
    )


def _strip(module: Path, output: Path, of: Target) -> None:
    """Without what tells where it was built: the same module each time."""
    objcopy = of.tool("objcopy")
    words = ["--strip-debug", "--remove-section=.note.gnu.build-id"]
    run_program([objcopy, *words, module, output]).or_raise(f"stripping {module.name} failed")


def _flags_of(source: Path) -> UserFlags:
    cmd = read_cmd(source.with_suffix(".o"))
    try:
        return user_flags(cmd.command if cmd else "")
    except ValueError as error:
        raise LabError(f"kbuild did not say how it compiled {source.name}") from error


def _compile(
    workload: Workload, side: KernelSide, flags: UserFlags, output: Path, by: Compiler
) -> None:
    """The workload's program once more, the shared code of it by the kernel's compiler and flags.

    What that code is called by is compiled as ever, so only the code under test differs.
    """
    include = f"-I{native_folder() / 'include'}"
    shared = output.with_suffix(".o")
    argv = [*flags.compiler, *flags.kept, include, "-c", "-o", str(shared), side.flags_of]
    others = [name for name in workload.sources if name != side.flags_of]
    flags_of_link = (*COMMON_FLAGS, *STATIC_FLAGS, *workload.cflags, "-DKERNEL_FLAGS", include)
    result = run_program(argv, cwd=workload.folder)
    if result.ok:
        result, _ = by.compile([*others, str(shared)], flags_of_link, output, workload.folder)
    if not result.ok:
        said = result.stderr.splitlines()
        first = next((line for line in said if "error" in line), result.last_words(1))
        raise LabError(f"{side.flags_of} cannot be compiled by the kernel's flags: {first}")
    shared.unlink()

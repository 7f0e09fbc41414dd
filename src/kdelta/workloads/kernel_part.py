# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a workload is built for one kernel: its module, and its code by the kernel's own flags.

Neither has to be possible: what could not be built is left out, and why is reported.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.command import find_program, run
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, new_folder, sha256_file, write_atomic
from kdelta.host.lock import locked
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, compiler_identity, native_folder
from kdelta.host.target import Target, target
from kdelta.kernels.build.workbench import module_build
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.cmdfiles import read_cmd
from kdelta.spec.errors import KdeltaError, LabError
from kdelta.spec.identity import identity
from kdelta.workloads import kernel_flags
from kdelta.workloads.catalog import KernelSide, Workload
from kdelta.workloads.kernel_flags import UserFlags, user_flags

Talk = Callable[[str], None]

BUILD = "build"
"""Where the module is made, below the folder that keeps what came of it."""

KERNEL_FLAGS_ENDING = "-kflags"
_FLAGS_MACRO = "-DKERNEL_FLAGS"


class KernelPart(msgspec.Struct, frozen=True):
    """Paths on the host; None is what there is not. `warnings` say why, and name the kernel."""

    module: Path | None = None
    program: Path | None = None
    warnings: tuple[str, ...] = ()


def build_kernel_part(workload: Workload, kernel: Kernel, talk: Talk) -> KernelPart:
    """Builds what a workload has for that kernel, unless the cache has it."""
    side = workload.kernel
    if side is None:
        return KernelPart()
    folder = cache_dir("kernel-parts") / f"{side.module}-{_key(workload, side, kernel)[:32]}"
    part = KernelPart(folder / f"{side.module}.ko", folder / (workload.name + KERNEL_FLAGS_ENDING))
    if folder.is_dir():
        return part
    try:
        with locked(folder.name, f"building {side.module} for {kernel.release}", talk):
            if not folder.is_dir():
                _build(workload, side, kernel, folder, talk)
    except KdeltaError as error:
        hint = f" ({error.hint})" if error.hint else ""
        why = f"no module {side.module} for {kernel.release}: {error.message}{hint}"
        return KernelPart(warnings=(why,))
    return part


def _key(workload: Workload, side: KernelSide, kernel: Kernel) -> str:
    """All that the result comes from. A kernel's identity does not tell its compiler's flags, so
    its config and the record of its build stand next to it.
    """
    return identity(
        {
            "kernel": kernel.identity,
            "built": kernel.built,
            "config": sha256_file(Path(kernel.config)) if kernel.config else "",
            "sources": {path.name: sha256_file(path) for path in _files(workload, side)},
            "program": {name: sha256_file(workload.folder / name) for name in workload.sources},
            "compiler": compiler_identity(target(kernel.arch).find_compiler()),
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


def _build(workload: Workload, side: KernelSide, kernel: Kernel, folder: Path, talk: Talk) -> None:
    talk(f"building the module {side.module} for {kernel.release}")
    with new_folder(folder) as partial:
        place = partial / BUILD
        with lab_errors("preparing", place):
            place.mkdir()
            for path in _files(workload, side):
                shutil.copyfile(path, place / path.name)
        with module_build(kernel, talk) as (argv, env):
            result = run([*argv, f"M={place}", "modules"], env=env)
        module = place / f"{side.module}.ko"
        if not result.ok or not module.is_file():
            raise _failure(side, kernel, result.stdout + result.stderr)
        _strip(module, partial / module.name, target(kernel.arch))
        flags = _flags_of(place / side.flags_of)
        output = partial / (workload.name + KERNEL_FLAGS_ENDING)
        _compile(workload, side, flags, output, target(kernel.arch))
        record = msgspec.json.format(msgspec.json.encode(flags))
        write_atomic(partial / "flags.json", record)
        shutil.rmtree(place)


def _failure(side: KernelSide, kernel: Kernel, said: str) -> LabError:
    log = cache_dir("logs") / f"{side.module}-build.log"
    write_atomic(log, said.encode())
    lines = said.splitlines()
    first = next((line for line in lines if "error:" in line.lower()), (lines or ["?"])[-1])
    return LabError(
        f"it does not build against {kernel.spec}: {first.strip()}", f"all it said is in {log}"
    )


def _strip(module: Path, output: Path, of: Target) -> None:
    """Without what tells where it was built: the same module each time."""
    objcopy = of.tool("objcopy")
    find_program(objcopy)
    words = ["--strip-debug", "--remove-section=.note.gnu.build-id"]
    result = run([objcopy, *words, module, output])
    if not result.ok:
        raise LabError(f"stripping {module.name} failed: {result.last_words(1)}")


def _flags_of(source: Path) -> UserFlags:
    cmd = read_cmd(source.with_suffix(".o"))
    try:
        return user_flags(cmd.command if cmd else "")
    except ValueError as error:
        raise LabError(f"kbuild did not say how it compiled {source.name}") from error


def _compile(
    workload: Workload, side: KernelSide, flags: UserFlags, output: Path, of: Target
) -> None:
    """The workload's program once more, the shared code of it by the kernel's compiler and flags.

    What that code is called by is compiled as ever, so only the code under test differs.
    """
    include = f"-I{native_folder() / 'include'}"
    shared = output.with_suffix(".o")
    argv = [*flags.compiler, *flags.kept, include, "-c", "-o", str(shared), side.flags_of]
    others = [name for name in workload.sources if name != side.flags_of]
    link = [
        of.find_compiler(),
        *COMMON_FLAGS,
        *STATIC_FLAGS,
        *workload.cflags,
        _FLAGS_MACRO,
        include,
    ]
    link += ["-o", str(output), *others, str(shared)]
    for words in (argv, link):
        result = run(words, cwd=workload.folder)
        if not result.ok:
            said = result.stderr.splitlines()
            first = next((line for line in said if "error" in line), result.last_words(1))
            raise LabError(f"{side.flags_of} cannot be compiled by the kernel's flags: {first}")
    shared.unlink()

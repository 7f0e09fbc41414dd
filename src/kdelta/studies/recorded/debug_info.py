# SPDX-License-Identifier: GPL-2.0-or-later
"""The debug info of a recorded run's code, and its source: of the kernel, modules and programs."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kdelta.counts.model import KERNEL, is_kernel
from kdelta.counts.source_lines import DebugFile, SourceLines, has_debug_info, read_source_lines
from kdelta.guests.modules import modules_for
from kdelta.host.files import lab_errors
from kdelta.host.lock import work_folder
from kdelta.infer.profiles.source import Text, no_text
from kdelta.kernels.build.built import built_kernels, load_built
from kdelta.kernels.model import Kernel, booted_identity
from kdelta.kernels.objects.banner import banner_of
from kdelta.kernels.obtain import booted_as, obtain
from kdelta.kernels.packages.cache import cached_kernels
from kdelta.kernels.sources.source import Source, source_file
from kdelta.spec.errors import KdeltaError
from kdelta.spec.kernel import (
    ImageSpec,
    parameters_of,
    parse_kernel_spec,
    without_parameters,
)
from kdelta.store.model import Run
from kdelta.studies.lab.lab import Work
from kdelta.studies.tracing.placement import vmlinux_of


def kernel_of(run: Run, say: Callable[[str], None]) -> Kernel | None:
    """The kernel of a run, if it is still there as it was: nothing is fetched or built."""
    try:
        spec = parse_kernel_spec(run.kernel_spec)
    except KdeltaError:  # today's kdelta does not read it any more
        return None
    parameters, wanted = parameters_of(spec), run.kernel_identity
    plain = without_parameters(spec)
    for one in built_kernels():
        if booted_identity(one.identity, parameters) == wanted and (built := load_built(one.key)):
            return booted_as(built.kernel(str(plain)), spec)
    for cached in cached_kernels():
        if booted_identity(cached.identity, parameters) == wanted:
            return booted_as(cached.kernel(), spec)
    try:
        found = obtain(spec, say) if isinstance(spec, ImageSpec) else None
    except KdeltaError:
        return None
    return found if found and found.identity == wanted else None


def read_lines(
    wanted: Mapping[str, set[int]],
    kernel: Kernel,
    work: Work | None,
    symbols: Sequence[tuple[int, str, str, str]],
) -> SourceLines:
    """The source lines of addresses by origin, as far as debug info is at hand."""
    with _debug_files(list(wanted), kernel, work, symbols) as files:
        return read_source_lines(wanted, files, kernel.arch)


@contextmanager
def _debug_files(
    origins: Sequence[str],
    kernel: Kernel,
    work: Work | None,
    symbols: Sequence[tuple[int, str, str, str]],
) -> Iterator[dict[str, DebugFile]]:
    """Where the debug info of each origin may be."""
    found: dict[str, DebugFile] = {}
    roots = _roots(kernel)
    with work_folder() as folder:
        for index, origin in enumerate(origins):
            if origin == KERNEL:
                path = _vmlinux(kernel)
                if path is not None:
                    found[origin] = DebugFile(path, roots)
            elif is_kernel(origin):
                path = _module(origin.strip("[]"), kernel, work)
                names = {name: at for at, _, name, of in symbols if of == origin}
                if path is not None and names:
                    found[origin] = DebugFile(path, roots, names)
            elif work is not None and origin in work.binaries:
                path = folder / str(index)
                with lab_errors("writing", path):
                    path.write_bytes(work.binaries[origin])
                found[origin] = DebugFile(path)
        yield found


def _vmlinux(kernel: Kernel) -> Path | None:
    """The vmlinux of a kernel: kept when it was built, the image itself, or in the build tree that
    the image is in, if that is of the same build.
    """
    if (kept := vmlinux_of(kernel)) is not None:
        return kept
    image = Path(kernel.image)
    if kernel.image_format == "vmlinux":
        return image
    for folder in image.parents[:4]:
        path = folder / "vmlinux"
        try:
            if path.is_file() and has_debug_info(path) and banner_of(path)[1] == kernel.banner:
                return path
        except KdeltaError:
            continue
    return None


def _module(name: str, kernel: Kernel, work: Work | None) -> Path | None:
    """A module's file: one that came with the workload, or the kernel's own."""
    carried = (*work.job.modules, *work.job.optional_modules) if work else ()
    for file in carried:
        if Path(file.guest).stem.replace("-", "_") == name:
            return file.host
    try:
        return next(
            file.host
            for file in modules_for([name], kernel)
            if Path(file.guest).stem.replace("-", "_") == name
        )
    except (KdeltaError, StopIteration):
        return None


def _roots(kernel: Kernel) -> tuple[str, ...]:
    """The source tree that a kernel was made from, and where its build made further files."""
    built = load_built(kernel.built) if kernel.built else None
    if built is None:
        return ()
    folder = Path(built.folder)
    return (str(folder / "src"), *(str(out) for out in sorted(folder.glob("out-*"))))


def texts_of(kernel: Kernel | None) -> Text:
    """The source of a kernel that was built here, file by file; of others nothing is at hand."""
    built = load_built(kernel.built) if kernel and kernel.built else None
    if built is None:
        return no_text
    source = Source(Path(built.folder), built.tree, built.source)

    @functools.cache
    def read(file: str) -> Sequence[str] | None:
        try:
            text = None if file.startswith(("/", "..")) else source_file(source, file)
        except KdeltaError:
            return None
        return None if text is None else text.splitlines()

    def text(origin: str, file: str) -> Sequence[str] | None:
        return read(file) if is_kernel(origin) else None

    return text

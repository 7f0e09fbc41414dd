# SPDX-License-Identifier: GPL-2.0-or-later
"""Any kernel spec -> kernel."""

import contextlib
import platform
from collections.abc import Iterable

import msgspec

from kdelta.host.command import Log, quiet
from kdelta.host.target import targets
from kdelta.kernels.arches import kernel_arch
from kdelta.kernels.kbuild.build import build_kernel
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.kbuild.granted import refused_first
from kdelta.kernels.model import Kernel, booted_with
from kdelta.kernels.packages.deb import check_deb, obtain_deb
from kdelta.kernels.packages.files import check_files, obtain_files, obtain_from_repository
from kdelta.kernels.packages.image import check_image, obtain_image
from kdelta.kernels.sources.given import announce
from kdelta.kernels.sources.source import check_source
from kdelta.spec.change import VariableChange
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import (
    BuiltSpec,
    DebSpec,
    DebSrcSpec,
    FilesSpec,
    ImageSpec,
    KernelSpec,
    RepositorySpec,
    SourceSpec,
    parameters_of,
    parse_kernel_spec,
    with_changes,
    without_parameters,
)


def obtain(spec: KernelSpec, log: Log) -> Kernel | NoKernel:
    """The kernel that a spec names, fetched or built unless the cache has it; or why its build did
    not make one. `log` is called with what takes long.

    UserError when the spec names nothing that can be booted here, LabError when it cannot be had.
    """
    if parameters_of(spec):
        found = obtain(without_parameters(spec), log)
        if isinstance(found, NoKernel):
            return msgspec.structs.replace(found, spec=str(spec))
        return booted_as(found, spec)
    if isinstance(spec, DebSpec):
        return obtain_deb(spec, log)
    if isinstance(spec, FilesSpec):
        return obtain_files(spec, log)
    if isinstance(spec, RepositorySpec):
        return obtain_from_repository(spec, log)
    return obtain_image(spec, log) if isinstance(spec, ImageSpec) else _built(spec, log)


def _built(spec: SourceSpec, log: Log) -> Kernel | NoKernel:
    return refused_first(spec, log, if_held=True) or build_kernel(spec, log)


def not_built(spec: KernelSpec, log: Log) -> NoKernel | None:
    """Why the kernel of a spec will not be built, as far as its patches and its config show, which
    takes seconds; None if nothing is against it as far as that goes.
    """
    plain = without_parameters(spec)
    found = refused_first(plain, log) if isinstance(plain, SourceSpec) else None
    return found and msgspec.structs.replace(found, spec=str(spec))


def check_kernels(specs: Iterable[str], log: Log) -> None:
    """UserError for a spec that cannot be a kernel, as far as nothing but package lists has to be
    fetched to know it: before other kernels are fetched or built, which may take minutes. Reports
    what the files were taken for that specs name.
    """
    parsed = [parse_kernel_spec(spec) for spec in specs]
    for spec in parsed:
        announce(spec.changes, log)
    # A look at package lists can take a second, and longer where they have to be loaded.
    for spec in sorted(parsed, key=lambda one: isinstance(one, DebSpec | DebSrcSpec)):
        _check(spec)


def _check(spec: KernelSpec) -> None:
    if isinstance(spec, ImageSpec):
        check_image(spec)
    elif isinstance(spec, DebSpec):
        check_deb(spec, quiet)
    elif isinstance(spec, FilesSpec):
        check_files(spec)
    elif isinstance(spec, SourceSpec):
        check_source(spec, quiet)


def arch_of(spec: KernelSpec) -> str:
    """The architecture that a spec's kernel will have; empty where only the kernel shows it."""
    if isinstance(spec, ImageSpec | FilesSpec | RepositorySpec):
        return ""
    if isinstance(spec, DebSpec):
        wanted = spec.architecture
        found = (
            one for one in targets().values() if one.dpkg == wanted or (not wanted and one.is_host)
        )
        return next((one.name for one in found), "")
    named = [
        one.value for one in spec.changes if isinstance(one, VariableChange) and one.name == "ARCH"
    ]
    with contextlib.suppress(UserError):  # which its build raises
        return kernel_arch(named[-1] if named else platform.machine()).machine
    return ""


def booted_as(found: Kernel, spec: KernelSpec) -> Kernel:
    """The kernel that was found for a spec without its boot parameters, with them."""
    if not (parameters := parameters_of(spec)):
        return found
    if isinstance(spec, BuiltSpec):  # of a package the version is known now
        spec = with_changes(parse_kernel_spec(found.spec), spec.changes)
    return booted_with(found, parameters, str(spec))

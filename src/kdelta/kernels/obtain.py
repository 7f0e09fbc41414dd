# SPDX-License-Identifier: GPL-2.0-or-later
"""Any kernel spec -> kernel."""

import msgspec

from kdelta.host.command import Talk
from kdelta.kernels.build.build import build_kernel
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel, booted_with
from kdelta.kernels.packages.deb import obtain_deb
from kdelta.kernels.packages.image import obtain_image
from kdelta.spec.kernel import (
    DebSpec,
    ImageSpec,
    KernelSpec,
    parameters_of,
    parse_kernel_spec,
    with_changes,
    without_parameters,
)


def obtain(spec: KernelSpec, talk: Talk) -> Kernel | NoKernel:
    """The kernel that a spec names, fetched or built unless the cache has it; or why its build did
    not make one. `talk` is called with what takes long.

    UserError when the spec names nothing that can be booted here, LabError when it cannot be had.
    """
    if parameters_of(spec):
        found = obtain(without_parameters(spec), talk)
        if isinstance(found, NoKernel):
            return msgspec.structs.replace(found, spec=str(spec))
        return booted_as(found, spec)
    if isinstance(spec, DebSpec):
        return obtain_deb(spec, talk)
    if isinstance(spec, ImageSpec):
        return obtain_image(spec)
    return build_kernel(spec, talk)


def booted_as(found: Kernel, spec: KernelSpec) -> Kernel:
    """The kernel that was found for a spec without its boot parameters, with them."""
    parameters = parameters_of(spec)
    if not parameters:
        return found
    if isinstance(spec, DebSpec | ImageSpec):  # of a package the version is known now
        spec = with_changes(parse_kernel_spec(found.spec), spec.changes)
    return booted_with(found, parameters, str(spec))

# SPDX-License-Identifier: GPL-2.0-or-later
"""Any kernel spec -> kernel."""

from collections.abc import Callable
from typing import overload

from kdelta.kernels.build import build_kernel
from kdelta.kernels.deb import obtain_deb
from kdelta.kernels.failure import NoKernel
from kdelta.kernels.image import obtain_image
from kdelta.kernels.model import Kernel
from kdelta.spec.kernel import DebSpec, ImageSpec, KernelSpec


@overload
def obtain(spec: DebSpec | ImageSpec, talk: Callable[[str], None]) -> Kernel: ...


@overload
def obtain(spec: KernelSpec, talk: Callable[[str], None]) -> Kernel | NoKernel: ...


def obtain(spec: KernelSpec, talk: Callable[[str], None]) -> Kernel | NoKernel:
    """The kernel that a spec names, fetched or built unless the cache has it; or why its build did
    not make one. `talk` is told what takes long.

    UserError when the spec names nothing that can be booted here, LabError when it cannot be had.
    """
    if isinstance(spec, DebSpec):
        return obtain_deb(spec, talk)
    if isinstance(spec, ImageSpec):
        return obtain_image(spec)
    return build_kernel(spec, talk)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Any kernel spec -> kernel."""

from collections.abc import Callable

from kdelta.kernels.deb import obtain_deb
from kdelta.kernels.image import obtain_image
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec, ImageSpec, KernelSpec


def obtain(spec: KernelSpec, talk: Callable[[str], None]) -> Kernel:
    """The kernel that a spec names; `talk` is told what takes long.

    UserError when the spec names nothing that can be booted here, LabError when it cannot be had.
    """
    if isinstance(spec, DebSpec):
        return obtain_deb(spec, talk)
    if isinstance(spec, ImageSpec):
        return obtain_image(spec)
    raise UserError(f"building from source is not supported yet: {spec}")

# SPDX-License-Identifier: GPL-2.0-or-later
"""From a kernel spec to a kernel that can boot."""

from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.config.config import MissingOption, missing_options
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.kernels.packages.cache import CachedKernel, cached_kernels

__all__ = [
    "CachedKernel",
    "Kernel",
    "MissingOption",
    "NoKernel",
    "cached_kernels",
    "missing_options",
    "obtain",
]

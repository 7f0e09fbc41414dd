# SPDX-License-Identifier: GPL-2.0-or-later
"""From a kernel spec to a kernel that can boot."""

from kdelta.kernels.cache import CachedKernel, cached_kernels
from kdelta.kernels.config import MissingOption, missing_options
from kdelta.kernels.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain

__all__ = [
    "CachedKernel",
    "Kernel",
    "MissingOption",
    "NoKernel",
    "cached_kernels",
    "missing_options",
    "obtain",
]

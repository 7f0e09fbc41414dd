# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel with kernel mode, which all tests here boot."""

import os
from pathlib import Path

import pytest

from kdelta.host.command import log_to_stderr
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.spec.kernel import parse_kernel_spec

SPEC = os.environ.get("KDELTA_KERNEL_MODE") or "deb-src:linux-source-6.12 +kernel-mode"


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The image of that kernel."""
    found = obtain(parse_kernel_spec(SPEC), log_to_stderr)
    assert isinstance(found, Kernel), found
    return Path(found.image)

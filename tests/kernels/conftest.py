# SPDX-License-Identifier: GPL-2.0-or-later
"""A real kernel of the configured distribution, fetched once into the user's cache."""

import pytest

from kdelta.host.command import log_to_stderr
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.deb import obtain_deb
from kdelta.spec.kernel import DebSpec


@pytest.fixture(scope="session")
def real_kernel() -> Kernel:
    return obtain_deb(DebSpec("linux-image-6.12-cloud-amd64", suite="bookworm"), log_to_stderr)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The real packages of Debian 14's kernel on a host of another release: split, booted, compared."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.host.command import log_to_stderr
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.spec.kernel import parse_kernel_spec

SPEC = "deb:linux-image-cloud-amd64@forky"
OLDER = "deb:linux-image-6.12-cloud-amd64@bookworm"


@pytest.mark.guest
@pytest.mark.network
@pytest.mark.slow
def test_debian_14_is_compared_with_6_12(tmp_path: Path) -> None:
    kernel = obtain(parse_kernel_spec(SPEC), log_to_stderr)
    assert isinstance(kernel, Kernel)
    assert "deb14" in kernel.release
    assert kernel.config is not None
    assert "CONFIG_VIRTIO" in Path(kernel.config).read_text()
    assert kernel.modules is not None
    assert len(list(Path(kernel.modules).rglob("*.ko*"))) > 500
    words = f"compare {OLDER} {SPEC} -o getppid --json --skip-states --perturb 1"
    done = subprocess.run(
        [sys.executable, "-m", "kdelta", *words.split()],
        env={**os.environ, "KDELTA_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    machine = json.loads(done.stdout)["machines"][0]
    assert machine["base"]["release"].startswith("6.12.")
    assert machine["others"][0]["side"]["release"] == kernel.release

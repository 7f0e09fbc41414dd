# SPDX-License-Identifier: GPL-2.0-or-later
"""`git bisect run kdelta gate` from git's side: real git, real builds of the fake tree."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.git_trees import git
from tests.studies.planted import BROKEN, CORE, SLOWER, Planted

pytestmark = pytest.mark.build

_GATE = """\
import sys
from pathlib import Path
from kdelta.cli import main as cli
from kdelta.kernels.model import Kernel
from kdelta.spec.kernel import GitSpec, parse_kernel_spec
from kdelta.spec.run import RunStatus
from kdelta.lab import work
from kdelta.lab.lab import Lab, RunResult
from tests.kernels.git_trees import git
from tests.report.example import stored
from tests.synthetic import own, region, run


def counted(kernel):
    spec = parse_kernel_spec(kernel.spec)
    if isinstance(spec, GitSpec):
        core = git(Path(spec.path), "show", f"{spec.revision}:kernel/core.c")
    else:
        core = Path(spec.path, "kernel/core.c").read_text()
    costs = {own("lock"): 3000 * core.count("lock(&held)"), own("start_kernel"): 7000}
    return run(region("open-close", costs))


async def runs(self, kernels, works, **_):
    return [
        [RunResult(stored(index, RunStatus.OK), counted(kernel)) for index in range(3)]
        for kernel in kernels
    ]


async def settled(self, kernels, works):
    return self


Lab.runs = runs
Lab.settled = settled
work.workload_work = lambda *_: None
sys.argv = ["kdelta", *sys.argv[1:]]
cli.main()
"""


@pytest.fixture
def planted(own_cache: Path, tmp_path: Path) -> Planted:
    assert own_cache.is_dir()
    return Planted(tmp_path)


def bisected(planted: Planted, good: str) -> str:
    """What git says of its run of the gate."""
    git(planted.folder, "bisect", "start", "main", good)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "PYTHONPATH": os.pathsep.join(sys.path)}
    gate = [sys.executable, "-c", _GATE, "gate", f"git:.@{good}", "."]
    done = subprocess.run(
        ["git", "bisect", "run", *gate],
        cwd=planted.folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_commit_is_found_around_one_that_does_not_build(planted: Planted) -> None:
    good = planted.name("HEAD")
    planted.placement(1)
    culprit = planted.change("core: slower", CORE, *SLOWER)
    # In the middle, where git looks first.
    planted.change("core: breaks the build", CORE, *BROKEN)
    planted.change("core: fixes the build", CORE, BROKEN[1], BROKEN[0])
    planted.placement(2)
    planted.unrelated(1)
    said = bisected(planted, good)
    assert f"{culprit} is the first bad commit" in said
    assert "slower: open-close +30% instructions" in said
    assert "cannot tell: other: build-failed" in said
    git(planted.folder, "bisect", "reset")
    assert git(planted.folder, "status", "--porcelain") == ""


@pytest.mark.slow
def test_placement_alone_is_never_bad(planted: Planted) -> None:
    good = planted.name("HEAD")
    names = [planted.placement(number) for number in range(3)]
    culprit = planted.change("core: slower", CORE, *SLOWER)
    said = bisected(planted, good)
    assert f"{culprit} is the first bad commit" in said
    assert not re.search("|".join(f"{name} is the first" for name in names), said)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Two packages of one upstream version, as a distribution replaces one by the other, are booted and
compared as two kernels.
"""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.kernels.model import Kernel
from kdelta.studies.forms import FORMS
from tests.cli.captured import Captured
from tests.kernels.packages.conftest import Lab
from tests.kernels.samples import deb, member
from tests.machines.bench import kernel

VERSIONS = ("6.1.192-2", "6.1.192-3")


def repacked(real: Kernel, *more: str) -> bytes:
    """The package of a kernel that is booted, with some files more among its modules."""
    assert real.modules is not None
    assert real.config is not None
    files = {f"boot/vmlinuz-{real.release}": real.image, f"boot/config-{real.release}": real.config}
    modules = Path(real.modules)
    files |= {
        f"lib/modules/{real.release}/{path.relative_to(modules)}": str(path)
        for path in sorted(modules.rglob("*"))
        if path.is_file()
    }
    found = [member(f"./{name}", Path(path).read_bytes()) for name, path in files.items()]
    found += [member(f"./lib/modules/{real.release}/kernel/{name}", b"text") for name in more]
    return deb(found)


@pytest.fixture
def real() -> Kernel:
    """The kernel, from the user's cache, before this test has one of its own."""
    return kernel()


@pytest.mark.guest
@pytest.mark.slow
def test_they_have_two_names_in_every_form(real: Kernel, lab: Lab, capsys: Captured) -> None:
    package = f"linux-image-{real.release}"
    offered = {}
    for version, more in zip(VERSIONS, ([], ["later.ko"]), strict=True):
        path = lab.folder / f"{version}.deb"
        path.write_bytes(repacked(real, *more))
        offered[version] = {"deb": str(path)}
    lab.change(packages={package: offered})
    specs = [f"deb:{package}={version}" for version in VERSIONS]
    assert cli.ended(["compare", *specs, "-o", "getppid", "-q"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert f"Linux {VERSIONS[1]} against {VERSIONS[0]}, 1 operation" in screen
    assert "1 same" in screen
    assert "differ in package version" in screen
    assert "operation 6.1.192-2 6.1.192-3 change" in screen
    for form in FORMS:
        assert cli.ended(["report", "last", "--format", form]) == 0
        text = capsys.readouterr().out
        assert all(version in text for version in VERSIONS), form
    assert cli.ended(["runs"]) == 0
    assert {line.split()[4] for line in capsys.readouterr().out.splitlines()[1:]} == set(VERSIONS)
    assert cli.ended(["log", "-o", "getppid"]) == 0
    assert all(version in capsys.readouterr().out for version in VERSIONS[:1])

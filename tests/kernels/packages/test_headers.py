# SPDX-License-Identifier: GPL-2.0-or-later
"""What modules are built against: headers packages of an apt of our own, and a kernel's own."""

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kdelta.host.command import quiet
from kdelta.host.manifest import is_manifest
from kdelta.kernels.kbuild.workbench import module_build
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.headers import headers_command
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram
from tests.kernels import fake_apt
from tests.kernels.samples import deb, member

pytestmark = pytest.mark.long

RELEASE = "6.1.0-9-fake-amd64"
HEADERS, COMMON, SCRIPTS = (
    f"linux-headers-{RELEASE}",
    "linux-headers-6.1.0-9-common",
    "linux-kbuild-6.1",
)
CONFIG = 'CONFIG_CC_VERSION_TEXT="fakecc-gcc-77 (Debian 77.2.0-14) 77.2.0"\n'
# As kernels have it: the folder that make is called in leads to the common files.
MAKEFILE = f"include /usr/src/{COMMON}/Makefile\n"
RULES = 'modules:\n\t@echo "$(CC) $(M) $(words $(wildcard scripts/*))"\n'


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def packages(folder: Path) -> dict[str, Any]:
    own, common = f"./usr/src/{HEADERS}", f"./usr/src/{COMMON}"
    files = {
        HEADERS: [
            member(f"{own}/Makefile", MAKEFILE.encode()),
            link(f"{own}/scripts", "../../lib/linux-kbuild-6.1/scripts"),
            link(f"./lib/modules/{RELEASE}/build", f"/usr/src/{HEADERS}"),
        ],
        COMMON: [
            member(f"{common}/Makefile", RULES.encode()),
            member(f"{common}/arch/x86/include/asm/x.h"),
            member(f"{common}/arch/mips/include/asm/x.h"),
        ],
        SCRIPTS: [member("./usr/lib/linux-kbuild-6.1/scripts/tool", mode=0o755)],
    }
    depends = {
        HEADERS: f"linux-base (>= 4), {COMMON} (= 1-2), {SCRIPTS} (>= 1-1), gcc-77",
        COMMON: "perl",
        SCRIPTS: "libc6",
    }
    found: dict[str, Any] = {}
    for name, members in files.items():
        path = folder / f"{name}.deb"
        path.write_bytes(deb(members))
        found[name] = {"1-2": {"deb": str(path), "depends": depends[name]}}
    return found


class Lab:
    """The faked apt, and a kernel of which it has the headers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: dict[str, Any] = {
            "packages": packages(folder),
            "network": True,
            "calls": str(folder / "calls"),
            "own_lists": {},
        }
        self.save()
        (folder / "config").write_text(CONFIG)
        self.kernel = Kernel(
            identity="id",
            spec=f"deb:linux-image-{RELEASE}=1-2",
            image="/image",
            arch="x86_64",
            release=RELEASE,
            config=str(folder / "config"),
        )

    def save(self) -> None:
        (self.folder / "apt.json").write_text(json.dumps(self.state))

    def command(self) -> list[str]:
        argv, env = headers_command(self.kernel, quiet)
        assert env == {}
        return argv

    def calls(self) -> list[str]:
        path = Path(self.state["calls"])
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def lab(
    tmp_path: Path, own_cache: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> Lab:
    assert own_cache
    monkeypatch.setattr("kdelta.kernels.packages.apt.SYSTEM_LISTS", tmp_path)
    for name in ("apt-get", "apt-cache"):
        fake_program(name, fake_apt.script(name, tmp_path / "apt.json"))
    fake_program("fakecc-gcc-77", "#!/bin/sh\necho 77\n")
    return Lab(tmp_path)


def test_headers_are_fetched_with_what_they_need_and_kept(lab: Lab, own_cache: Path) -> None:
    argv = lab.command()
    done = subprocess.run([*argv, "M=/m", "modules"], capture_output=True, text=True, check=True)
    assert "fakecc-gcc-77 /m 1" in done.stdout.splitlines()
    wanted = [f"download {name}=1-2" for name in (COMMON, HEADERS, SCRIPTS)]
    assert sorted(lab.calls()) == wanted

    (folder,) = (path for path in (own_cache / "headers").iterdir() if not is_manifest(path))
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("x.h")}
    assert found == {f"usr/src/{COMMON}/arch/x86/include/asm/x.h"}
    assert not (folder / "lib").exists()
    assert not list(folder.rglob("*.deb"))

    assert lab.command() == argv
    assert len(lab.calls()) == len(wanted)


def test_module_build_of_a_packaged_kernel_goes_by_its_headers(lab: Lab) -> None:
    with module_build(lab.kernel, quiet) as (argv, _):
        assert argv == lab.command()


def test_an_unsigned_image_has_the_headers_of_the_signed_one(lab: Lab) -> None:
    first = lab.command()
    lab.kernel = Kernel(
        "id", f"deb:linux-image-{RELEASE}-unsigned=1-2", "/i", "x86_64", RELEASE, lab.kernel.config
    )
    assert lab.command() == first


def test_a_mirror_that_has_the_headers_no_more(lab: Lab, own_cache: Path) -> None:
    lab.state["packages"][COMMON]["1-2"].pop("deb")
    lab.state["own_lists"] = lab.state["packages"]
    lab.save()
    with pytest.raises(LabError, match=f"the mirror does not have {HEADERS} 1-2: .*404"):
        lab.command()
    assert list((own_cache / "headers").iterdir()) == []


def test_headers_that_apt_does_not_know(lab: Lab) -> None:
    del lab.state["packages"][HEADERS]
    lab.save()
    with pytest.raises(LabError, match=f"apt has no {HEADERS} 1-2"):
        lab.command()


def test_kdeltas_own_lists_are_asked_when_the_systems_do_not_know(lab: Lab) -> None:
    lab.state["own_lists"] = lab.state["packages"]
    lab.state["packages"] = {}
    lab.save()
    assert lab.command()[0] == "make"


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ({"fakecc-gcc-77": "77", "gcc-77": "77", "gcc": "77"}, "fakecc-gcc-77"),
        ({"fakecc-gcc-77": "78", "gcc-77": "77", "gcc": "77"}, "gcc-77"),
        ({"fakecc-gcc-77": "78", "gcc": "77"}, "gcc"),
    ],
)
@pytest.mark.slow
def test_the_compiler_of_the_kernels_major_version(
    lab: Lab, fake_program: FakeProgram, there: dict[str, str], taken: str
) -> None:
    for name, version in there.items():
        fake_program(name, f"#!/bin/sh\necho {version}\n")
    assert f"CC={taken}" in lab.command()


def test_another_compiler_is_not_taken(lab: Lab, fake_program: FakeProgram) -> None:
    for name in ("fakecc-gcc-77", "gcc"):
        fake_program(name, "#!/bin/sh\necho 12\n")
    with pytest.raises(LabError, match="compiled by gcc-77") as raised:
        lab.command()
    assert "apt-get install gcc-77" in raised.value.hint


def test_an_image_has_what_its_modules_lead_to(lab: Lab) -> None:
    folder = lab.folder / "lib/modules/x"
    (folder / "build").mkdir(parents=True)
    image = Kernel("id", "image:/i", "/i", "x86_64", "x", lab.kernel.config, str(folder))
    with pytest.raises(UserError, match="without what modules are built against"):
        headers_command(image, quiet)
    (folder / "build/Makefile").write_text(RULES)
    argv, _ = headers_command(image, quiet)
    assert argv[:3] == ["make", "-C", str(folder / "build")]


def test_a_cache_whose_path_make_does_not_take(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "my cache"))
    with pytest.raises(LabError, match="make cannot have in a path") as raised:
        lab.command()
    assert "KDELTA_CACHE_DIR" in raised.value.hint


@pytest.mark.usefixtures("own_cache")
def test_modules_for_another_architecture() -> None:
    """The headers package has programs, which run where the kernel does."""
    kernel = Kernel("id", "deb:linux-image-6.1.0-9-armmp:armhf=1-2", "zImage", "arm", RELEASE)
    with (
        pytest.raises(UserError, match="are not for this host") as raised,
        module_build(kernel, quiet),
    ):
        pass
    assert raised.value.hint == "name a source tree"

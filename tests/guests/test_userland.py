# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs for guests out of packages that real compilers made, by an apt of our own."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.guests.userland import Userland, pinned_userland, userland
from kdelta.host.pin import PIN_URL
from kdelta.host.target import host_target
from kdelta.spec.errors import LabError, UserError
from kdelta.workloads.catalog import UserlandWanted
from tests.conftest import FakeProgram
from tests.host.fake_pin import VERSION, deb, make_package, make_pin
from tests.kernels import fake_apt

LOADER = "/lib64/ld-fake.so.2"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
Files = Mapping[str, Path | str]
WANTED = UserlandWanted(("tool",), ("/usr/sbin/tool",), ("/usr/lib/*/plugins/*.so",))
FILES = [
    LOADER,
    f"/{LIBRARIES}/libinner.so.0",
    f"/{LIBRARIES}/libthing.so.1",
    f"/{LIBRARIES}/plugins/more.so",
    "/usr/sbin/tool",
]


class Distribution:
    """The faked apt with its packages, and what kdelta says to its user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self._compile()
        tool: Files = {
            "usr/sbin/tool": folder / "tool",
            "usr/share/doc/tool/README": folder / "tool.c",
            f"{LIBRARIES}/plugins/more.so": folder / "tool.c",
        }
        thing: Files = {
            f"{LIBRARIES}/libthing.so.1.0": folder / "libthing.so.1.0",
            f"{LIBRARIES}/libthing.so.1": "libthing.so.1.0",
        }
        loader: Files = {
            "lib/ld-fake.so.2": folder / "tool.c",
            "lib64/ld-fake.so.2": "/lib/ld-fake.so.2",
        }
        aside: Files = {"lib/libaside.so.2": folder / "tool.c"}
        inner: Files = {f"{LIBRARIES}/libinner.so.0": folder / "libinner.so.0"}
        packages = {
            "tool": {"1": self.record("tool", tool, "perl, libc6 (>= 2), libaside2, libthing1")},
            "libthing1": {"1": self.record("libthing1", thing, "libinner0")},
            "libinner0": {"1": self.record("libinner0", inner, "")},
            "libc6": {"1": self.record("libc6", loader, "")},
            "libaside2": {"1": self.record("libaside2", aside, "")},
            "perl": {"1": self.record("perl", {"usr/bin/perl": folder / "tool.c"}, "")},
        }
        self.state: dict[str, Any] = {
            "packages": packages,
            "network": True,
            "calls": str(folder / "calls"),
            "own_lists": packages,
        }
        self.save()

    def _compile(self) -> None:
        def gcc(*words: str) -> None:
            argv = ["gcc", "-nostdlib", "-fPIC", *words]
            subprocess.run(argv, cwd=self.folder, check=True)

        (self.folder / "tool.c").write_text("void thing(void); void _start(void) { thing(); }\n")
        (self.folder / "thing.c").write_text("void inner(void); void thing(void) { inner(); }\n")
        (self.folder / "inner.c").write_text("void inner(void) { }\n")
        gcc("-shared", "-Wl,-soname,libinner.so.0", "inner.c", "-o", "libinner.so.0")
        shared = ("-shared", "-Wl,-soname,libthing.so.1")
        gcc(*shared, "thing.c", "libinner.so.0", "-o", "libthing.so.1.0")
        loader = f"-Wl,--dynamic-linker={LOADER}"
        gcc("-pie", loader, "tool.c", "libthing.so.1.0", "-Wl,-rpath-link,.", "-o", "tool")

    def record(self, name: str, files: Files, depends: str, version: str = "1") -> dict[str, str]:
        """A package of files, or of links where the content is a text."""
        root = self.folder / f"{name}-{version}"
        for path, content in files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                place.write_bytes(content.read_bytes())
            else:
                place.symlink_to(content)
        (root / "DEBIAN").mkdir(parents=True)
        (root / "DEBIAN/control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x\n"
            "Description: x\n"
        )
        deb = self.folder / f"{name}-{version}.deb"
        argv = ["dpkg-deb", "--root-owner-group", "-Znone", "-b", str(root), str(deb)]
        subprocess.run(argv, check=True, capture_output=True)
        return {"deb": str(deb), "depends": depends}

    def save(self) -> None:
        (self.folder / "apt.json").write_text(json.dumps(self.state))
        # What apt would answer has changed, as an update's new lists show.
        (self.folder / f"lists-{len(list(self.folder.glob('lists-*')))}").touch()

    def userland(self, wanted: UserlandWanted = WANTED, arch: str = "x86_64") -> Userland:
        self.said.clear()
        return userland(wanted, arch, self.said.append)

    def downloads(self) -> list[str]:
        calls = Path(self.state["calls"])
        return calls.read_text().split()[1::2] if calls.exists() else []


@pytest.fixture
def distribution(
    tmp_path: Path, own_cache: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> Distribution:
    assert own_cache
    monkeypatch.setattr("kdelta.kernels.packages.apt.SYSTEM_LISTS", tmp_path)
    for name in ("apt-get", "apt-cache"):
        fake_program(name, fake_apt.script(name, tmp_path / "apt.json"))
    return Distribution(tmp_path)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(
        (host := host_target()) is None or host.name != "x86_64",
        reason="the packages are compiled by the host's compiler",
    ),
]


def test_what_the_programs_load_and_nothing_else(distribution: Distribution) -> None:
    found = distribution.userland()
    assert [file.guest for file in found.files] == FILES
    assert all(file.mode == 0o755 for file in found.files)
    assert all(file.host.is_file() and not file.host.is_symlink() for file in found.files)
    by_guest = {file.guest: file.host.read_bytes() for file in found.files}
    library = (distribution.folder / "libthing.so.1.0").read_bytes()
    assert by_guest[f"/{LIBRARIES}/libthing.so.1"] == library


def test_only_the_packages_that_have_it(distribution: Distribution) -> None:
    found = distribution.userland()
    assert found.packages == ("tool=1", "libc6=1", "libthing1=1", "libinner0=1")
    assert sorted(distribution.downloads()) == sorted(found.packages)


def test_documents_are_left_out(distribution: Distribution, own_cache: Path) -> None:
    distribution.userland()
    kept = {path.name for path in (own_cache / "userland/tool_1_amd64/root").rglob("*")}
    assert "tool" in kept
    assert "README" not in kept


def test_from_the_cache_without_a_download(distribution: Distribution) -> None:
    first = distribution.userland()
    distribution.state["network"] = False
    (distribution.folder / "apt.json").write_text(json.dumps(distribution.state))
    assert distribution.userland() == first
    assert len(distribution.downloads()) == len(first.packages)
    assert distribution.said == []


def test_a_newer_version_is_taken(distribution: Distribution) -> None:
    distribution.userland()
    inner = {f"{LIBRARIES}/libinner.so.0": distribution.folder / "libinner.so.0"}
    newer = distribution.record("libinner0", inner, "", version="1:2")
    distribution.state["packages"]["libinner0"]["1:2"] = newer
    distribution.save()
    assert "libinner0=1:2" in distribution.userland().packages
    assert distribution.downloads().count("libthing1=1") == 1


def test_what_was_fetched_before_serves_without_a_network(distribution: Distribution) -> None:
    first = distribution.userland()
    distribution.state["packages"]["tool"]["2"] = distribution.state["packages"]["tool"]["1"]
    distribution.state["network"] = False
    distribution.save()
    assert distribution.userland() == first
    assert distribution.said[-1].startswith("taking the packages in the cache: tool=2 could not be")


def test_no_such_package(distribution: Distribution) -> None:
    with pytest.raises(UserError, match="there is no package nosuch for amd64"):
        distribution.userland(UserlandWanted(("tool", "nosuch"), ("/usr/sbin/tool",)))


def test_an_architecture_without_packages(distribution: Distribution) -> None:
    distribution.state["own_lists"] = {}
    distribution.save()
    with pytest.raises(UserError, match="no packages for riscv64") as raised:
        distribution.userland(arch="riscv64")
    assert "another architecture" in raised.value.hint


def test_a_package_without_that_architecture(distribution: Distribution) -> None:
    packages = distribution.state["packages"]
    distribution.state["own_lists"] = {"libc6": packages["libc6"]}
    distribution.save()
    with pytest.raises(UserError, match="there is no package tool for armhf"):
        distribution.userland(arch="arm")


def test_a_foreign_architecture_has_lists_and_packages_of_its_own(
    distribution: Distribution, own_cache: Path
) -> None:
    found = distribution.userland(arch="arm64")
    assert [file.guest for file in found.files] == FILES
    assert (own_cache / "userland/tool_1_arm64").is_dir()
    assert not (own_cache / "userland/tool_1_amd64").exists()


def test_lists_that_were_loaded_in_part_are_used(
    distribution: Distribution, pauses: list[float]
) -> None:
    distribution.state |= {"renewed": 4, "loaded_meanwhile": distribution.state["own_lists"]}
    distribution.save()
    assert [file.guest for file in distribution.userland(arch="arm64").files] == FILES
    assert len(pauses) == 3
    assert sum("some package lists could not be loaded" in line for line in distribution.said) == 1


def test_a_package_that_a_missing_list_may_name(
    distribution: Distribution, pauses: list[float]
) -> None:
    libc = {"libc6": distribution.state["packages"]["libc6"]}
    distribution.state |= {"renewed": 4, "loaded_meanwhile": libc}
    distribution.save()
    with pytest.raises(LabError, match="tool is not in the package lists, of which some"):
        distribution.userland(arch="arm64")
    assert len(pauses) == 3


def test_a_package_that_is_not_what_the_lists_log(distribution: Distribution) -> None:
    distribution.state["packages"]["libthing1"]["1"]["sha256"] = "0" * 64
    distribution.save()
    with pytest.raises(LabError, match=r"libthing1_1_amd64\.deb is not what the package lists say"):
        distribution.userland()


def test_a_program_that_no_package_has(distribution: Distribution) -> None:
    with pytest.raises(LabError, match="none of the packages tool has /usr/bin/other") as raised:
        distribution.userland(UserlandWanted(("tool",), ("/usr/bin/other",)))
    assert "workload.toml" in raised.value.hint


def test_files_that_no_package_has(distribution: Distribution) -> None:
    with pytest.raises(LabError, match=r"none of the packages tool has /etc/\*"):
        distribution.userland(UserlandWanted(("tool",), (), ("/etc/*",)))


def test_a_library_that_no_dependency_has(distribution: Distribution) -> None:
    distribution.state["packages"]["libthing1"]["1"]["depends"] = "perl"
    distribution.save()
    with pytest.raises(LabError, match=r"libthing\.so\.1 of the package libthing1 needs libinner"):
        distribution.userland()


def test_packages_that_others_depend_on_by_a_pattern(distribution: Distribution) -> None:
    """As gcc depends on gcc-12, which has the compiler."""
    packages = distribution.state["packages"]
    packages["tools"] = {"1": distribution.record("tools", {}, "tool-12, perl")}
    again: Files = {"usr/sbin/tool": distribution.folder / "tool"}
    packages["tool-12"] = {"1": distribution.record("tool-12", again, "tool-base, libthing1")}
    packages["tool-base"] = {"1": distribution.record("tool-base", {}, "libc6")}
    distribution.save()
    wanted = UserlandWanted(("tools", "libc6"), ("/usr/sbin/tool",), (), ("tool-[0-9b]*",))
    found = distribution.userland(wanted)
    assert "tool-12=1" in found.packages
    assert "tool-base=1" in found.packages
    assert "perl=1" not in found.packages
    with pytest.raises(LabError, match="has /usr/sbin/tool"):
        distribution.userland(UserlandWanted(("tools",), ("/usr/sbin/tool",)))


def test_a_library_whose_package_is_not_called_lib_something(distribution: Distribution) -> None:
    """As libz is in zlib1g."""
    packages = distribution.state["packages"]
    packages["thinglib1g"] = packages.pop("libthing1")
    tool: Files = {"usr/sbin/tool": distribution.folder / "tool"}
    depends = "perl, libc6, thinglib1g"
    packages["tool"]["1"] = distribution.record("tool", tool, depends, version="1.1")
    distribution.save()
    found = distribution.userland(UserlandWanted(("tool",), ("/usr/sbin/tool",)))
    assert "thinglib1g=1" in found.packages
    assert "perl=1" not in found.packages


def test_packages_of_a_pin_whose_folders_are_merged(
    distribution: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Debian 13 has them: all is below /usr, and is asked for as ever."""

    def content(path: str) -> str:
        return (distribution.folder / path).read_bytes().decode("latin-1")

    files = {
        "usr/sbin/tool": content("tool"),
        "usr/lib64/ld-fake.so.2": content("tool.c"),
        f"{LIBRARIES}/libthing.so.1": content("libthing.so.1.0"),
        f"{LIBRARIES}/libinner.so.0": content("libinner.so.0"),
        f"{LIBRARIES}/plugins/more.so": content("tool.c"),
    }
    packed = deb(files)
    package = make_package(tmp_path / "mirror", "pool/t/tool_1_amd64.deb", packed, "nat-x86_64")
    made = msgspec.structs.replace(make_pin(tmp_path / "mirror"), packages=(package,))
    monkeypatch.setenv(PIN_URL, str(tmp_path / "mirror"))
    found = pinned_userland(WANTED, made, "nat-x86_64", print)
    assert [file.guest for file in found.files] == FILES
    assert found.packages == (f"tool={VERSION}",)
    assert distribution.downloads() == []


@pytest.mark.parametrize("asked", ["/sbin/tool", "/usr/sbin/tool"])
@pytest.mark.parametrize("has", ["sbin/tool", "usr/sbin/tool"])
def test_a_program_in_either_folder(distribution: Distribution, asked: str, has: str) -> None:
    """Where /sbin is a link to /usr/sbin, packages have programs in either."""
    files: Files = {has: distribution.folder / "tool"}
    made = distribution.record("moved", files, "libc6, libthing1")
    distribution.state["packages"]["moved"] = {"1": made}
    distribution.save()
    found = distribution.userland(UserlandWanted(("moved",), (asked,)))
    assert asked in {file.guest for file in found.files}

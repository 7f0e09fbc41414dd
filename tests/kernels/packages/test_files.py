# SPDX-License-Identifier: GPL-2.0-or-later
"""rpm: and pkg: kernels, of packages and repositories that rpmbuild, createrepo_c and repo-add made
(recorded/kernel.spec), and what is refused.
"""

import functools
import hashlib
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli.kernels import kernels_text
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import arch_of, obtain
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.kernels.packages.repository import compare_rpm_versions
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec

RECORDED = Path(__file__).parent / "recorded"
RPMS, ARCH = RECORDED / "rpms", RECORDED / "arch"
RELEASE = "6.6.6-200.fc39.x86_64"
CORE, MODULES, DEFAULT, META = (
    f"kernel{part}-{RELEASE}.rpm" for part in ("-core", "-modules-core", "-default", "")
)
ARCH_PACKAGE = "linux-6.8.5.arch1-1-x86_64.pkg.tar.zst"

pytestmark = pytest.mark.usefixtures("own_cache")


class Lab:
    """Obtains kernels, and keeps what kdelta says to its user."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def obtain(self, text: str) -> Kernel:
        self.said.clear()
        found = obtain(parse_kernel_spec(text), self.said.append)
        assert isinstance(found, Kernel)
        return found


@pytest.fixture
def lab() -> Lab:
    return Lab()


def modules(kernel: Kernel) -> set[str]:
    assert kernel.modules is not None
    folder = Path(kernel.modules)
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.ko*")}


def test_image_and_modules_of_two_packages(lab: Lab) -> None:
    """By zstd and by xz."""
    text = f"rpm:{RPMS / CORE},{RPMS / MODULES}"
    kernel = lab.obtain(text)
    assert (kernel.release, kernel.arch, kernel.spec) == (RELEASE, "x86_64", text)
    assert modules(kernel) == {"kernel/net/dummy.ko"}
    assert kernel.config is not None
    assert Path(kernel.config).read_text() == "CONFIG_64BIT=y\n"
    assert lab.obtain(text) == kernel
    assert lab.said == []
    assert arch_of(parse_kernel_spec(text)) == ""


def test_whole_kernel_below_usr(lab: Lab) -> None:
    """By bzip2, as openSUSE lays it out."""
    kernel = lab.obtain(f"rpm:{RPMS / DEFAULT}")
    assert (kernel.release, modules(kernel)) == (RELEASE, {"kernel/net/dummy.ko"})


def test_missing_modules_are_reported(lab: Lab) -> None:
    lab.obtain(f"rpm:{RPMS / CORE}")
    assert lab.said[-1] == (
        f"{CORE} has no modules: name the package that has them, too, after a comma"
    )


def test_package_of_pacman(lab: Lab) -> None:
    kernel = lab.obtain(f"pkg:{ARCH / ARCH_PACKAGE}")
    assert kernel.release == "6.8.5-arch1-1"
    assert modules(kernel) == {"kernel/net/dummy.ko.zst"}


def test_listed_kernels_name_what_obtains_them(lab: Lab) -> None:
    kernel = lab.obtain(f"pkg:linux@{ARCH}/core.db")
    assert kernel.spec == f"pkg:linux=6.8.5.arch1-1@{ARCH}/core.db"
    assert kernels_text(cached_kernels(), []).startswith(f"{kernel.spec}\n")


def test_boot_parameters_hold_for_a_package(lab: Lab) -> None:
    kernel = lab.obtain(f"rpm:kernel-default@{RPMS} +cmdline:nosmt")
    assert kernel.parameters == ("nosmt",)
    assert kernel.spec == f"rpm:kernel-default=6.6.6-200.fc39@{RPMS} +cmdline:nosmt"


class _Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/loop"):
            self.send_response(302)
            self.send_header("Location", "/loop/again")
            self.end_headers()
        elif self.path.startswith("/short"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"only this")
        elif self.path.startswith("/page"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"\n<!DOCTYPE html>\n<html><title>Please log in</title></html>")
        else:
            super().do_GET()

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """The address of a copy of the recorded folder, which the test may change."""
    shutil.copytree(RECORDED, tmp_path / "mirror")

    handler = functools.partial(_Handler, directory=str(tmp_path / "mirror"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_kernel_package_brings_the_packages_of_its_release(lab: Lab, mirror: str) -> None:
    kernel = lab.obtain(f"rpm:kernel@{mirror}/rpms")
    assert kernel.spec == f"rpm:kernel=6.6.6-200.fc39@{mirror}/rpms"
    assert modules(kernel) == {"kernel/net/dummy.ko"}
    named = [line.split()[1] for line in lab.said if line.startswith("downloading")]
    assert named == ["kernel", "kernel-core", "kernel-modules-core"]


def test_version_in_the_cache_needs_no_network(lab: Lab, mirror: str, tmp_path: Path) -> None:
    first = lab.obtain(f"rpm:kernel-core@{mirror}/rpms")
    shutil.rmtree(tmp_path / "mirror")
    assert lab.obtain(first.spec) == first
    with pytest.raises(LabError, match="404") as raised:
        lab.obtain(f"rpm:kernel-core@{mirror}/rpms")
    assert raised.value.hint.endswith(f"in the cache: {first.spec}")


def test_address_of_a_file_is_fetched_once(lab: Lab, mirror: str, tmp_path: Path) -> None:
    kernel = lab.obtain(f"rpm:{mirror}/rpms/{DEFAULT}")
    shutil.rmtree(tmp_path / "mirror")
    assert lab.obtain(f"rpm:{mirror}/rpms/{DEFAULT}") == kernel


def test_package_with_another_hash_is_refused(lab: Lab, mirror: str, tmp_path: Path) -> None:
    shutil.copy(RPMS / META, tmp_path / "mirror/rpms" / CORE)
    with pytest.raises(LabError, match=f"cannot use .*{CORE}: its sha256 is .*repository says"):
        lab.obtain(f"rpm:kernel-core@{mirror}/rpms")
    assert cached_kernels() == []


@pytest.mark.parametrize(
    "spec",
    [
        "rpm:{0}/kernel-core.rpm",
        "pkg:{0}/linux-1-x86_64.pkg.tar.zst",
        "rpm:kernel@{0}",
        "pkg:linux@{0}/core.db",
    ],
)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("loop", r"cannot fetch http.*: 302 [^\n]* infinite loop\.$"),
        ("short", r"cannot fetch http.*: the last 991 bytes did not come$"),
        ("page", r"cannot use http.*: it is a web page, and no file of packages$"),
        ("none", r"cannot fetch http.*: 404 File not found$"),
    ],
)
def test_answers_of_servers_that_are_no_packages(
    lab: Lab, mirror: str, spec: str, answer: str, message: str
) -> None:
    with pytest.raises(LabError) as raised:
        lab.obtain(spec.format(f"{mirror}/{answer}"))
    assert re.fullmatch(message, raised.value.message)
    assert raised.value.hint
    assert cached_kernels() == []


def test_index_with_another_hash_is_refused(lab: Lab, mirror: str, tmp_path: Path) -> None:
    (tmp_path / "mirror/rpms/repodata/primary.xml.gz").write_bytes(b"")
    with pytest.raises(LabError, match=r"cannot use .*primary\.xml\.gz: its sha256"):
        lab.obtain(f"rpm:kernel@{mirror}/rpms")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("../../secret", "names a file '../../secret'"),
        ("/etc/passwd", "names a file '/etc/passwd'"),
    ],
)
def test_index_outside_the_repository_is_refused(
    lab: Lab, tmp_path: Path, place: str, text: str
) -> None:
    folder = shutil.copytree(RPMS, tmp_path / "rpms")
    index = folder / "repodata/repomd.xml"
    index.write_text(index.read_text().replace("repodata/primary.xml.gz", place))
    with pytest.raises(LabError, match=f"cannot use the repository .*: it {text}"):
        lab.obtain(f"rpm:kernel@{folder}")


def test_index_with_entities_is_refused(lab: Lab, tmp_path: Path) -> None:
    folder = shutil.copytree(RPMS, tmp_path / "rpms")
    index = folder / "repodata/repomd.xml"
    index.write_text('<!DOCTYPE a [<!ENTITY b "c">]>' + index.read_text().partition("?>")[2])
    with pytest.raises(LabError, match=r"cannot read the repository .*a declaration"):
        lab.obtain(f"rpm:kernel@{folder}")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("rpm:kernle-core@{rpms}", "has no package kernle-core", "the nearest: kernel-core"),
        ("rpm:kernel-core=7@{rpms}", "kernel-core has no version 7", "there is: 6.6.6-200.fc39"),
        ("pkg:linux-zen@{arch}/core.db", "has no package linux-zen", "the nearest: linux"),
        ("pkg:linux@{arch}", "no database of pacman", "name it, for example {arch}/core.db"),
        ("rpm:kernel@{arch}", "no such file: .*repomd.xml", "a folder with repodata"),
        ("rpm:{rpms}/none.rpm", "no such file: .*none.rpm", "see: ls {rpms}"),
        ("rpm:ftp://example.org/a.rpm", "not an address of http or https", ""),
        (
            "rpm:{rpms}/" + META,
            f"package {META} holds no kernel",
            "name the package with the image",
        ),
    ],
)
def test_slips_name_what_helps(lab: Lab, text: str, message: str, hint: str) -> None:
    places = {"rpms": str(RPMS), "arch": str(ARCH)}
    with pytest.raises(UserError, match=message) as raised:
        lab.obtain(text.format(**places))
    assert hint.format(**places) in raised.value.hint
    assert cached_kernels() == []


def test_packages_of_two_kernels_are_refused(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="do not belong together") as raised:
        lab.obtain(f"rpm:{RPMS / CORE},{_renamed(tmp_path)}")
    assert "6.8.5-arch1-1" in raised.value.message
    assert cached_kernels() == []


def _renamed(folder: Path) -> Path:
    """Arch's package, by a name that rpm: takes; what a file is shows its content."""
    return Path(shutil.copy(ARCH / ARCH_PACKAGE, folder / "other.rpm"))


@pytest.mark.parametrize("keep", [0, 50, 300, 5000, -1])
@pytest.mark.parametrize("name", [CORE, MODULES, DEFAULT])
def test_cut_off_package_is_refused(lab: Lab, tmp_path: Path, name: str, keep: int) -> None:
    content = (RPMS / name).read_bytes()
    (tmp_path / "cut.rpm").write_bytes(content[:keep])
    with pytest.raises(LabError, match=r"the package cut\.rpm is damaged"):
        lab.obtain(f"rpm:{tmp_path}/cut.rpm")
    assert cached_kernels() == []


def test_changed_bytes_are_found(lab: Lab, tmp_path: Path) -> None:
    """By rpm's hashes, whatever the packer would have said."""
    content = bytearray((RPMS / DEFAULT).read_bytes())
    for at, what in ((len(content) - 40, "hash of its files"), (5000, "hash of its header")):
        damaged = bytearray(content)
        damaged[at] ^= 1
        (tmp_path / "changed.rpm").write_bytes(damaged)
        with pytest.raises(LabError, match=f"damaged: the {what} differs"):
            lab.obtain(f"rpm:{tmp_path}/changed.rpm")


@pytest.mark.parametrize("keep", [10, 200, -1])
def test_cut_off_package_of_pacman_is_refused(lab: Lab, tmp_path: Path, keep: int) -> None:
    cut = tmp_path / ARCH_PACKAGE
    cut.write_bytes((ARCH / ARCH_PACKAGE).read_bytes()[:keep])
    with pytest.raises(LabError, match="is damaged"):
        lab.obtain(f"pkg:{cut}")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("6.6.6", "6.6.10"),
        ("6.6", "6.6.1"),
        ("6.12.0~rc1", "6.12.0"),
        ("6.12.0", "6.12.0^git1"),
        ("200.fc39", "200.fc40"),
        ("1.a", "1.1"),
        ("6.9.arch1", "6.9.1.arch1"),
    ],
)
def test_versions_are_ordered_as_by_rpm(older: str, newer: str) -> None:
    assert compare_rpm_versions(older, newer) < 0 < compare_rpm_versions(newer, older)
    assert compare_rpm_versions(newer, newer) == 0


def test_recorded_index_has_the_hashes_of_the_recorded_packages() -> None:
    """Who records a package again has to make the index again."""
    desc = re.search(rb"[0-9a-f]{64}", _unpacked_database())
    assert desc
    assert desc[0].decode() == hashlib.sha256((ARCH / ARCH_PACKAGE).read_bytes()).hexdigest()


def _unpacked_database() -> bytes:
    import tarfile

    with tarfile.open(ARCH / "core.db") as archive:
        file = archive.extractfile("linux-6.8.5.arch1-1/desc")
        assert file is not None
        return file.read()

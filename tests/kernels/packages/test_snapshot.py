# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that left the mirrors, by the real apt and its verifier: from a snapshot archive of our
own, signed by a key of our own; no network, no root.
"""

import json
import re
import tarfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.host.files import make_folder
from kdelta.host.target import host_target
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import check_kernels, obtain
from kdelta.kernels.packages.snapshot import Dated, dated_apt, dates_of, snapshot_base
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec
from tests.conftest import FakeProgram
from tests.kernels.git_trees import files, source, write_tree
from tests.kernels.openpgp import MADE, public_key, signed
from tests.kernels.packages.served import Archives, Package, asked, serving, use_apt
from tests.kernels.samples import BANNER, RELEASE, bzimage, deb, kernel_members, member

pytestmark = pytest.mark.long

IMAGE = f"linux-image-{RELEASE}"
META = "linux-image-fake-amd64"
OLD_RELEASE = "6.1.0-98-fake-amd64"
OLD_IMAGE = f"linux-image-{OLD_RELEASE}"
SPEC = f"deb:{IMAGE}=1-1"
STAMP = "20230901T090512Z"
NEWER_STAMP = "20230915T031500Z"
OLD = Package(IMAGE, "1-1", deb(kernel_members("6.1.0-99-old-amd64")))
NEW = Package(IMAGE, "1-2", deb(kernel_members()))
SUITE = "bookworm"
BAD_SIGNATURE = "(BADSIG|Message has been manipulated)"
"""What apt 2.6 (gpgv) and apt 3.0 (sqv) say of it."""


class Lab:
    """The archives, and what kdelta says to its user."""

    def __init__(self, archives: Archives, cache: Path, keys: Path) -> None:
        self.archives = archives
        self.cache = cache
        self.keys = keys
        self.said: list[str] = []

    def obtain(self, text: str) -> Kernel:
        """The kernel of a spec."""
        self.said.clear()
        self.archives.requests.clear()
        found = obtain(parse_kernel_spec(text), self.said.append)
        assert isinstance(found, Kernel)
        return found

    def refused(self, text: str, error: type[KdeltaError] = LabError) -> KdeltaError:
        """The error of a spec; nothing of it may be kept."""
        with pytest.raises(error) as raised:
            self.obtain(text)
        assert self.kept() == []
        assert "\n" not in raised.value.message + raised.value.hint
        return raised.value

    def kept(self) -> list[str]:
        """What the cache has of kernels, and of the work on them."""
        found = [*self.cache.glob("kernels/*"), *self.cache.glob("work/*")]
        return sorted(path.name for path in found)

    def snapshot_requests(self) -> list[str]:
        """What the snapshot archive was asked."""
        return [path for path in self.archives.requests if path.startswith("/snapshot/")]


@pytest.fixture
def lab(
    tmp_path: Path, own_cache: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lab]:
    """A host with Debian 12, whose mirror has only the newer version."""
    host = host_target()
    if host is None:
        pytest.skip("this host's architecture has no packages")
    archives = Archives(host.dpkg)
    archives.mirror(SUITE, NEW)
    keys = tmp_path / "keyrings"
    keys.mkdir()
    (keys / "debian-archive-keyring.gpg").write_bytes(public_key())
    release = {"ID": "debian", "VERSION_CODENAME": SUITE}
    monkeypatch.setattr("kdelta.kernels.packages.apt._os_release", lambda: release)
    monkeypatch.setattr("kdelta.kernels.packages.apt._KEYRINGS", keys)
    monkeypatch.setattr("kdelta.kernels.packages.apt.SYSTEM_LISTS", tmp_path / "none")
    with serving(archives.get) as address:
        monkeypatch.setenv("KDELTA_SNAPSHOT_URL", f"{address}/snapshot/")
        mirror = f"deb [trusted=yes] {address}/mirror {SUITE} main"
        use_apt(tmp_path, mirror, fake_program, monkeypatch)
        yield Lab(archives, own_cache, keys)
        archives.ended.set()


def dated(lab: Lab, *packages: Package, suite: str = f"{SUITE}-updates") -> str:
    return lab.archives.dated("debian", STAMP, suite, *packages)


def test_kernel_that_left_the_mirrors_comes_from_the_snapshot_archive(lab: Lab) -> None:
    dated(lab, OLD)
    kernel = lab.obtain(SPEC)
    assert (kernel.release, kernel.spec) == ("6.1.0-99-old-amd64", SPEC)
    assert (
        f"the mirrors do not have {IMAGE}=1-1; Debian's snapshot archive does, debian of {STAMP}"
        in lab.said
    )
    assert lab.kept() == [f"{IMAGE}=1-1", f"{IMAGE}=1-1.manifest"]
    assert lab.obtain(SPEC) == kernel
    assert lab.archives.requests == []
    assert lab.obtain(f"deb:{IMAGE}").spec == f"deb:{IMAGE}=1-2"
    assert lab.snapshot_requests() == []


def test_meta_package_and_parts_are_of_one_dated_archive(lab: Lab) -> None:
    """As Debian 14's, and the version of the meta package is in no list but that."""
    at = f"./usr/lib/modules/{OLD_RELEASE}"
    image = bzimage(BANNER.replace(RELEASE, OLD_RELEASE))
    parts = {
        f"linux-base-{OLD_RELEASE}": [member(f"{at}/config", b"CONFIG_X86=y\n")],
        f"linux-binary-{OLD_RELEASE}": [member(f"{at}/vmlinuz", image)],
        f"linux-modules-{OLD_RELEASE}": [member(f"{at}/kernel/dummy.ko", b"module")],
    }
    dated(
        lab,
        Package(META, "1-1", deb([]), f"{OLD_IMAGE} (= 1-1)"),
        Package(OLD_IMAGE, "1-1", deb([]), ", ".join(f"{name} (= 1-1)" for name in parts)),
        *(Package(name, "1-1", deb(content)) for name, content in parts.items()),
    )
    kernel = lab.obtain(f"deb:{META}=1-1")
    assert (kernel.release, kernel.spec) == (OLD_RELEASE, f"deb:{OLD_IMAGE}=1-1")
    assert kernel.modules is not None
    assert list(Path(kernel.modules).rglob("dummy.ko"))
    debs = [path for path in lab.archives.requests if path.endswith(".deb")]
    assert len(debs) == 4
    assert all(path.startswith(f"/snapshot/archive/debian/{STAMP}/pool/") for path in debs)
    assert lab.obtain(f"deb:{META}=1-1") == kernel
    assert lab.archives.requests == []


@pytest.mark.slow
def test_security_archive_is_asked_first_and_the_others_after_it(lab: Lab) -> None:
    other = Package(IMAGE, "1-0", deb(kernel_members()))
    lab.archives.dated("debian-security", NEWER_STAMP, f"{SUITE}-security", other)
    lab.archives.saw(OLD, "debian-security", NEWER_STAMP)
    lab.archives.dated("debian", STAMP, "sid", OLD)
    assert lab.obtain(SPEC).spec == SPEC
    start = "loading the package list of "
    loading = [line for line in lab.said if line.startswith(start)]
    places = [f"{SUITE}-security in debian-security of {NEWER_STAMP}", f"sid in debian of {STAMP}"]
    assert loading == [f"{start}{place} (apt-get update)" for place in places]


def test_release_that_left_the_mirrors(lab: Lab) -> None:
    lab.archives.dated("debian-security", STAMP, "bullseye-security", OLD)
    kernel = lab.obtain(f"{SPEC}@bullseye")
    assert kernel.spec == f"{SPEC}@bullseye"
    with pytest.raises(UserError, match="apt is set up for has no release bullseye"):
        lab.obtain(f"deb:{META}@bullseye")


def test_release_that_never_was(lab: Lab) -> None:
    lab.archives.dated("debian", STAMP, f"{SUITE}-updates", OLD)
    error = lab.refused(f"{SPEC}@bokworm", UserError)
    assert error.message == (
        f"Debian had {IMAGE}=1-1 in no release bokworm when it came (debian of {STAMP})"
    )


def test_source_that_left_the_mirrors(lab: Lab, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "linux-source-6.1")
    archive = tmp_path / "linux-source-6.1.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tree, tree.name)
    content = deb([member("./usr/src/linux-source-6.1.tar", archive.read_bytes())])
    dated(lab, Package("linux-source-6.1", "6.1.9-1", content, architecture="all"))
    found = source("deb-src:linux-source-6.1=6.1.9-1")
    assert found.name == "linux-source-6.1 6.1.9-1"
    assert "Makefile" in files(found)
    assert list(lab.cache.glob("work/*")) == []


def test_archive_that_cannot_be_reached(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_SNAPSHOT_URL", "http://127.0.0.1:9")
    error = lab.refused(SPEC)
    assert error.message == (
        f"the mirrors do not have {IMAGE}=1-1, and Debian's snapshot archive (http://127.0.0.1:9)"
        " cannot be asked: [Errno 111] Connection refused"
    )
    assert error.hint == (
        f"take what the mirrors have: deb:{IMAGE}=1-2; or set KDELTA_SNAPSHOT_URL to an archive"
        " that this host reaches"
    )
    hint = lab.refused(f"deb:{IMAGE}=1-3").hint
    assert f"deb:{IMAGE}=1-2; or load newer package lists: sudo apt-get update; or set KDEL" in hint
    with pytest.raises(LabError, match="cannot be asked"):
        check_kernels([SPEC], quiet)


def test_version_that_never_was(lab: Lab) -> None:
    error = lab.refused(f"deb:{IMAGE}=0-7", UserError)
    assert error.message == f"Debian never had {IMAGE}=0-7, by its snapshot archive"
    assert error.hint == "there is: 1-2"
    assert error.instead == (f"deb:{IMAGE}=0-7", f"deb:{IMAGE}=1-2")
    error = lab.refused("deb:linux-image-fake-amd46=1-1", UserError)
    assert error.hint.startswith("the nearest: ")


def test_version_of_another_architecture_alone(lab: Lab) -> None:
    lab.archives.dated("debian", STAMP, "sid", OLD._replace(architecture="other"))
    assert "never had" in lab.refused(SPEC, UserError).message


def test_what_is_checked_before_is_not_downloaded(lab: Lab) -> None:
    dated(lab, OLD)
    check_kernels([SPEC], quiet)
    assert lab.snapshot_requests() == [asked(IMAGE, "1-1")]
    with pytest.raises(UserError, match="never had"):
        check_kernels([f"deb:{IMAGE}=0-7"], quiet)


def tampered(lab: Lab) -> None:
    path = dated(lab, OLD)
    index = lab.archives.files[path]
    assert isinstance(index, bytes)
    lab.archives.files[path] = index.replace(b"Components: main", b"Components: main x")


def by_another_key(lab: Lab) -> None:
    dated(lab, OLD)
    key = public_key(MADE + 1)
    (lab.keys / "debian-archive-keyring.gpg").write_bytes(key)


def unsigned(lab: Lab) -> None:
    path = dated(lab, OLD)
    index = lab.archives.files[path]
    assert isinstance(index, bytes)
    lab.archives.files[path] = index.partition(b"\n\n")[2].partition(b"\n-----BEGIN")[0] + b"\n"


def without_keys(lab: Lab) -> None:
    dated(lab, OLD)
    (lab.keys / "debian-archive-keyring.gpg").unlink()


def expired(lab: Lab) -> None:
    lab.archives.dated(
        "debian", STAMP, "sid", OLD, made=timedelta(days=-9), valid=timedelta(days=-2)
    )


def of_later(lab: Lab) -> None:
    lab.archives.dated("debian", STAMP, "sid", OLD, made=timedelta(days=2), valid=None)


def undated(lab: Lab) -> None:
    path = dated(lab, OLD)
    index = lab.archives.files[path]
    assert isinstance(index, bytes)
    text = index.decode().partition("\n\n")[2].partition("\n-----BEGIN")[0]
    lab.archives.files[path] = signed(re.sub("Valid-Until: .*", "Valid-Until: never", text))


def wrong_list(lab: Lab) -> None:
    path = dated(lab, OLD).replace("InRelease", f"main/binary-{lab.archives.architecture}/Packages")
    content = lab.archives.files[path]
    assert isinstance(content, bytes)
    lab.archives.files[path] = content.replace(b"x@example.org", b"y@example.org")


def wrong_package(lab: Lab) -> None:
    dated(lab, OLD)
    path = next(path for path in lab.archives.files if "/snapshot/" in path and "/pool/" in path)
    lab.archives.files[path] = bytes([OLD.content[0] ^ 1]) + OLD.content[1:]


def lost_package(lab: Lab) -> None:
    dated(lab, OLD)
    del lab.archives.files[
        next(path for path in lab.archives.files if "/snapshot/" in path and "/pool/" in path)
    ]


def unlisted(lab: Lab) -> None:
    dated(lab, NEW)
    lab.archives.saw(OLD, "debian", STAMP)


def lost_kernel(lab: Lab) -> None:
    dated(lab, OLD._replace(depends=f"{OLD_IMAGE} (= 1-1)"))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (tampered, f"{SUITE}-updates in debian of {STAMP}: .*{BAD_SIGNATURE}"),
        (by_another_key, "NO_PUBKEY|Missing key"),
        (unsigned, "Clearsigned file isn't valid"),
        (without_keys, "this host lacks Debian's keys"),
        (expired, "its index had expired then, on 2023-08-30"),
        (of_later, "its index is newer, of 2023-09-03"),
        (undated, "its index has no valid date"),
        (wrong_list, "Hash Sum mismatch"),
        (wrong_package, "Hash Sum mismatch"),
        (lost_package, r"the snapshot archive lacks the file of .*404"),
        (unlisted, f"no package list .* names it: {SUITE}-updates in debian of {STAMP}"),
    ],
)
def test_damage_is_named(lab: Lab, tmp_path: Path, damage: Callable[[Lab], None], why: str) -> None:
    damage(lab)
    dates = dates_of(IMAGE, "1-1", None)
    with (
        pytest.raises(LabError, match=why) as raised,
        dated_apt(dates, IMAGE, "1-1", quiet, architecture=None, suite=None) as apt,
    ):
        apt.download(IMAGE, "1-1", make_folder(tmp_path / "debs"), quiet)
    assert "\n" not in raised.value.message
    assert lab.kept() == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (tampered, f"cannot use the package list of {SUITE}-updates .*{BAD_SIGNATURE}"),
        (wrong_package, "Hash Sum mismatch"),
        (lost_kernel, "lacks what it depends on"),
    ],
)
def test_nothing_is_kept_of_what_is_damaged(
    lab: Lab, damage: Callable[[Lab], None], why: str
) -> None:
    damage(lab)
    error = lab.refused(SPEC)
    assert re.search(why, error.message)
    assert error.message.startswith(f"{SPEC} is not in the cache, and cannot be fetched: ")
    assert error.hint


@pytest.mark.slow
def test_key_that_signs_no_more(lab: Lab) -> None:
    by_another_key(lab)
    (lab.keys / "debian-archive-removed-keys.gpg").write_bytes(public_key())
    assert lab.obtain(SPEC).spec == SPEC


@pytest.mark.slow
def test_settings_of_the_host_excuse_no_signature(lab: Lab, tmp_path: Path) -> None:
    tampered(lab)
    with (tmp_path / "apt.conf").open("a") as file:
        file.write('Acquire::AllowInsecureRepositories "true";\n')
        file.write('APT::Get::AllowUnauthenticated "true";\n')
    assert re.search(BAD_SIGNATURE, lab.refused(SPEC).message)


@pytest.mark.slow
def test_slow_archive(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    dated(lab, OLD)
    lab.obtain(f"deb:{IMAGE}")
    lab.archives.stalled = "/Packages"
    monkeypatch.setattr("kdelta.kernels.packages.snapshot.LISTS_SECONDS", 0.3)
    with pytest.raises(LabError, match=r"apt-get did not end within 0\.3 seconds"):
        lab.obtain(SPEC)
    lab.archives.stalled = ".deb"
    monkeypatch.setattr("kdelta.kernels.packages.snapshot.LISTS_SECONDS", 60.0)
    monkeypatch.setattr("kdelta.kernels.packages.snapshot._DOWNLOAD_SECONDS", 0.3)
    with pytest.raises(LabError, match=r"apt-get did not end within 0\.3 seconds"):
        lab.obtain(SPEC)
    lab.archives.stalled = "fileinfo=1"
    monkeypatch.setattr("kdelta.kernels.packages.snapshot._STALLED_SECONDS", 0.1)
    with pytest.raises(LabError, match="cannot be asked: timed out"):
        lab.obtain(SPEC)
    assert lab.kept() == [f"{IMAGE}=1-2", f"{IMAGE}=1-2.manifest"]


@pytest.mark.slow
def test_archive_that_stalls(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """apt waits for so long, twice."""
    dated(lab, OLD)
    lab.archives.stalled = ".deb"
    monkeypatch.setattr("kdelta.kernels.packages.snapshot._STALLED_SECONDS", 1)
    assert re.search("Connection failed|timed out", lab.refused(SPEC).message)


def test_long_answer_is_cut(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.archives.files[asked(IMAGE, "1-1")] = b" " * (1 << 21)
    with pytest.raises(LabError, match="more than 1 MiB"):
        dates_of(IMAGE, "1-1", None)
    monkeypatch.setattr("kdelta.kernels.packages.snapshot._ANSWER_SECONDS", 0.0)
    with pytest.raises(LabError, match="no whole answer within 0 seconds"):
        dates_of(IMAGE, "1-1", None)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"<html>", "not that of a snapshot archive"),
        (b'{"result": []}', "not that of a snapshot archive"),
        (500, "500 Internal Server Error"),
    ],
)
def test_answer_of_something_else(lab: Lab, answer: bytes | int, why: str) -> None:
    lab.archives.files[asked(IMAGE, "1-1")] = answer
    assert why in lab.refused(SPEC).message


def test_hostile_answer_is_left_out(lab: Lab) -> None:
    """What it names becomes a part of apt's sources."""
    seen = [
        {"archive_name": "debian", "first_seen": f"{STAMP}/ x main\ndeb [trusted=yes] http://x"},
        {"archive_name": "../debian", "first_seen": STAMP},
        {"archive_name": "debian", "first_seen": "20231301T000000Z"},
        {"archive_name": "debian", "first_seen": STAMP},
    ]
    binaries = [{"architecture": "all", "hash": "1"}, {"architecture": "all", "hash": "2"}]
    answer = {"result": binaries, "fileinfo": {"1": seen}}
    lab.archives.files[asked(IMAGE, "1-1")] = json.dumps(answer).encode()
    assert dates_of(IMAGE, "1-1", None) == [Dated("debian", STAMP)]


@pytest.mark.parametrize("change", ["no address", "another distribution"])
def test_where_the_archive_is_not_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    if change == "no address":
        monkeypatch.setenv("KDELTA_SNAPSHOT_URL", "")
    else:
        release = {"ID": "ubuntu", "VERSION_CODENAME": SUITE}
        monkeypatch.setattr("kdelta.kernels.packages.apt._os_release", lambda: release)
    dated(lab, OLD)
    error = lab.refused(SPEC, UserError)
    assert error.message == f"{IMAGE} has no version 1-1"
    assert lab.snapshot_requests() == []


def test_public_archive_is_asked_where_no_other_is_named(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert snapshot_base().startswith("http://127.")
    assert lab.snapshot_requests() == []
    monkeypatch.delenv("KDELTA_SNAPSHOT_URL")
    assert snapshot_base().startswith("https://")


@pytest.mark.parametrize("address", ["ftp://x", "x", "http://x y", "https://a [trusted=yes]"])
def test_address_of_no_use(lab: Lab, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("KDELTA_SNAPSHOT_URL", address)
    assert lab.refused(SPEC, UserError).message.startswith(
        f"cannot use KDELTA_SNAPSHOT_URL={address}: not an address"
    )

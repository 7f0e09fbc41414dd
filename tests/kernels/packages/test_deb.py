# SPDX-License-Identifier: GPL-2.0-or-later
"""deb: kernels, with an apt of our own: what exists, what is cached, what goes wrong on the way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import check_kernels
from kdelta.kernels.packages.apt import Dependency, parse_dependencies
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.kernels.packages.packages import likely_packages
from kdelta.spec.errors import LabError, UserError
from tests.caches import forget_checks
from tests.conftest import wait_for
from tests.kernels.packages.conftest import IMAGE, META, Lab
from tests.kernels.samples import RELEASE, deb, kernel_members, member


def cache_content(own_cache: Path) -> list[str]:
    return sorted(path.name for path in (own_cache / "kernels").iterdir() if path.is_dir())


def test_newest_version(lab: Lab) -> None:
    kernel = lab.obtain(f"deb:{IMAGE}")
    assert (kernel.release, kernel.spec) == (RELEASE, f"deb:{IMAGE}=1-2")
    assert Path(kernel.image).is_file()
    assert kernel.config is not None
    assert Path(kernel.config).read_text() == "CONFIG_64BIT=y\n"
    assert kernel.modules is not None
    assert (Path(kernel.modules) / "kernel/net/dummy.ko").is_file()
    assert lab.said == [f"downloading {IMAGE} 1-2", f"unpacking {IMAGE}"]


def test_version_that_was_asked_for(lab: Lab) -> None:
    assert lab.obtain(f"deb:{IMAGE}=1-1").release == "6.1.0-99-old-amd64"


def test_package_that_stands_for_another(lab: Lab) -> None:
    kernel = lab.obtain(f"deb:{META}")
    assert kernel.spec == f"deb:{IMAGE}=1-2"
    assert f"{META} 2 stands for {IMAGE}" in lab.said
    assert kernel == lab.obtain(f"deb:{IMAGE}=1-2")
    assert lab.downloads() == [f"download {IMAGE}=1-2"]


def test_host_without_apt(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.downloads() == []
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        LabError, match="cannot fetch packages of Debian: this host has no apt"
    ) as raised:
        lab.obtain(f"deb:{IMAGE}")
    assert "apt" not in raised.value.hint
    assert "image:PATH" in raised.value.hint


def test_packages_that_stand_for_each_other(lab: Lab) -> None:
    lab.state["packages"][IMAGE]["1-2"]["depends"] = f"{META} (= 2)"
    lab.save()
    with pytest.raises(UserError, match="leads from package to package"):
        lab.obtain(f"deb:{META}")


def test_from_the_cache_without_network(lab: Lab) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    lab.change(network=False)
    assert lab.obtain(f"deb:{IMAGE}") == first
    assert lab.obtain(f"deb:{META}") == first
    assert len(lab.downloads()) == 1


def test_version_in_the_cache_needs_no_apt_at_all(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.obtain(f"deb:{IMAGE}=1-2")
    monkeypatch.setenv("PATH", "/nowhere")
    assert lab.obtain(f"deb:{IMAGE}=1-2") == first


def test_cache_without_package_lists(lab: Lab) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    lab.change(packages={}, network=False)
    assert lab.obtain(f"deb:{IMAGE}") == first
    assert "the newest in the cache, 1-2" in lab.said[0]


def test_neither_network_nor_cache(lab: Lab, own_cache: Path) -> None:
    lab.obtain(f"deb:{IMAGE}=1-1")
    lab.change(network=False)
    with pytest.raises(LabError, match="not in the cache, and cannot be fetched") as raised:
        lab.obtain(f"deb:{IMAGE}")
    assert "Could not resolve" in raised.value.message
    assert f"in the cache: deb:{IMAGE}=1-1" in raised.value.hint
    assert "mirror" not in raised.value.message
    assert cache_content(own_cache) == [f"{IMAGE}=1-1"]


@pytest.mark.parametrize(
    ("second", "said", "hint"),
    [
        ("deb:linux-image-fake-amd46", "knows no package linux-image-fake-amd46", "the nearest: "),
        (f"deb:{IMAGE}=9-9", f"{IMAGE} has no version 9-9", "there is: "),
    ],
)
@pytest.mark.slow
def test_a_bad_package_is_named_before_another_one_is_fetched(
    lab: Lab, second: str, said: str, hint: str
) -> None:
    with pytest.raises(UserError, match=said) as raised:
        check_kernels([f"deb:{IMAGE}", second], quiet)
    assert raised.value.hint.startswith(hint)
    assert lab.downloads() == []
    check_kernels([f"deb:{IMAGE}", f"deb:{META}"], quiet)
    assert lab.downloads() == []


def test_unknown_package_names_the_nearest(lab: Lab) -> None:
    with pytest.raises(UserError, match="apt knows no package linux-image-fake-amd46") as raised:
        lab.obtain("deb:linux-image-fake-amd46")
    assert raised.value.hint.startswith(f"the nearest: {META}")
    assert "-dbg" not in raised.value.hint
    assert raised.value.instead == ("deb:linux-image-fake-amd46", f"deb:{META}")
    assert lab.downloads() == []


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("linux-image-6.1", "linux-image-6.1.0-10-amd64"),
        ("linux-image-6.12", "linux-image-6.12-amd64"),
        ("linux-image-amd46", "linux-image-amd64"),
    ],
)
def test_the_nearest_package_is_of_that_version_plain_and_new(wanted: str, first: str) -> None:
    names = [
        "linux-image-6.1.0-10-rt-amd64",
        "linux-image-6.1.0-9-amd64",
        "linux-image-6.1.0-10-amd64",
        "linux-image-6.1.0-11-amd64-dbg",
        "linux-image-6.12-amd64",
        "linux-image-amd64",
    ]
    assert likely_packages(wanted, names)[0] == first


def test_unknown_version_names_those_that_exist(lab: Lab) -> None:
    with pytest.raises(UserError, match=f"{IMAGE} has no version 1-3") as raised:
        lab.obtain(f"deb:{IMAGE}=1-3")
    assert raised.value.hint == "there is: 1-2, 1-1"
    assert raised.value.instead == (f"deb:{IMAGE}=1-3", f"deb:{IMAGE}=1-2")


def test_debug_package_is_refused_before_its_gigabytes(lab: Lab) -> None:
    with pytest.raises(UserError, match="no kernel") as raised:
        lab.obtain(f"deb:{IMAGE}-dbg")
    assert raised.value.hint == f"write deb:{IMAGE}"
    assert lab.downloads() == []


def test_empty_lists_are_loaded_into_the_cache(lab: Lab) -> None:
    lab.change(own_lists=lab.state["packages"], packages={})
    assert lab.obtain(f"deb:{META}").release == RELEASE
    assert "loading the distribution's package lists" in lab.said[0]


def test_lists_that_cannot_be_loaded(lab: Lab) -> None:
    lab.change(packages={}, network=False)
    with pytest.raises(LabError, match="package lists could not be loaded"):
        lab.obtain(f"deb:{META}")


def test_outdated_lists_are_loaded_again_and_stay_in_use(lab: Lab) -> None:
    newer = {IMAGE: {"1-3": lab.state["packages"][IMAGE]["1-2"]}}
    outdated: dict[str, Any] = {IMAGE: {"1-2": {}}}
    lab.change(packages=outdated, own_lists=newer)
    assert lab.obtain(f"deb:{IMAGE}").spec == f"deb:{IMAGE}=1-3"
    assert lab.downloads() == [f"download {IMAGE}=1-2", f"download {IMAGE}=1-3"]
    # The system's lists are as old as before.
    os.utime(lab.folder, (0, 0))
    assert lab.obtain(f"deb:{IMAGE}").spec == f"deb:{IMAGE}=1-3"
    assert lab.said == []


MISMATCH = (
    "the mirror's files do not match its index (File has unexpected size (232 != 220)."
    " Mirror sync in progress?); trying again for 60 seconds"
)
NOT_LOADED = "some package lists could not be loaded (File has unexpected size (232 != 220). "


def test_lists_of_a_renewed_mirror_are_loaded_again(lab: Lab, pauses: list[float]) -> None:
    lab.change(own_lists=lab.state["packages"], packages={}, renewed=2)
    assert lab.obtain(f"deb:{META}").release == RELEASE
    assert pauses == [5, 15]
    assert lab.said[1:3] == [MISMATCH, f"{META} 2 stands for {IMAGE}"]


def test_download_from_a_renewed_mirror_is_repeated(
    lab: Lab, own_cache: Path, pauses: list[float]
) -> None:
    lab.change(renewed=3)
    assert lab.obtain(f"deb:{IMAGE}").release == RELEASE
    assert pauses == [5, 15, 40]
    assert lab.said == [f"downloading {IMAGE} 1-2", MISMATCH, f"unpacking {IMAGE}"]
    assert not list(own_cache.rglob("*.FAILED"))


@pytest.mark.slow
def test_mirror_that_stays_broken_ends_the_download(lab: Lab, pauses: list[float]) -> None:
    lab.change(renewed=9)
    with pytest.raises(LabError, match=r"cannot be fetched: .* Mirror sync in progress\?$"):
        lab.obtain(f"deb:{IMAGE}")
    assert len(pauses) == 3


def test_without_network_nothing_is_repeated(lab: Lab, pauses: list[float]) -> None:
    """apt has repeated it."""
    lab.change(network=False)
    with pytest.raises(LabError, match="Could not resolve"):
        lab.obtain(f"deb:{IMAGE}")
    assert pauses == []


@pytest.mark.slow
def test_older_lists_are_used_while_the_mirror_is_renewed(
    lab: Lab, own_cache: Path, pauses: list[float]
) -> None:
    older = {IMAGE: {"1-2": lab.state["packages"][IMAGE]["1-2"]}}
    lab.change(packages={}, own_lists=older)
    lab.obtain(f"deb:{IMAGE}")
    loaded = (own_cache / "apt/updated").stat().st_mtime
    day = time.strftime("%Y-%m-%d", time.localtime(loaded))
    lab.change(packages={IMAGE: {"1-1": {}}}, own_lists={}, renewed=4)
    # The system's lists are newer, and the mirror lacks what they name.
    os.utime(lab.folder, (loaded + 60,) * 2)
    with pytest.raises(UserError, match=f"{IMAGE} has no version 1-1") as raised:
        lab.obtain(f"deb:{IMAGE}=1-1")
    assert raised.value.hint == "there is: 1-2"
    assert len(pauses) == 3
    assert lab.said[-1] == f"{NOT_LOADED}Mirror sync in progress?); using those of {day}"


@pytest.mark.slow
def test_lists_that_were_loaded_in_part_are_used(lab: Lab, pauses: list[float]) -> None:
    packages = lab.state["packages"]
    lab.change(packages={}, own_lists=packages, renewed=4, loaded_meanwhile=packages)
    assert lab.obtain(f"deb:{IMAGE}").release == RELEASE
    assert f"{NOT_LOADED}Mirror sync in progress?); going on without them" in lab.said
    assert len(pauses) == 3


@pytest.mark.slow
def test_package_that_a_missing_list_may_name_is_looked_for_again(
    lab: Lab, pauses: list[float]
) -> None:
    packages = lab.state["packages"]
    lab.change(packages={}, own_lists=packages, renewed=4, loaded_meanwhile={META: {"2": {}}})
    with pytest.raises(LabError, match=f"deb:{IMAGE} is not in the package lists, of which some"):
        lab.obtain(f"deb:{IMAGE}")
    assert len(pauses) == 3
    lab.change(renewed=0)
    assert lab.obtain(f"deb:{IMAGE}").release == RELEASE


def test_version_that_the_mirror_has_no_more(lab: Lab) -> None:
    lab.change(packages={IMAGE: {"1-2": {}}}, own_lists={IMAGE: {"1-3": {}}})
    with pytest.raises(UserError, match="has no version 1-2") as raised:
        lab.obtain(f"deb:{IMAGE}=1-2")
    assert raised.value.hint == "there is: 1-3"


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b"not a package", LabError, "damaged"),
        (deb(kernel_members())[:9000], LabError, "damaged"),
        (deb([member("./usr/share/doc/x", b"")]), UserError, "holds no kernel"),
        (deb([member("./boot/vmlinuz-1", b"text")]), UserError, "not a kernel"),
        (deb([member("./../boot/vmlinuz-1", b"")]), LabError, "refused"),
    ],
)
def test_bad_package_leaves_nothing(
    lab: Lab, own_cache: Path, content: bytes, error: type[Exception], said: str
) -> None:
    Path(lab.state["packages"][IMAGE]["1-2"]["deb"]).write_bytes(content)
    with pytest.raises(error, match=said):
        lab.obtain(f"deb:{IMAGE}")
    assert cache_content(own_cache) == []
    assert cached_kernels() == []


def test_damaged_cache_is_fetched_again(lab: Lab) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    Path(first.image).write_bytes(b"damaged")
    forget_checks()
    assert lab.obtain(f"deb:{IMAGE}") == first
    assert len(lab.downloads()) == 2


def test_damaged_module_is_named_set_aside_and_fetched_again(lab: Lab, own_cache: Path) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    module = _a_module(first)
    whole = module.read_bytes()
    module.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    forget_checks()
    assert lab.obtain(f"deb:{IMAGE}") == first
    assert module.read_bytes() == whole
    folder = own_cache / "kernels" / f"{IMAGE}=1-2"
    aside = own_cache / "damaged" / f"kernels-{folder.name}"
    name = module.relative_to(folder)
    assert (
        f"{folder} is damaged: {name} is not what was made; it is kept in {aside}, and made again"
    ) in lab.said
    assert (aside / name).read_bytes() != whole


@pytest.mark.parametrize("damaged", [False, True])
def test_kernel_of_an_older_version_is_compared_with_its_identity(
    lab: Lab, own_cache: Path, *, damaged: bool
) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    manifest = own_cache / "kernels" / f"{IMAGE}=1-2.manifest"
    manifest.unlink()
    if damaged:
        _a_module(first).write_bytes(b"")
    assert lab.obtain(f"deb:{IMAGE}") == first
    assert manifest.is_file()
    assert len(lab.downloads()) == (2 if damaged else 1)


def _a_module(kernel: Kernel) -> Path:
    assert kernel.modules
    return next(Path(kernel.modules).rglob("*.ko*"))


def test_damaged_record_is_fetched_again(lab: Lab, own_cache: Path) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    forget_checks()
    (own_cache / "kernels" / f"{IMAGE}=1-2" / "kernel.json").write_text("{")
    assert cached_kernels() == []
    assert lab.obtain(f"deb:{IMAGE}") == first


def test_moved_cache_is_as_good(lab: Lab, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lab.obtain(f"deb:{IMAGE}")
    moved = own_cache.rename(own_cache.with_name("moved"))
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(moved))
    second = lab.obtain(f"deb:{IMAGE}")
    assert second.identity == first.identity
    assert second.image.startswith(str(moved))
    assert len(lab.downloads()) == 1


def test_cached_kernels_are_listed(lab: Lab) -> None:
    lab.obtain(f"deb:{IMAGE}=1-1")
    lab.obtain(f"deb:{IMAGE}=1-2")
    assert [(k.version, k.release) for k in cached_kernels()] == [
        ("1-1", "6.1.0-99-old-amd64"),
        ("1-2", RELEASE),
    ]


FETCH = """
import pathlib, sys
from kdelta.kernels.obtain import obtain
from kdelta.spec.kernel import parse_kernel_spec
def talk(line):
    if line.startswith("waiting for another kdelta"):
        pathlib.Path(sys.argv[2]).touch()
print(obtain(parse_kernel_spec(sys.argv[1]), talk).image)
"""


def start_fetch(lab: Lab) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", FETCH, f"deb:{IMAGE}", str(lab.folder / "waits")]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
def test_two_processes_fetch_once(lab: Lab) -> None:
    """The download goes on only when the other process has said that it waits."""
    lab.change(before_download=wait_for(lab.folder / "waits"))
    both = [start_fetch(lab), start_fetch(lab)]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]
    assert Path(outputs[0].strip()).is_file()
    assert len(lab.downloads()) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_interrupted_download(lab: Lab, own_cache: Path, how: signal.Signals) -> None:
    """Stopped in the middle of a download; the next call starts afresh and leaves no trace."""
    pipe = lab.folder / "started"
    os.mkfifo(pipe)
    lab.change(before_download=f"echo half > half.deb; echo > {pipe}; exec sleep 600")
    with start_fetch(lab) as process:
        pipe.read_text()
        os.killpg(process.pid, how)
    assert process.returncode != 0
    assert cached_kernels() == []
    lab.change(before_download=":")
    assert lab.obtain(f"deb:{IMAGE}").release == RELEASE
    assert cache_content(own_cache) == [f"{IMAGE}=1-2"]


def test_full_disk(lab: Lab, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfileobj", full)
        with pytest.raises(LabError, match="No space left") as raised:
            lab.obtain(f"deb:{IMAGE}")
        assert "KDELTA_CACHE_DIR" in raised.value.hint
    assert cache_content(own_cache) == []


def test_dependencies() -> None:
    field = f"{IMAGE} (= 6.1.192-2), kmod:any, libc6 (>= 2.36), a-b | c-d (= 1)"
    assert parse_dependencies(field) == [
        Dependency(IMAGE, "6.1.192-2"),
        Dependency("kmod", None),
        Dependency("libc6", None),
        Dependency("a-b", None),
    ]

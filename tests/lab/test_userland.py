# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload needs of a kernel's config, and the files that it brings into a guest."""

from pathlib import Path

import msgspec
import pytest

from kdelta.guests.job import JobFile
from kdelta.guests.userland import Userland
from kdelta.host.gcc import Compiler
from kdelta.kernels.model import Kernel
from kdelta.lab.plan import carried_files, check_needs
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import UserlandWanted, find_workload

NAT = find_workload("nat")
GOOD = "".join(f"CONFIG_{name}={'ym'[len(name) % 2]}\n" for name in NAT.needs)


def kernel(tmp_path: Path, config: str | None) -> Kernel:
    path = tmp_path / "config"
    if config is not None:
        path.write_text(config)
    return Kernel(
        "0" * 64, "tree:/linux", "vmlinux", "arm", "6.12", None if config is None else str(path)
    )


def test_built_in_or_a_module(tmp_path: Path) -> None:
    assert "=y" in GOOD
    assert "=m" in GOOD
    check_needs(NAT, kernel(tmp_path, GOOD))


@pytest.mark.parametrize("name", ["NF_TABLES", "VETH", "NFT_MASQ"])
def test_an_option_that_is_off(tmp_path: Path, name: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"CONFIG_{name}=")]
    config = "\n".join([*lines, f"# CONFIG_{name} is not set"])
    with pytest.raises(UserError, match=f"nat needs CONFIG_{name}, which is off in tree:/linux"):
        check_needs(NAT, kernel(tmp_path, config))


def test_all_that_is_off_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="CONFIG_NET_NS, CONFIG_VETH, CONFIG_NF_TABLES") as raised:
        check_needs(NAT, kernel(tmp_path, "CONFIG_NET=y\n"))
    assert "+CONFIG_NET_NS=y +CONFIG_VETH=y" in raised.value.hint


def test_a_kernel_without_a_config_is_asked_in_the_guest(tmp_path: Path) -> None:
    check_needs(NAT, kernel(tmp_path, None))


def test_another_architecture_than_the_workloads(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="kbuild runs on x86_64, and tree:/linux is a kernel for"):
        check_needs(find_workload("kbuild"), kernel(tmp_path, None))


def test_a_workload_without_needs(tmp_path: Path) -> None:
    check_needs(find_workload("syscalls"), kernel(tmp_path, ""))


def test_the_program_comes_with_the_job_or_is_in_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[UserlandWanted, str]] = []
    nft = JobFile(tmp_path / "nft", "/usr/sbin/nft", 0o755)

    def found(wanted: UserlandWanted, arch: str, _: object) -> Userland:
        asked.append((wanted, arch))
        return Userland((nft,), ("nftables=1",))

    monkeypatch.setattr("kdelta.lab.plan.userland", found)
    program = tmp_path / "nat"
    assert carried_files(NAT, program, Compiler("arm"), print) == [
        JobFile(program, "/workloads/nat", 0o755),
        nft,
    ]
    assert asked == [(NAT.userland, "arm")]
    small = msgspec.structs.replace(NAT, image="small", userland=None)
    assert carried_files(small, program, Compiler("arm"), print) == []

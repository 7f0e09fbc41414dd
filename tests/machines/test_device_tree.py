# SPDX-License-Identifier: GPL-2.0-or-later
"""Device trees: what a file says, whether it fits the machine, what is reported when it does
not.
"""

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.machines.device_tree import device_tree, read_properties
from kdelta.spec.errors import UserError

A9 = b"arm,vexpress,v2p-ca9\0arm,vexpress\0"


def tree(compatible: bytes = A9) -> bytes:
    """A tree of two nodes, with a NOP between."""
    names = b"compatible\0bootargs\0"
    body = struct.pack(">I4x", 1)
    body += struct.pack(">3I", 3, len(compatible), 0) + compatible + bytes(-len(compatible) % 4)
    body += struct.pack(">I", 4) + struct.pack(">I", 1) + b"chosen\0\0"
    body += struct.pack(">3I", 3, 3, 11) + b"ro\0\0"
    body += struct.pack(">3I", 2, 2, 9)
    head = struct.pack(
        ">10I", 0xD00DFEED, 40 + len(body) + len(names), 40, 40 + len(body), 40, 17, 16, 0,
        len(names), len(body),
    )  # fmt: skip
    return head + body + names


def kernel(folder: Path | None, arch: str = "arm") -> Kernel:
    found = str(folder) if folder else None
    return Kernel("id", "image:zImage", "zImage", arch, "6.12", device_trees=found)


def test_properties_by_path() -> None:
    assert dict(read_properties(tree())) == {"/compatible": A9, "/chosen/bootargs": b"ro\0"}


@pytest.mark.parametrize("below", ["", "arm"])
def test_the_board_s_tree_is_found_and_fits(tmp_path: Path, below: str) -> None:
    path = tmp_path / below / "vexpress-v2p-ca9.dtb"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(tree())
    found = device_tree(kernel(tmp_path), "")
    assert found is not None
    assert found.path == str(path)
    path.write_bytes(tree(A9 + b"more\0"))
    changed = device_tree(kernel(tmp_path), "cortex-a9")
    assert changed is not None
    assert changed.identity != found.identity


def test_no_tree_where_qemu_makes_it(tmp_path: Path) -> None:
    assert device_tree(kernel(None), "cortex-a7") is None
    assert device_tree(kernel(tmp_path, "arm64"), "") is None
    assert device_tree(kernel(None, "x86_64"), "qemu64,-rdrand") is None


@pytest.mark.parametrize("there", [True, False])
def test_a_kernel_without_it(tmp_path: Path, there: bool) -> None:
    (tmp_path / "other-board.dtb").write_bytes(tree())
    with pytest.raises(UserError, match=r"without the device tree vexpress-v2p-ca9\.dtb") as raised:
        device_tree(kernel(tmp_path if there else None), "")
    assert "make vexpress-v2p-ca9.dtb" in raised.value.hint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            tree(b"arm,vexpress,v2p-ca15,tc1\0arm,vexpress\0"),
            "does not fit: it is for arm,vexpress,v2",
        ),
        (tree(b"\0"), "does not fit: it is for no board"),
        (b"", "is no device tree"),
        (b"something else than a device tree", "it does not begin as one"),
        (tree()[:-1], "it has been cut off"),
        (tree()[:40] + b"\0\0\0\7" + tree()[44:], r"it is damaged \(token 7\)"),
        (tree()[:8] + b"\xff\xff\xff\x00" + tree()[12:], "it is damaged"),
    ],
)
def test_a_tree_that_does_not_fit(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "vexpress-v2p-ca9.dtb").write_bytes(content)
    with pytest.raises(UserError, match=said) as raised:
        device_tree(kernel(tmp_path), "")
    assert raised.value.hint


@given(st.binary(), st.integers(0, 100))
def test_damaged_trees_never_crash(garbage: bytes, at: int) -> None:
    content = tree()[:at] + garbage + tree()[at + len(garbage) :]
    with contextlib.suppress(ValueError):
        list(read_properties(content))


def test_a_cpu_that_no_board_has() -> None:
    with pytest.raises(UserError, match="no machine with the CPU 'cortex-m3'") as raised:
        arch_machine("arm").board("cortex-m3")
    assert "cortex-a9, cortex-a15" in raised.value.hint


def test_the_core_chooses_the_board() -> None:
    arm = arch_machine("arm")
    assert arm.board("") == arm.board("cortex-a9,pmu=off") == arm.boards[0]
    assert arm.board("cortex-a7").machine.startswith("virt")
    assert arm.board("cortex-a7").cpu_argument("cortex-a7") == "cortex-a7,cntfrq=1000000000"
    assert arm.board("").cpu_argument("") == "cortex-a9"
    x86 = arch_machine("x86_64")
    assert x86.board("EPYC-Rome,-rdrand") == x86.board("")
    # Whatever model is named, the host's entropy stays out.
    assert x86.board("max").cpu_argument("max,+rdrand") == "max,+rdrand,-rdrand,-rdseed"


def test_memory_that_a_board_cannot_have() -> None:
    arm = arch_machine("arm")
    arm.board("cortex-a9").must_have(1024)
    arm.board("cortex-a7").must_have(4096)
    with pytest.raises(UserError, match="vexpress-a9 has 1024 MiB of memory at most") as raised:
        arm.board("cortex-a9").must_have(2048)
    assert raised.value.hint == "--memory 1024"


def test_an_architecture_without_machines() -> None:
    with pytest.raises(UserError, match="kernels for s390x cannot be run") as raised:
        arch_machine("s390x")
    assert raised.value.hint == "there are machines for arm, arm64, riscv64, x86_64"

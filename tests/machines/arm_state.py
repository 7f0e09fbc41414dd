# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a snapshot of an ARM guest that 7.2 took one that a later QEMU can load, for tests.

QEMU loads the state of an ARM CPU if it has no register that QEMU's own lacks, and if constants are
the same. In 10.0 some cores have other debug registers and corrected constants.
"""

import struct
from pathlib import Path

from kdelta.machines.tcg import Snapshot

_CONSTANTS = frozenset(
    # REVIDR_EL1 and ID_DFR0_EL1, as AArch64 and as AArch32 has them, by KVM's numbers.
    {0x603000000013C006, 0x40200000200F0006, 0x603000000013C00A, 0x40200000200F0082}
)

# The CPU's section (vmstate_arm_cpu in target/arm/machine.c; 7.2 and 10.0 have the same): after its
# head come 568 bytes of general registers, then how many system registers there are, their numbers
# in order, and their values.
_HEAD = b"\3cpu" + struct.pack(">II", 0, 22)
_GENERAL_BYTES = 568


def loadable_by(owner: Snapshot, snapshot: Snapshot, folder: Path) -> Snapshot:
    """The snapshot, in that folder, which is made, with the system registers that the CPU has in
    the owner's snapshot. Constants have the owner's values, and so has what the snapshot lacks.
    """
    folder.mkdir()
    for path in (snapshot.ram, snapshot.boot, snapshot.symbols):
        (folder / path.name).symlink_to(path)
    changed = Snapshot(folder)
    before, values, after = _parts(snapshot.state.read_bytes())
    _, own, _ = _parts(owner.state.read_bytes())
    assert any(own.get(one) != value for one, value in values.items())
    found = {
        one: value if one in _CONSTANTS else values.get(one, value) for one, value in own.items()
    }
    packed = struct.pack(f">i{2 * len(found)}Q", len(found), *found, *found.values())
    changed.state.write_bytes(before + packed + after)
    return changed


def _parts(state: bytes) -> tuple[bytes, dict[int, int], bytes]:
    """The stream before the CPU's system registers, these by number, and the stream after them."""
    start = state.index(_HEAD) + len(_HEAD) + _GENERAL_BYTES
    (count,) = struct.unpack_from(">i", state, start)
    words = struct.unpack_from(f">{2 * count}Q", state, start + 4)
    numbers, values = words[:count], words[count:]
    assert list(numbers) == sorted(set(numbers))
    return state[:start], dict(zip(numbers, values, strict=True)), state[start + 4 + 16 * count :]

# SPDX-License-Identifier: GPL-2.0-or-later
"""A snapshot in the cache that is not the guest's own: taken again, or refused with a way out."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.guests.job import job_archive
from kdelta.machines import snapshots
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Setting, Snapshot, run_guest
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from tests.machines.bench import OLD, guest, new_setting, syscalls_job


def _fake(memory_mib: int) -> Guest:
    return Guest("0" * 64, "/vmlinuz", "x86_64", "/initrd", "initrd", 0, memory_mib)


def _obtained(where: Guest, folder: Path) -> Snapshot:
    snapshots._is_whole.cache_clear()  # as in another process
    found = asyncio.run(obtain_snapshot(where, Setting(folder, 60.0)))
    assert isinstance(found, Snapshot)
    return found


@pytest.mark.usefixtures("own_cache")
def test_snapshot_of_another_guest_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    booted: list[int] = []

    async def boot(where: Guest, setting: Setting) -> GuestOutcome:
        booted.append(where.memory_mib)
        for name in ("ram", "state", "boot", "symbols"):
            (setting.folder / name).write_text(f"{name} of {where.memory_mib}")
        return GuestOutcome(RunStatus.OK, "", "", 0.0, {})

    monkeypatch.setattr(snapshots, "boot", boot)
    guests = [_fake(256), _fake(512)]
    first, second = (_obtained(one, tmp_path).folder for one in guests)
    assert [_obtained(one, tmp_path).folder for one in guests] == [first, second]
    assert booted == [256, 512]
    first.rename(tmp_path / "swapped")
    second.rename(first)
    (tmp_path / "swapped").rename(second)
    for one in guests:
        assert _obtained(one, tmp_path).state.read_text() == f"state of {one.memory_mib}"
    assert booted == [256, 512, 256, 512]


@pytest.mark.guest
@pytest.mark.parametrize(
    "state", ["another machine's", "another size's", "rubbish", "empty", "cut", "its first bytes"]
)
def test_state_that_qemu_cannot_load_is_refused_with_a_way_out(state: str, tmp_path: Path) -> None:
    where = guest(OLD)
    own = asyncio.run(obtain_snapshot(where, new_setting()))
    assert isinstance(own, Snapshot)
    folder = tmp_path / "foreign"
    folder.mkdir()
    for path in (own.ram, own.boot, own.symbols):
        (folder / path.name).symlink_to(path)
    whole = own.state.read_bytes()
    (folder / "state").write_bytes(
        {
            "another machine's": whole.replace(b"pc-i440fx-7.2", b"pc-i440fx-7.1"),
            "another size's": whole,
            "rubbish": b"rubbish" * 1000,
            "empty": b"",
            "its first bytes": b"QEVM",
            "cut": whole[: len(whole) // 2],
        }[state]
    )
    if state == "another size's":
        where = msgspec.structs.replace(where, memory_mib=256)
    with pytest.raises(LabError, match=f"cannot load the snapshot in {folder}: ") as raised:
        asyncio.run(
            run_guest(
                where, job_archive(syscalls_job("getppid")), new_setting(60.0), Snapshot(folder)
            )
        )
    assert raised.value.hint == "remove that folder, or run with --no-snapshot"

# SPDX-License-Identifier: GPL-2.0-or-later
"""The exact machine: QEMU's TCG under a clock that counts instructions."""

import asyncio
import functools
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kdelta.host.native import build
from kdelta.machines.arch import ArchMachine, arch_machine
from kdelta.machines.chunks import read_messages
from kdelta.machines.outcome import Outcome, boot_failure, read_console, workload_outcome
from kdelta.machines.process import Emulator, emulator
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus

Talk = Callable[[str], None]


class Guest(msgspec.Struct, frozen=True):
    """What is booted: everything that decides the guest's state at the snapshot point."""

    kernel_identity: str
    kernel_image: str
    arch: str
    initrd: str
    initrd_identity: str
    memory_mib: int
    cpu: str = ""
    append: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """A guest stopped by its own agent when it was quiet."""

    folder: Path

    @property
    def state(self) -> Path:
        """QEMU's migration stream."""
        return self.folder / "state"

    @property
    def boot(self) -> Path:
        """The plugin's file of the boot: the agent's messages, and what was executed until then."""
        return self.folder / "boot"

    @property
    def symbols(self) -> Path:
        """The guest's /proc/kallsyms."""
        return self.folder / "symbols"


@functools.cache
def qemu_version(program: str) -> str:
    """QEMU's version, as it says it; LabError when there is none."""
    if not shutil.which(program):
        raise LabError(f"{program} is not installed", "make setup installs it; kdelta doctor lists what is missing")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\S+(?: \([^)]*\))?)", said)
    return found[1] if found else said.strip()[:80]


def _escape(path: Path | str) -> str:
    """A value in a QEMU option list: commas are doubled."""
    return str(path).replace(",", ",,")


def command_line(
    guest: Guest, folder: Path, job: Path, plugin: Path, incoming: Snapshot | None, count: bool
) -> list[str]:
    """QEMU's argv for a guest in its folder; the same but for the last options from power-on and from a snapshot."""
    arch: ArchMachine = arch_machine(guest.arch)
    options = [f"out={_escape(folder / 'counts')}", f"rules={_escape(folder / 'rules')}"]
    if incoming:
        options.append(f"symbols={_escape(incoming.symbols)}")
    if not count:
        options.append("count=off")
    argv = [
        arch.emulator, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", arch.machine, "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
        "-rtc", "base=2026-01-01,clock=vm", "-cpu", guest.cpu or arch.cpu, "-m", str(guest.memory_mib),
        *arch.arguments, "-action", "panic=pause",
        # A file takes whatever the guest prints at once: a slow reader cannot feed the host's time into the guest.
        "-chardev", f"file,id=console,path={_escape(folder / 'console')}", "-serial", "chardev:console",
        "-kernel", guest.kernel_image, "-initrd", guest.initrd,
        "-append", f"console={arch.serial} {arch.append} {guest.append}".strip(),
        "-fw_cfg", f"name=opt/kdelta/job,file={_escape(job)}",
        "-plugin", ",".join([_escape(plugin), *options]),
    ]  # fmt: skip
    if incoming:
        argv += ["-incoming", f"exec:cat {shlex.quote(str(incoming.state))}"]
    return argv


def _prepare(guest: Guest, folder: Path, job: bytes) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules").write_text(arch_machine(guest.arch).rules())
    (folder / "job").write_bytes(job)
    return folder / "job", build("plugin")


def _explain_start(error: LabError, guest: Guest) -> LabError:
    """QEMUs that cannot load the plugin, named with their version."""
    arch = arch_machine(guest.arch)
    said = str(error)
    if "plugin" not in said:
        return error
    version = qemu_version(arch.emulator)
    if "invalid option" in said:
        return LabError(f"QEMU {version} was built without TCG plugins", "install a QEMU built with --enable-plugins")
    return LabError(
        f"QEMU {version} cannot load kdelta's plugin (plugin API version 1): {said}",
        "QEMU 7.2 speaks this version; QEMU 9.0 and later do not",
    )


async def boot(guest: Guest, folder: Path, seconds: float, say: Talk, argv_seen: Talk | None = None) -> Outcome:
    """Boot to the agent's snapshot point and leave the state, symbols and boot file in `folder`."""
    job, plugin = _prepare(guest, folder, b"")
    argv = command_line(guest, folder, job, plugin, None, count=False)
    started = asyncio.get_running_loop().time()
    if argv_seen:
        argv_seen(shlex.join(argv))
    try:
        async with emulator(argv, folder, seconds) as qemu:
            say("boots")
            ended = await qemu.wait_stop()
            if ended == "stopped":
                await _save(qemu, folder / "state")
                await qemu.command("quit")
                await qemu.wait_exit()
            code = qemu.exit_code
    except LabError as error:
        raise _explain_start(error, guest) from error
    console = read_console(folder)
    messages = read_messages(folder / "counts") if (folder / "counts").exists() else {}
    status, detail = RunStatus.OK, ""
    if ended != "stopped":
        status, detail = RunStatus.BOOT_FAILED, boot_failure(ended, console, code)
    elif "kallsyms" not in messages:
        status, detail = RunStatus.BOOT_FAILED, "the agent did not send the kernel's symbols"
    else:
        (folder / "symbols").write_bytes(messages["kallsyms"])
        (folder / "counts").rename(folder / "boot")
    return Outcome(status, detail, console, asyncio.get_running_loop().time() - started, messages)


async def _save(qemu: Emulator, path: Path) -> None:
    """Write the stopped guest's state; LabError when QEMU cannot (a full disk)."""
    await qemu.command("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    await qemu.command("migrate", uri=f"exec:cat > {shlex.quote(str(path))}")
    while True:
        status = await qemu.command("query-migrate")
        if status.get("status") == "completed":
            return
        if status.get("status") in ("failed", "cancelled"):
            raise LabError(f"the snapshot could not be written to {path}", "look whether the disk is full")
        await asyncio.sleep(0.01)


async def _resume(qemu: Emulator, snapshot: Snapshot) -> None:
    while True:
        status = (await qemu.command("query-status"))["status"]
        if status not in ("inmigrate", "prelaunch"):
            break
        await asyncio.sleep(0.005)
    if status != "guest-panicked":  # the state in which the agent stopped the machine
        raise LabError(f"the snapshot in {snapshot.folder} cannot be loaded (QEMU is {status})", "remove the folder")
    await qemu.command("cont")


async def run(
    guest: Guest, job: bytes, folder: Path, seconds: float, say: Talk, snapshot: Snapshot | None,
    argv_seen: Talk | None = None,
) -> Outcome:  # fmt: skip
    """Run a job in a guest, from its snapshot or from power-on. What it counted is in `Outcome.counts`.

    `seconds` is wall time for the whole run.
    """
    job_path, plugin = _prepare(guest, folder, job)
    argv = command_line(guest, folder, job_path, plugin, snapshot, count=True)
    started = asyncio.get_running_loop().time()
    if argv_seen:
        argv_seen(shlex.join(argv))
    booted = "stopped"
    try:
        async with emulator(argv, folder, seconds) as qemu:
            if snapshot:
                await _resume(qemu, snapshot)
            else:
                say("boots")
                booted = await qemu.wait_stop()
                if booted == "stopped":
                    await qemu.command("cont")
            say("runs")
            ended = await qemu.wait_exit() if booted == "stopped" else booted
            code, complaint = qemu.exit_code, qemu.stderr()
    except LabError as error:
        raise _explain_start(error, guest) from error
    console = read_console(folder)
    counts = folder / "counts"
    messages = read_messages(counts) if counts.exists() else {}
    if booted != "stopped":
        status, detail = RunStatus.BOOT_FAILED, boot_failure(booted, console, code)
    else:
        if ended == "exited" and code:
            raise LabError(f"QEMU ended with {code}: {complaint or 'it said nothing'}", "run again with -v")
        status, detail = workload_outcome(ended, console, messages, seconds)
    took = asyncio.get_running_loop().time() - started
    return Outcome(status, detail, console, took, messages, counts, snapshot.boot if snapshot else counts)


def snapshot_facts(guest: Guest, plugin_options: Sequence[str] = ()) -> dict[str, object]:
    """What a snapshot is keyed by: all that decides its content, and nothing else (paths do not)."""
    arch = arch_machine(guest.arch)
    return {
        "kernel": guest.kernel_identity, "initrd": guest.initrd_identity, "memory_mib": guest.memory_mib,
        "cpu": guest.cpu or arch.cpu, "append": guest.append, "arch": msgspec.to_builtins(arch),
        "qemu": qemu_version(arch.emulator), "format": 1, "plugin": list(plugin_options),
    }  # fmt: skip

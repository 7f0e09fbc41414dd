# SPDX-License-Identifier: GPL-2.0-or-later
"""The exact machine: QEMU's TCG under a clock that counts instructions."""

import asyncio
import contextlib
import functools
import shlex
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import msgspec

from kdelta.host.command import Log, quiet
from kdelta.host.emulator import ANOTHER, KNOWN, HostQemu, find_qemu
from kdelta.host.files import copy_sparse, lab_errors, make_folder
from kdelta.host.interrupt import in_thread
from kdelta.host.machine import own_core
from kdelta.host.target import target
from kdelta.machines.arch import Board, arch_machine
from kdelta.machines.chunks import kept_messages, merged_messages, read_messages, require_complete
from kdelta.machines.device_tree import DeviceTreeFile
from kdelta.machines.forcing import Forcing, numbers_of
from kdelta.machines.migration import STATE, load_state, not_written, save_state
from kdelta.machines.outcome import GuestOutcome, boot_failure, read_console, workload_outcome
from kdelta.machines.process import Emulator, emulator
from kdelta.spec.errors import LabError
from kdelta.spec.limits import ITEMS_A_GIB
from kdelta.spec.run import RunsAs, RunStatus

TraceMode = Literal["off", "on", "data"]
"""Whether to keep each region's sequence of executed blocks; with "data", its data lines too."""

CallsMode = Literal["off", "kernel", "all"]
"""Whether calls are followed: in the kernel alone, or in user code, too."""


class Guest(msgspec.Struct, frozen=True, dict=True):
    """What is booted: everything that decides the guest's state at the snapshot point, which is
    when it is about to execute the instruction at `stop_address` in the agent. `qemu`, `runs_as`,
    `loaded` and `icount_shift` are as in MachineOptions. `parameters` are the kernel's, a part of
    its identity; they come last on its command line, and so win. `boot`: see Perturbation. `force`:
    features forced in the kernel; `forcing`: how, which has to be found before the boot.
    `programs_by`: the compiler of its programs, unless that is of the same pin as its QEMU. `cpus`:
    how many it has. `turn_us`: after how many microseconds of its time, at the latest, all of them
    have had a turn in a run; 0 is whenever it comes to that.
    """

    kernel_identity: str
    kernel_image: str
    arch: str
    initrd: str
    initrd_identity: str
    stop_address: int
    memory_mib: int
    cpu: str = ""
    qemu: str = ""
    append: str = ""
    device_tree: DeviceTreeFile | None = None
    runs_as: RunsAs = "service"
    loaded: bool = False
    icount_shift: int = 0
    parameters: tuple[str, ...] = ()
    boot: int = 0
    force: tuple[str, ...] = ()
    forcing: Forcing | None = None
    programs_by: str = ""
    cpus: int = 1
    turn_us: int = 0

    @property
    def board(self) -> Board:
        return arch_machine(self.arch).board(self.cpu)

    # Found once: a run starts its guest some fifty times.
    @functools.cached_property
    def emulator(self) -> HostQemu:
        """What it is run by; LabError or UserError if that is not there."""
        return find_qemu(target(self.arch), self.qemu)

    @functools.cached_property
    def plugin(self) -> Path:
        """The path of the plugin for that, which counts."""
        return self.emulator.plugin()

    @property
    def command_line(self) -> str:
        """The kernel's command line. The words with a dot are for the agent: a kernel takes them
        for a module's parameters and says nothing of them.
        """
        load = "kdelta.load" if self.loaded else ""
        boot = f"kdelta.boot={self.boot}" if self.boot else ""
        words = [f"console={self.board.serial}", self.board.append, f"kdelta.as={self.runs_as}"]
        force = self.forcing.parameter if self.forcing else ""
        return " ".join(filter(None, [*words, load, boot, force, self.append, *self.parameters]))

    def snapshot_facts(self) -> dict[str, object]:
        """Return what a snapshot is keyed by: all that decides its content, and nothing else."""
        return {
            "kernel": self.kernel_identity,
            "initrd": self.initrd_identity,
            "device_tree": self.device_tree.identity if self.device_tree else "",
            "memory_mib": self.memory_mib,
            "cpu": self.cpu or self.board.cpu,
            "append": self.command_line,
            "icount_shift": self.icount_shift,
            "machine": self.board.facts(),
            "rules": arch_machine(self.arch).rules(),
            "qemu": self.emulator.identity,
            "format": 4,
            **({"force": numbers_of(self.force), "force_format": 2} if self.force else {}),
            **({"cpus": self.cpus} if self.cpus > 1 else {}),
        }


class Snapshot(msgspec.Struct, frozen=True):
    """A guest that was stopped by its own agent when it was quiet, or, `after` that, by a program
    that the agent had started.

    The folder holds the guest's memory (ram), QEMU's migration stream without it (state), and the
    plugin's file of the way there (boot): messages, and what was executed. An agent's has the
    guest's /proc/kallsyms (symbols), too.
    """

    folder: Path
    after: "Snapshot | None" = None

    @property
    def ram(self) -> Path:
        """The guest's memory, a sparse file: runs map it privately, so nothing is read at start."""
        return self.folder / "ram"

    @property
    def state(self) -> Path:
        return self.folder / STATE

    @property
    def boot(self) -> Path:
        return self.folder / "boot"

    @property
    def whole_boot(self) -> tuple[Path, ...]:
        """The plugin's files of the whole way from power-on."""
        return (*(self.after.whole_boot if self.after else ()), self.boot)

    @property
    def symbols(self) -> Path:
        return self.after.symbols if self.after else self.folder / "symbols"

    def messages(self) -> dict[str, bytes]:
        """Return what the guest sent until then, as `merged_messages` has it."""
        return merged_messages(*map(kept_messages, self.whole_boot))


class Recording(msgspec.Struct, frozen=True):
    """What a run records besides its counts, which stay the same.

    trace: see TraceMode; trace_limit: how many items of pieces, and pieces, a region may have.
    calls: see CallsMode; calls_limit: about how many nodes a region's tree of calls may have.
    conflicts: lines of memory that one CPU writes and another one accesses.
    """

    trace: TraceMode = "off"
    trace_limit: int = ITEMS_A_GIB // 4
    calls: CallsMode = "off"
    calls_limit: int = 2 << 20
    conflicts: bool = False

    def options(self, data_line_bytes: int) -> tuple[str, ...]:
        """Return it as arguments of the plugin. data_line_bytes: of a line of data."""
        found: tuple[str, ...] = ()
        if self.trace != "off":
            found += (f"trace={self.trace}", f"trace-limit={self.trace_limit}")
        if self.trace == "data":
            found += (f"data-line={data_line_bytes}",)
        if self.calls != "off":
            found += (f"calls={self.calls}", f"calls-limit={self.calls_limit}")
        if self.conflicts:
            found += ("conflicts=on",)
        return found


NOTHING_MORE = Recording()


class Setting(msgspec.Struct, frozen=True):
    """Where and how a guest is run. `seconds` is wall time for the whole run.

    `say` hears what the guest is at; `echo` hears the command line, ready to be pasted.
    `recording` concerns runs, not boots. `hung`: how boots of guests ended that hung, which others
    like them do not wait for again.
    """

    folder: Path
    seconds: float
    log: Log = quiet
    echo: Log = quiet
    recording: Recording = NOTHING_MORE
    hung: dict[str, GuestOutcome] = {}


# The plugin's way to have short turns only within regions: in QEMU's own folder, for the path of a
# socket may not be long.
_TURNS_MONITOR = "turns"


def _escape(path: Path | str) -> str:
    """A value in a QEMU option list: commas are doubled."""
    return str(path).replace(",", ",,")


def _plugin_option(
    guest: Guest,
    folder: Path,
    snapshot: Snapshot | None,
    *,
    count: bool,
    recording: Recording,
    turns: bool,
) -> str:
    options: list[Path | str] = [
        guest.plugin,
        f"out={folder / 'counts'}",
        f"rules={folder / 'rules'}",
        f"job={folder / 'job'}",
    ]
    if snapshot:
        options.append(f"symbols={snapshot.symbols}")
    if not count:
        options.append("count=off")
    elif snapshot and snapshot.after:  # its program asked for it already
        options.append("count=now")
    options += recording.options(arch_machine(guest.arch).data_line_bytes)
    if guest.cpus > 1:
        options += [f"cpus={guest.cpus}", *(["turns=on"] if turns else [])]
    if count and turns and guest.turn_us:
        options.append(f"turns-monitor={_TURNS_MONITOR}")
    return ",".join(_escape(option) for option in options)


def _kernel(guest: Guest) -> list[str]:
    tree = ["-dtb", guest.device_tree.path] if guest.device_tree else []
    kernel = ["-kernel", guest.kernel_image, "-initrd", guest.initrd]
    return [*kernel, "-append", guest.command_line, *tree]


def _memory(guest: Guest, ram: Path, *, shared: bool) -> list[str]:
    """Options that keep the guest's memory in a file, and out of the migration stream.

    QEMU's manual calls it VM templating: the guest that boots shares the file, those that start
    from it map it privately.
    """
    share = "on" if shared else "off"
    return [
        "-object",
        f"memory-backend-file,id=ram,size={guest.memory_mib}M,mem-path={_escape(ram)},share={share}",
        "-machine", "memory-backend=ram",
    ]  # fmt: skip


def qemu_argv(
    guest: Guest,
    folder: Path,
    snapshot: Snapshot | None,
    *,
    count: bool,
    recording: Recording = NOTHING_MORE,
    keep: bool = False,
    terminal: int | None = None,
) -> list[str]:
    """Return QEMU's argv for a guest in its folder: from power-on, or from `snapshot`. It waits for
    a command to begin. keep: its state is to become a snapshot in that folder,
    which then has a copy of the memory that it begins with. terminal: a socket that its serial line
    is connected to in place of a file; such a guest waits as long as it says, and nothing repeats.
    """
    board = guest.board
    # A file takes at once what the guest prints: no slow reader feeds the host's time into it.
    console = f"file,id=console,path={_escape(folder / 'console')}"
    if terminal is not None:
        console = f"socket,id=console,fd={terminal}"
    qemu, repeats = guest.emulator, terminal is None
    turns = repeats and guest.cpus > 1
    several = ["-smp", str(guest.cpus)] if guest.cpus > 1 else []
    argv = [
        *(qemu.preloading(guest.plugin) if turns else qemu.argv),
        "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", board.machine, "-accel", "tcg,thread=single",
        "-icount", f"shift={guest.icount_shift},sleep={'off' if repeats else 'on'}",
        "-rtc", "base=2026-01-01,clock=vm", "-cpu", board.cpu_argument(guest.cpu),
        "-m", str(guest.memory_mib), *several, *board.arguments,
        "-chardev", console, "-serial", "chardev:console",
        *([] if snapshot and board.reads_kernel_at_boot else _kernel(guest)),
        "-plugin",
        _plugin_option(guest, folder, snapshot, count=count, recording=recording, turns=turns),
    ]  # fmt: skip
    if count and turns and guest.turn_us:
        listening = f"socket,id=turns,path={_TURNS_MONITOR},server=on,wait=off"
        argv += ["-chardev", listening, "-mon", "chardev=turns,mode=control"]
    if keep:
        argv += _memory(guest, Snapshot(folder).ram, shared=True)
    elif snapshot:
        argv += [*_memory(guest, snapshot.ram, shared=False), "-S"]
    return argv + (["-incoming", "defer"] if snapshot else [])


def write_inputs(guest: Guest, setting: Setting, job: bytes) -> None:
    """Writes into the setting's folder what QEMU's plugin reads."""
    make_folder(setting.folder)
    with lab_errors("writing in", setting.folder):
        (setting.folder / "rules").write_text(arch_machine(guest.arch).rules())
        (setting.folder / "job").write_bytes(job)


def _explain_start(error: LabError, guest: Guest) -> LabError:
    """A QEMU without the machine, named with its version."""
    if "unsupported machine type" not in str(error):
        return error
    machine = guest.board.machine.partition(",")[0]
    return LabError(f"QEMU {guest.emulator.version} has no machine {machine}: {KNOWN}", ANOTHER)


async def resume(qemu: Emulator, snapshot: Snapshot) -> None:
    """Load the snapshot and let the guest go on; LabError when QEMU cannot load it."""
    await load_state(qemu, snapshot.folder)
    await qemu.command("cont")


@contextlib.asynccontextmanager
async def _started(
    guest: Guest, setting: Setting, snapshot: Snapshot | None, *, count: bool
) -> AsyncIterator[Emulator]:
    """The guest's QEMU; one that does not count is to become a snapshot in its folder. A LabError
    on the way names the version that cannot do it.
    """
    recording = setting.recording if count else NOTHING_MORE
    argv = qemu_argv(
        guest, setting.folder, snapshot, count=count, recording=recording, keep=not count
    )
    setting.echo(shlex.join(argv))
    try:
        debugged = snapshot is None or not count
        # One thread of QEMU executes the guest, another one wakes it: on two cores, idle time costs
        # two to four times as much.
        with own_core() as core:
            async with emulator(
                argv, setting.folder, setting.seconds, debugged=debugged, core=core
            ) as qemu:
                yield qemu
    except LabError as error:
        raise _explain_start(error, guest) from error


async def _run_to(qemu: Emulator, guest: Guest, address: int) -> str:
    return await qemu.run_to(address, arch_machine(guest.arch).breakpoint_bytes)


async def boot_to(qemu: Emulator, guest: Guest, address: int) -> str:
    """From power-on to that instruction; on the way there, features are forced in the kernel."""
    if guest.forcing and guest.forcing.array:
        ended = await _run_to(qemu, guest, guest.forcing.start)
        if ended != "stopped":
            return ended
        await guest.forcing.write(qemu.debugger)
    return await _run_to(qemu, guest, address)


async def boot(guest: Guest, setting: Setting) -> GuestOutcome:
    """Boot to the agent's snapshot point; a Snapshot's files are in the folder when it is ok."""
    write_inputs(guest, setting, b"")
    folder = setting.folder
    started = asyncio.get_running_loop().time()
    async with _started(guest, setting, None, count=False) as qemu:
        setting.log("boots")
        ended = await boot_to(qemu, guest, guest.stop_address)
        if ended == "stopped":
            setting.log("saves its snapshot")
            await qemu.debugger.pause()
            await save_state(qemu, folder / STATE)
        code = qemu.exit_code
    if code == -signal.SIGBUS:  # the file that is the guest's memory could not grow
        raise not_written(folder)
    if ended == "stopped":
        require_complete(folder / "counts")
    console = read_console(folder)
    messages = read_messages(folder / "counts")
    status, detail = RunStatus.OK, ""
    if ended != "stopped":
        status, detail = RunStatus.BOOT_FAILED, boot_failure(ended, console, code)
    elif "kallsyms" not in messages:
        status, detail = RunStatus.BOOT_FAILED, "the agent did not send the kernel's symbols"
    else:
        with lab_errors("writing in", folder):
            (folder / "symbols").write_bytes(messages["kallsyms"])
            (folder / "counts").rename(folder / "boot")
    took = asyncio.get_running_loop().time() - started
    return GuestOutcome(status, detail, console, took, messages)


async def prepare_program(
    guest: Guest, job: bytes, setting: Setting, snapshot: Snapshot, stop_address: int
) -> Snapshot | None:
    """Take a snapshot in the setting's folder of a job's program when it asks what it is to do: it
    is about to execute the instruction at `stop_address`. None where it does not come there.
    """
    write_inputs(guest, setting, job)
    found = Snapshot(setting.folder, after=snapshot)
    await in_thread(copy_sparse, snapshot.ram, found.ram)
    async with _started(guest, setting, snapshot, count=False) as qemu:
        await load_state(qemu, snapshot.folder)
        setting.log("prepares its program")
        if await _run_to(qemu, guest, stop_address) != "stopped":
            return None
        await qemu.debugger.pause()
        await save_state(qemu, found.state)
    require_complete(setting.folder / "counts")
    with lab_errors("writing in", setting.folder):
        (setting.folder / "counts").rename(found.boot)
    return found


async def _shorten_turns(qemu: Emulator, turn_us: int) -> None:
    """Make a timer that expires so often, by the guest's clock, while a region is measured: the
    CPUs share what is left until the next one. It is that of a filter which holds back packets,
    in a network without a card, of which no guest finds anything; the plugin switches it.
    """
    if turn_us:
        await qemu.command("netdev_add", type="hubport", id="turns", hubid=0)
        buffer = {"qom-type": "filter-buffer", "id": "turn", "netdev": "turns"}
        await qemu.command("object-add", **buffer, interval=turn_us)
        await qemu.command("qom-set", path="/objects/turn", property="status", value="off")


async def to_the_end(
    qemu: Emulator, guest: Guest, setting: Setting, snapshot: Snapshot | None
) -> tuple[str, str]:
    """Return how the boot ended ("stopped" is well), and how the run did."""
    if snapshot:
        await load_state(qemu, snapshot.folder)
        await _shorten_turns(qemu, guest.turn_us)
        await qemu.command("cont")
    else:
        setting.log("boots")
        booted = await boot_to(qemu, guest, guest.stop_address)
        if booted != "stopped":
            return booted, booted
        await _shorten_turns(qemu, guest.turn_us)
        await qemu.debugger.let_go()
    setting.log("runs")
    return "stopped", await qemu.wait_exit()


async def run_guest(
    guest: Guest, job: bytes, setting: Setting, snapshot: Snapshot | None
) -> GuestOutcome:
    """Run a job in a guest, from its snapshot or from power-on."""
    write_inputs(guest, setting, job)
    folder = setting.folder
    started = asyncio.get_running_loop().time()
    async with _started(guest, setting, snapshot, count=True) as qemu:
        booted, ended = await to_the_end(qemu, guest, setting, snapshot)
        code, complaint = qemu.exit_code, qemu.stderr()
    console = read_console(folder)
    before = snapshot.messages() if snapshot else {}
    messages = merged_messages(before, read_messages(folder / "counts"))
    took = asyncio.get_running_loop().time() - started
    if booted != "stopped":
        why = boot_failure(booted, console, code)
        return GuestOutcome(RunStatus.BOOT_FAILED, why, console, took, messages)
    if ended == "exited" and code:
        said = complaint or "it said nothing"
        raise LabError(f"QEMU ended with {code}: {said}", "run again with -v to see its command")
    if ended == "exited":
        require_complete(folder / "counts")
    status, detail = workload_outcome(ended, console, messages, setting.seconds)
    symbols = snapshot.symbols if snapshot else folder / "symbols"
    if not snapshot:
        with lab_errors("writing", symbols):
            symbols.write_bytes(messages.get("kallsyms", b""))
    return GuestOutcome(status, detail, console, took, messages, folder / "counts", symbols)

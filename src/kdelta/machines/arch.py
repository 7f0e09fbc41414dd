# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between the machines of architectures: [machine] of their data files."""

import functools

import msgspec

from kdelta.arch.files import tables
from kdelta.host.target import target
from kdelta.spec.errors import UserError


class DeviceTree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The device tree that a board needs, of those that come with a kernel: `name`.dtb, and what it
    must say that it is for.
    """

    name: str
    compatible: str


class ImageMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a kernel has its image. Its base is its first symbol, rounded down to a multiple of
    `alignment`; from there on so many `bytes` are mapped to the physical address `Board.image`.
    Nothing of the kernel is executed further than `below` bytes below the base.
    """

    alignment: int
    bytes: int
    below: int


class MappedRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses from `start` to before `end` that a kernel maps by pages of `page_bytes`."""

    start: int
    end: int
    page_bytes: int


_DECIDE_NOTHING = frozenset({"most_memory_mib", "reads_kernel_at_boot"})


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine that QEMU emulates. `cpu` is the CPU of a guest that names none, as for QEMU;
    `cpus` are the models that it is for, none: any. `cpu_options` are added to whichever CPU it
    gets. `image` is the physical address at which a kernel has the base of its image. Without
    `snapshots` each run begins at power-on. Where QEMU's firmware `reads_kernel_at_boot` alone, a
    guest that starts from a snapshot goes without it.
    """

    machine: str
    serial: str
    cpu: str
    append: str
    image: int
    cpus: tuple[str, ...] = ()
    cpu_options: str = ""
    arguments: tuple[str, ...] = ()
    device_tree: DeviceTree | None = None
    snapshots: bool = True
    most_memory_mib: int | None = None
    reads_kernel_at_boot: bool = False

    def facts(self) -> dict[str, object]:
        """All of it that decides what a guest does."""
        every: dict[str, object] = msgspec.to_builtins(self)
        return {name: value for name, value in every.items() if name not in _DECIDE_NOTHING}

    def must_have(self, memory_mib: int) -> None:
        """UserError if it cannot have so much memory."""
        if self.most_memory_mib is not None and memory_mib > self.most_memory_mib:
            raise UserError(
                f"the machine {self.machine.partition(',')[0]} has {self.most_memory_mib} MiB of "
                f"memory at most, and {memory_mib} MiB are asked for",
                f"--memory {self.most_memory_mib}",
            )

    def cpu_argument(self, cpu: str) -> str:
        """The value of QEMU's option -cpu; an empty CPU means the board's."""
        return ",".join(filter(None, (cpu or self.cpu, self.cpu_options)))


class ArchMachine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An architecture's exact machines: its boards, and the kernel symbols watched.
    `breakpoint_bytes` is the size of the instruction at which the guest's init is stopped. `names`
    has addresses of code that the kernel executes and has no symbols of. Accesses to data are
    traced in lines of `data_line_bytes`: the shortest that its CPUs' caches have. `jumps_on`: how
    the names begin of functions that do nothing but go on to another one. `mapped`: what a kernel
    usually maps by larger pages than those of 4 KiB. `own_parameters`: boot parameters that it
    looks for in its command line itself; it then reports them as unknown. `default_cpu`: the CPU
    file that guests are like where the user names no CPU; without one they have the board's CPU.
    `system_calls`: the names of system calls, by the rest of their function's name, where they
    differ.
    """

    breakpoint_bytes: int
    image: ImageMap
    boards: tuple[Board, ...]
    symbols: dict[str, tuple[str, ...]]
    names: dict[str, str] = {}
    data_line_bytes: int = 64
    jumps_on: tuple[str, ...] = ()
    mapped: tuple[MappedRange, ...] = ()
    own_parameters: tuple[str, ...] = ()
    default_cpu: str = ""
    system_calls: dict[str, str] = {}

    def rules(self) -> str:
        """The plugin's rules file: one `KIND NAME` a line."""
        return "".join(f"{kind} {name}\n" for kind, names in self.symbols.items() for name in names)

    def unnamed(self) -> bytes:
        """Lines as in /proc/kallsyms of what the kernel has no symbols of."""
        return "".join(f"{address[2:]} t {name}\n" for address, name in self.names.items()).encode()

    def board(self, cpu: str) -> Board:
        """The board for that CPU, the first for an empty one; UserError if there is none."""
        core = cpu.partition(",")[0]
        for board in self.boards:
            if not core or not board.cpus or core in board.cpus:
                return board
        known = ", ".join(core for board in self.boards for core in board.cpus)
        raise UserError(f"there is no machine with the CPU {core!r}", f"there is: {known}")


def arch_machine(arch: str) -> ArchMachine:
    """The machines of an architecture; UserError for one that guests cannot have."""
    return _machines()[target(arch).name]


@functools.cache
def _machines() -> dict[str, ArchMachine]:
    return tables("machine", ArchMachine)

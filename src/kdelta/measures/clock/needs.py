# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests that are timed need of a kernel, as far as its config shows: found before any boots.

Of a kernel without a known config the guest finds out itself.
"""

from pathlib import Path

from kdelta.host.files import lab_errors
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.config.lab_config import missing_options
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.spec.errors import UserError

_NOT_MISSED = frozenset({"CONFIG_KALLSYMS", "CONFIG_SYSFS"})
"""What kernels are counted with, and timed ones do without. CONFIG_PRINTK is missed: a message of
the kernel says that KVM boots it, or why a guest ended.
"""

_OF_FIRST_BOARD = "CONFIG_ARCH_"
"""How options begin by which a kernel is one for an architecture's first board."""

_IGNORING = ("CONFIG_CMDLINE_OVERRIDE", "CONFIG_CMDLINE_FORCE")
"""Options by which a kernel ignores the command line it is booted with."""


def must_be_timeable(kernel: Kernel, cpu: str = "") -> None:
    """Raise UserError for a kernel whose config shows that it cannot be timed in a guest with that
    CPU, empty for the architecture's.
    """
    if kernel.config is None:
        return
    with lab_errors("reading", Path(kernel.config)):
        text = Path(kernel.config).read_text(errors="replace")
    changes = _lacking(text, kernel, cpu) | _ignoring(text)
    if changes:
        why = ", ".join(f"{change.partition('=')[0]} ({why})" for change, why in changes.items())
        raise UserError(
            f"{kernel.spec} cannot be timed in a guest, as its config shows: {why}",
            f"build it with: {' '.join(f'+{change}' for change in changes)}",
        )


def _lacking(text: str, kernel: Kernel, cpu: str) -> dict[str, str]:
    """Return what is missing or a module, as it would be asked for, and what it is needed for."""
    machine = arch_machine(kernel.arch)
    is_first = machine.board(cpu) is machine.boards[0]
    return {
        f"{one.option}=y": f"not built in: {one.needed_for}"
        for one in missing_options(text, kernel.image_format, kernel.arch)
        if one.option not in _NOT_MISSED
        and (is_first or not one.option.startswith(_OF_FIRST_BOARD))
    }


def _ignoring(text: str) -> dict[str, str]:
    """Return what would have to be off, and why."""
    config = parse_config(text)
    return {
        f"{name}=n": "on: the kernel ignores the command line that it is booted with"
        for name in _IGNORING
        if config.get(name) == "y"
    }

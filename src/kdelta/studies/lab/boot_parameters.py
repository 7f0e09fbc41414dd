# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel took the boot parameters that it was asked to be booted with."""

import re
from collections.abc import Mapping

from kdelta.kernels.arches import kernel_arch
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.spec.errors import UserError
from kdelta.spec.parameters import parameter, unknown_parameters

_COMMAND_LINE = re.compile(r"^cmdline (.*)$", re.MULTILINE)
_COMPLAINT = re.compile(r"(?:Malformed early option '|for parameter `)([^']*)'")
_ALWAYS = ("HOME=/", "TERM=linux")
"""The environment that a kernel gives its init without being asked to (init/main.c)."""
_HINT = (
    "Documentation/admin-guide/kernel-parameters.txt of that kernel has those that there are; some "
    "need an option of its config. --append sets any words, unchecked"
)


def must_fit(kernel: Kernel, command_line: str) -> None:
    """Raise UserError for a command line that is longer than the kernel can take: some hang then,
    and print nothing.
    """
    most = kernel_arch(kernel.arch).command_line_bytes - 1
    if len(command_line) > most:
        asked = len(" ".join(kernel.parameters))
        raise UserError(
            f"cannot boot {kernel.release} as asked: its command line has {len(command_line)} "
            f"bytes, and kernels for {kernel.arch} take {most} at most",
            f"boot parameters are {asked} of these bytes; name fewer, or shorter ones",
        )


def must_be_taken(kernel: Kernel, messages: Mapping[str, bytes]) -> None:
    """UserError if the kernel of a guest that sent these messages did not take one of its boot
    parameters. What kdelta sets itself is not looked at.
    """
    if not kernel.parameters or "hello" not in messages:
        return
    command_line = _COMMAND_LINE.search(_text(messages, "hello"))
    if command_line is None or " ".join(kernel.parameters) not in command_line[1]:
        raise UserError(
            f"cannot boot {kernel.spec}: the kernel ignores its command line, or cuts it off",
            "CONFIG_CMDLINE_OVERRIDE or CONFIG_CMDLINE_FORCE in its config ignores it",
        )
    own = arch_machine(kernel.arch).own_parameters
    if unknown := [word for word in _unknown(kernel, messages) if parameter(word)[0] not in own]:
        raise UserError(
            f"cannot boot {kernel.spec} as asked: {kernel.release} does not know "
            f"{' '.join(unknown)}",
            _HINT,
        )
    refused = _COMPLAINT.findall(_text(messages, "complaints"))
    for word in kernel.parameters:
        if parameter(word)[0] in refused:
            raise UserError(
                f"cannot boot {kernel.spec} as asked: {kernel.release} cannot read the value of "
                f"{word}",
                _HINT,
            )


def not_reported(kernel: Kernel, messages: Mapping[str, bytes]) -> tuple[str, ...]:
    """Warnings of boot parameters of which the kernel does not report whether it knows them. Those
    that it reports as unknown are here such as it looks for itself.
    """
    warnings = (
        ("kernels do not report whether they know names with a dot", _silent(kernel)),
        (
            "the kernel reports as unknown what it looks for itself, whether it has it or not",
            _unknown(kernel, messages),
        ),
    )
    return tuple(
        f"{' '.join(words)} may be without effect on {kernel.release}: {why}"
        for why, words in warnings
        if words
    )


def _silent(kernel: Kernel) -> list[str]:
    return [word for word in kernel.parameters if "." in parameter(word)[0]]


def _unknown(kernel: Kernel, messages: Mapping[str, bytes]) -> list[str]:
    """The boot parameters that the kernel gave its init."""
    arguments = _text(messages, "arguments").split("\0")[1:]
    environment = _text(messages, "environment").split("\0")
    handed = [text for text in (*arguments, *environment) if text and text not in _ALWAYS]
    return unknown_parameters(kernel.parameters, handed)


def _text(messages: Mapping[str, bytes], name: str) -> str:
    return messages.get(name, b"").decode("utf-8", "replace")

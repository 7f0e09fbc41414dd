# SPDX-License-Identifier: GPL-2.0-or-later
"""The options that say how runs are made: the same for all commands that make any."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from kdelta.cli import options
from kdelta.cli.output import echo_commands
from kdelta.studies.lab.requests import LabRequest

Command = Callable[..., Any]

LAB = "lab"

_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "perturb": (options.Perturb, 3),
    "again": (options.Again, False),
    "no_snapshot": (options.NoSnapshot, False),
    "jobs": (options.Jobs, None),
    "memory": (options.Memory, options.DEFAULT_MEMORY_MIB),
    "qemu_cpu": (options.QemuCpu, ""),
    "append": (options.Append, ""),
    "mode": (options.Mode, "user"),
    "runs_as": (options.As, "service"),
    "timeout": (options.Timeout, options.DEFAULT_TIMEOUT_SECONDS),
}
"""By the names that `lab_request` has for them: each with its default."""

SINGLE = ("perturb", "jobs", "qemu_cpu")
"""What a command does not ask for that makes one run of a kernel."""


def makes_runs(*, without: tuple[str, ...] = (), perturb: int = 3) -> Callable[[Command], Command]:
    """Puts the options, but for those `without`, in the place of a command's parameter `lab`, which
    is then the LabRequest that they make; and -v, which has what is executed echoed.

    perturb: the default of --perturb. Without that option it is one run a kernel.
    """
    made = {name: default for name, (_, default) in _OPTIONS.items()}
    made["perturb"] = 1 if "perturb" in without else perturb

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(*words: Any, verbose: bool, **given: Any) -> Any:
            echo_commands(wanted=verbose)
            asked = {name: given.pop(name, default) for name, default in made.items()}
            return command(*words, lab=options.lab_request(**asked), **given)

        shown = {name: default for name, default in made.items() if name not in without}
        with_options.__signature__ = _signature(command, shown)  # type: ignore[attr-defined]
        return with_options

    return decorated


def _signature(command: Command, shown: Mapping[str, Any]) -> inspect.Signature:
    """The command's own, with options of these defaults where `lab` is, and -v at the end."""
    signature = inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name != LAB:
            parameters.append(parameter)
            continue
        if parameter.annotation is not LabRequest:
            raise TypeError(f"{command.__name__}: {LAB} is to be a LabRequest")
        parameters += [_option(name, _OPTIONS[name][0], default) for name, default in shown.items()]
    return signature.replace(parameters=[*parameters, _option("verbose", options.Verbose, False)])


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )

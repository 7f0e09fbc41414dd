# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of commands, each of which is imported only when it is asked for."""

import importlib
from collections.abc import Mapping
from typing import Any

from kdelta.cli.command import Command
from kdelta.cli.examples import SPECS, examples_text

COMMANDS: Mapping[str, str] = {
    "compare": "Compare kernels, operation by operation.",
    "gate": "Answer by the exit code whether a kernel is slower, for CI and git bisect run.",
    "run": "Profile a command under a kernel, exactly.",
    "shell": "Open a shell in a guest of a kernel.",
    "runs": "List the runs, failed ones too.",
    "show": "Show one run, or one study as it was printed.",
    "profile": "Show where a run's instructions went, function by function.",
    "diff": "Show what each function gained and lost from A to B.",
    "report": "Show what a study found, at any time later and in any form.",
    "rm": "Remove studies and runs from the store.",
    "check": "Compare all of cache and store with their hashes.",
    "prune": "Remove what is no longer needed from cache and store.",
    "backup": "Copy the store, also while others write it.",
    "log": "Show how a workload's figures moved over the kernels in the store.",
    "layout": "Show how sensitive a workload is to the kernel's function layout.",
    "place": "Find a better order for a kernel's functions, and write it for the linker.",
    "crossing": "Measure the cost of entering and leaving the kernel, split by cause.",
    "conflicts": "Find the lines of memory that two CPUs contend for, by variable and field.",
    "ablate": "Find out which of the options that differ between two configs make the difference.",
    "bisect": "Find all commits of a range that make a kernel faster or slower.",
    "series": "Find out what each patch of a series does.",
    "clock": "Pack operations to be timed on any machine, and judge their times.",
    "build": "Build kernels without measuring them.",
    "kernels": "List the kernels that are kept here, and how they came about.",
    "cpus": "List the CPUs that have model cycles, and which have measured costs.",
    "schema": "Print the JSON Schema of a document.",
    "workloads": "List the workloads and their operations.",
    "doctor": "Check this host for missing dependencies.",
    "pin": "Show, fetch or pack the pinned QEMU, compilers and packages.",
    "completion": "Print what makes a shell complete kdelta's command lines.",
}
"""The first line of each command's help, in the order of --help; a test compares them."""

_MODULES = {"check": "upkeep", "prune": "upkeep", "backup": "upkeep", "build": "kernels"}
"""Of commands that have no module of their own."""

OF_KERNELS = frozenset(["ablate", "bisect", "build", "compare", "conflicts", "crossing", "gate"])
OF_KERNELS |= frozenset(["layout", "place", "run", "series", "shell"])
"""Commands whose help ends with the kinds of kernel specs."""


def module_of(name: str) -> str:
    """Return the module in which a command's function has its name."""
    return f"kdelta.cli.{_MODULES.get(name, name)}"


def load_command(name: str) -> Any:
    """Import a command; returns it as click knows commands."""
    module = importlib.import_module(module_of(name))
    epilog = examples_text(name)
    epilog += getattr(module, "EPILOG", "") if name not in _MODULES else ""
    epilog += SPECS if name in OF_KERNELS else ""
    return Command(name, getattr(module, name), epilog)

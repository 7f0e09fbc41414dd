# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that the x86-64 records of docs/cases were made on.

Their CPU is QEMU's qemu64 with some features, which was the default until guests were made like
zen4. Scripts name it, so that their figures can be compared with those records.
"""

from kdelta.lab.request import LabRequest
from kdelta.machines.arch import arch_machine
from kdelta.spec.run import MachineOptions

RECORDED = MachineOptions(cpu=arch_machine("x86_64").board("").cpu)
RECORDED_LAB = LabRequest(machine=RECORDED)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Why kbuild did not grant an option as it was asked for, told from the tree's Kconfig files."""

import msgspec


class Refused(msgspec.Struct, frozen=True):
    """An option that was asked for with one value and got another. `reason` is a clause, empty
    when none could be found.
    """

    option: str
    asked: str
    granted: str
    reason: str = ""

    def __str__(self) -> str:
        said = f"{self.option}={self.asked} was refused (it is {self.granted})"
        return f"{said}: {self.reason}" if self.reason else said

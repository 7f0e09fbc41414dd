# SPDX-License-Identifier: GPL-2.0-or-later
"""The two roots of all errors that kdelta raises on purpose: the user's slip and the broken lab."""


class KdeltaError(Exception):
    """What was wrong and with what (`message`), and what to do about it (`hint`, may be empty)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(KdeltaError):
    """What was asked for cannot be done: a slip in an argument, a file that is no kernel."""


class LabError(KdeltaError):
    """The lab is broken: a tool is missing or misbehaves, a disk is full, a store is damaged."""

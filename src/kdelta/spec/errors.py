# SPDX-License-Identifier: GPL-2.0-or-later
"""The two roots of all errors that kdelta raises on purpose: the user's slip and the broken lab."""

from collections.abc import Iterator


class KdeltaError(Exception):
    """What was wrong and with what (`message`), and what to do about it (`hint`, may be empty).
    `instead`: a word that was given, and the words that were probably meant; those for `--` stand
    for all that follows it, too.
    """

    def __init__(
        self, message: str, hint: str = "", instead: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.instead = instead


class UserError(KdeltaError):
    """What was asked for cannot be done: a slip in an argument, a file that is no kernel."""


class LabError(KdeltaError):
    """The lab is broken: a tool is missing or misbehaves, a disk is full, a store is damaged."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of groups of tasks, which may be in groups themselves; a lone one is itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error

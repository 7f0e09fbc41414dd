# SPDX-License-Identifier: GPL-2.0-or-later
"""To whom a study reports how far it is."""

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """To whom a study reports how far it is. A step is a short name, unique in the study; its first
    word is its kind.
    """

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        """So many further steps of a kind will begin, `at_once` of them at a time; rough: or some
        more or fewer, as the search goes.
        """

    def found(self, step: str) -> None:
        """A step has nothing to do, since what it would make is there."""

    def log(self, line: str) -> None:
        """Something worth a line of its own."""

    def show(self, text: Callable[[], str]) -> None:
        """Show this in place of what was shown before, until the study ends; it is called only
        where there is a terminal for it.
        """

    def begin(self, step: str, seconds: float | None = None) -> None:
        """A step starts; `seconds` is how long it will take, where that is known."""

    def doing(self, step: str, what: str) -> None:
        """What a step is at."""

    def end(self, step: str, result: str) -> None:
        """A step has ended, and how."""


class Silent:
    """Reports nothing."""

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        """Nothing."""

    def found(self, step: str) -> None:
        """Nothing."""

    def log(self, line: str) -> None:
        """Nothing."""

    def show(self, text: Callable[[], str]) -> None:
        """Nothing."""

    def begin(self, step: str, seconds: float | None = None) -> None:
        """Nothing."""

    def doing(self, step: str, what: str) -> None:
        """Nothing."""

    def end(self, step: str, result: str) -> None:
        """Nothing."""

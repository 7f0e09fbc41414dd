# SPDX-License-Identifier: GPL-2.0-or-later
"""What a check of cache and store finds."""

from pathlib import Path

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it should be.

    path     of the file or folder
    what     what is wrong with it
    is_left  nothing is wrong: it is left over, and takes space
    fixed    what was done about it, empty if nothing was
    """

    path: Path
    what: str
    is_left: bool = False
    fixed: str = ""

    @property
    def is_damage(self) -> bool:
        """Whether something that could be used is wrong, and still is."""
        return not self.is_left and not self.fixed

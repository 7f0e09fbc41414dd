# SPDX-License-Identifier: GPL-2.0-or-later
"""What came of a kernel's changes otherwise than the user may expect."""

import msgspec


class SpecNote(msgspec.Struct, frozen=True):
    """A line on a kernel's changes. `lost`: something that was asked for was not granted, or left
    out.
    """

    text: str
    lost: bool = False

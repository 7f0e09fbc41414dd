# SPDX-License-Identifier: GPL-2.0-or-later
"""The program of corner cases, and the names of its regions."""

import re
from pathlib import Path

SOURCES = sorted((Path(__file__).parent / "corners").glob("*.c"))
PROGRAM = "/corners"


def names_of_corners() -> set[str]:
    """What the sources say that there is, so that none can go missing unnoticed."""
    return {
        name
        for source in SOURCES
        for name in re.findall(
            r'^ +\{ "([a-z0-9-]+)",|CASE\("([a-z0-9-]+)"', source.read_text(), re.MULTILINE
        )
        for name in name
        if name
    }

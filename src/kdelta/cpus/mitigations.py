# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel says of its mitigations, and where it has lost one for want of microcode."""

import re

NOT_AFFECTED = "Not affected"

_NO_MICROCODE = re.compile(r"\bno microcode\b", re.IGNORECASE)
_NO_MITIGATION = re.compile(r"\b(?:vulnerable|mitigation)\b|[\s:,.]", re.IGNORECASE)


def said_of(vulnerabilities: str) -> dict[str, str]:
    """Return what a guest says, by file of /sys/devices/system/cpu/vulnerabilities.

    vulnerabilities: a line `name: words` for each.
    """
    lines = (line.partition(":") for line in vulnerabilities.splitlines())
    return {name.strip(): words.strip() for name, colon, words in lines if colon}


def parts_of(words: str) -> list[str]:
    """Return the parts of what a file says, which semicolons divide."""
    return [part.strip() for part in words.split(";")]


def without_microcode(words: str) -> str:
    """Return the part of a file's words which says that a mitigation is lost for want of microcode;
    empty if none does.

    "Vulnerable: No microcode" is such a part: nothing is executed. "Clear CPU buffers attempted, no
    microcode" and "Safe RET, no microcode" are not: all is executed as it is with microcode.
    """
    for part in parts_of(words):
        rest, found = _NO_MICROCODE.subn("", part)
        if found and not _NO_MITIGATION.sub("", rest):
            return part
    return ""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel took the paths that it would take on a CPU: what it said of itself, of its
mitigations as well, compared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kdelta.cpus.cores import flags_of
from kdelta.cpus.forced import Feature
from kdelta.cpus.model import CPU, KernelPath

NOT_AFFECTED = "Not affected"

_NO_MICROCODE = re.compile(r"\bno microcode\b", re.IGNORECASE)
_NO_MITIGATION = re.compile(r"\b(?:vulnerable|mitigation)\b|[\s:,.]", re.IGNORECASE)


def said_of(vulnerabilities: str) -> dict[str, str]:
    """Return what a guest says, by file of /sys/devices/system/cpu/vulnerabilities.

    vulnerabilities: a line `name: words` for each.
    """
    lines = (line.partition(":") for line in vulnerabilities.splitlines())
    return {name.strip(): words.strip() for name, colon, words in lines if colon}


def divided(words: str) -> list[str]:
    """Return the parts of what a file says, which semicolons divide."""
    return [part.strip() for part in words.split(";")]


def without_microcode(words: str) -> str:
    """Return the part of a file's words which says that a mitigation is lost for want of microcode;
    empty if none does.

    "Vulnerable: No microcode" is such a part: nothing is executed. "Clear CPU buffers attempted, no
    microcode" and "Safe RET, no microcode" are not: all is executed as it is with microcode.
    """
    for part in divided(words):
        rest, found = _NO_MICROCODE.subn("", part)
        if found and not _NO_MITIGATION.sub("", rest):
            return part
    return ""


class Difference(msgspec.Struct, frozen=True):
    """A path that a guest's kernel did not take as it would on the CPU, and how that shows."""

    path: KernelPath
    signs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The difference in words."""
        reason = f"; {self.path.not_emulated}" if self.path.not_emulated else ""
        return f"{self.path.name}: {self.path.otherwise} ({', '.join(self.signs)}){reason}"


def paths_not_taken(
    cpu: CPU, cpuinfo_text: str, vulnerabilities_text: str
) -> tuple[Difference, ...]:
    """The CPU's paths that the kernel of a guest did not take, in the order of the CPU's file.

    cpuinfo_text, vulnerabilities_text: the guest's /proc/cpuinfo, and a line `name: words` for each
    file of /sys/devices/system/cpu/vulnerabilities. Of what they do not say, nothing is known, and
    that is a difference too.
    """
    flags = flags_of(cpuinfo_text)
    said = said_of(vulnerabilities_text)
    found = ((path, _signs(path, flags, said)) for path in cpu.paths)
    return tuple(Difference(path, signs) for path, signs in found if signs)


def not_taken(forced: Iterable[Feature], cpuinfo: str, vulnerabilities: str) -> tuple[str, ...]:
    """Return the signs by which a guest's kernel did not take what was forced, in words.

    cpuinfo, vulnerabilities: as for `paths_not_taken`.
    """
    flags, said = flags_of(cpuinfo), said_of(vulnerabilities)
    signs = []
    for one in forced:
        if one.shows and one.shows not in flags:
            signs.append(f"{one.name} (/proc/cpuinfo has no {one.shows})")
        for name, words in one.denied.items():
            if words.lower() in said.get(name, "").lower():
                signs.append(f"{one.name} ({name}: {said[name]})")
    return tuple(dict.fromkeys(signs))


def _signs(path: KernelPath, flags: frozenset[str], said: Mapping[str, str]) -> tuple[str, ...]:
    signs = []
    if (path.flags or path.without) and not flags:
        signs.append("the guest did not say which features its CPU has")
    else:
        signs += [f"no {flag}" for flag in path.flags if flag not in flags]
        signs += [flag for flag in path.without if flag in flags]
    if path.foreign and not said:
        signs.append("the guest did not say which mitigations it uses")
    for name in dict.fromkeys((*path.foreign, *path.mitigations)):
        wanted = path.mitigations.get(name)
        if strange := _strange(said.get(name, ""), path.foreign.get(name, ()), wanted):
            signs.append(f"{name}: {strange}" + (f", not {wanted}" if wanted else ""))
    return tuple(signs)


def _strange(words: str, foreign: Sequence[str], wanted: str | None) -> str:
    """The part of a file's words that no kernel says on the CPU, or that says that its mitigation
    is lost for want of microcode, which the CPU has. A kernel older than a vulnerability says
    nothing of it.
    """
    for part in divided(words):
        if any(one.lower() in part.lower() for one in foreign):
            return part
    return without_microcode(words) if wanted and wanted != NOT_AFFECTED else ""

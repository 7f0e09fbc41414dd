# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel took the paths that it would take on a CPU: what it said of itself, compared."""

from collections.abc import Mapping

import msgspec

from kdelta.cpus.model import CPU, KernelPath


class Difference(msgspec.Struct, frozen=True):
    """A path that a guest's kernel did not take as it would on the CPU, and how that shows."""

    path: KernelPath
    signs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The difference in words."""
        reason = f"; {self.path.not_emulated}" if self.path.not_emulated else ""
        return f"{self.path.name}: {self.path.otherwise} ({', '.join(self.signs)}){reason}"


def differences(cpu: CPU, cpuinfo_text: str, vulnerabilities_text: str) -> tuple[Difference, ...]:
    """The CPU's paths that the kernel of a guest did not take, in the order of the CPU's file.

    cpuinfo_text, vulnerabilities_text: the guest's /proc/cpuinfo, and a line `name: words` for each
    file of /sys/devices/system/cpu/vulnerabilities. Of what they do not say, nothing is known, and
    that is a difference too.
    """
    flags = _flags(cpuinfo_text)
    said = _said(vulnerabilities_text)
    found = ((path, _signs(path, flags, said)) for path in cpu.paths)
    return tuple(Difference(path, signs) for path, signs in found if signs)


def representative(cpu: CPU, cpuinfo_text: str, vulnerabilities_text: str) -> tuple[str, ...]:
    """The same in words; empty when the guest's kernel took all of the CPU's paths."""
    return tuple(one.text for one in differences(cpu, cpuinfo_text, vulnerabilities_text))


def _signs(path: KernelPath, flags: frozenset[str], said: Mapping[str, str]) -> tuple[str, ...]:
    signs = []
    if (path.flags or path.without) and not flags:
        signs.append("the guest did not say which features its CPU has")
    else:
        signs += [f"no {flag}" for flag in path.flags if flag not in flags]
        signs += [flag for flag in path.without if flag in flags]
    if path.foreign and not said:
        signs.append("the guest did not say which mitigations it uses")
    for name, foreign in path.foreign.items():
        # A kernel older than a vulnerability says nothing of it.
        parts = [part.strip() for part in said.get(name, "").split(";")]
        strange = [part for part in parts if any(one.lower() in part.lower() for one in foreign)]
        if strange:
            wanted = path.mitigations.get(name)
            signs.append(f"{name}: {strange[0]}" + (f", not {wanted}" if wanted else ""))
    return tuple(signs)


def _flags(cpuinfo: str) -> frozenset[str]:
    """The features of the first CPU: x86 calls them flags, ARM Features."""
    for line in cpuinfo.splitlines():
        name, colon, words = line.partition(":")
        if colon and name.strip() in {"flags", "Features"}:
            return frozenset(words.split())
    return frozenset()


def _said(vulnerabilities: str) -> dict[str, str]:
    lines = (line.partition(":") for line in vulnerabilities.splitlines())
    return {name.strip(): words.strip() for name, colon, words in lines if colon}

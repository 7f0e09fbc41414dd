# SPDX-License-Identifier: GPL-2.0-or-later
"""Features that a CPU file may force in the guest's kernel."""

import functools
from collections.abc import Iterable, Mapping
from importlib import resources

import msgspec

FORCED_ON = "x86_64"
"""The architecture whose kernels have such features."""


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A feature of the CPU that changes only which path the kernel chooses.

    name      as CPU files have it: of cpuinfo, else that of the kernel's source
    source    from where its number is known: a key of `sources` in that file
    word, bit its number among the kernel's features (arch/x86/include/asm/cpufeatures.h). What a
              kernel has no word for it would not look at on the CPU either
    shows     the flag of /proc/cpuinfo that shows it; empty if none does
    denied    file of /sys/devices/system/cpu/vulnerabilities -> words that no kernel says there
              which took it
    """

    name: str
    source: str
    word: int
    bit: int
    shows: str = ""
    denied: dict[str, str] = {}


class _FeaturesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, str]
    feature: tuple[Feature, ...]


@functools.cache
def features() -> Mapping[str, Feature]:
    """Return all features that may be forced, by name."""
    file = resources.files("kdelta.cpus").joinpath("features", f"{FORCED_ON}.toml")
    found = msgspec.toml.decode(file.read_bytes(), type=_FeaturesFile).feature
    return {one.name: one for one in found}


def feature_words(forced: Iterable[Feature]) -> dict[int, int]:
    """Return the words of the kernel's features in which these are set, by their index."""
    words: dict[int, int] = {}
    for one in forced:
        words[one.word] = words.get(one.word, 0) | 1 << one.bit
    return words

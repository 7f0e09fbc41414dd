# SPDX-License-Identifier: GPL-2.0-or-later
"""Options whose value names files that a build reads, perhaps at its end: are these there?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kdelta.kernels.config.kconfig import line_of

_FIRMWARE, _FIRMWARE_FOLDER = "CONFIG_EXTRA_FIRMWARE", "CONFIG_EXTRA_FIRMWARE_DIR"
_NAMING = (
    "CONFIG_ACPI_CUSTOM_DSDT_FILE",
    "CONFIG_BOOT_CONFIG_EMBED_FILE",
    "CONFIG_CFG80211_EXTRA_REGDB_KEYDIR",
    "CONFIG_INITRAMFS_SOURCE",
    "CONFIG_SYSTEM_BLACKLIST_HASH_LIST",
    "CONFIG_SYSTEM_REVOCATION_KEYS",
    "CONFIG_SYSTEM_TRUSTED_KEYS",
    "CONFIG_UNUSED_KSYMS_WHITELIST",
    _FIRMWARE,
)
_URI = "pkcs11:"


def missing_files(config: Mapping[str, str], places: Sequence[Path]) -> list[str]:
    """A clause for each option that names a file which is not there. places: the folders that a
    relative name may start from.
    """
    return list(_missing(config, places))


def _missing(config: Mapping[str, str], places: Sequence[Path]) -> Iterator[str]:
    for option in _NAMING:
        value = config.get(option, "")
        starts = list(places)
        if option == _FIRMWARE:
            starts = [place / _text(config, _FIRMWARE_FOLDER) for place in places]
        for name in _text(config, option).split():
            if not name.startswith(_URI) and not any((start / name).exists() for start in starts):
                yield f"{line_of(option, value)} names {name}, which is not there"


def _text(config: Mapping[str, str], option: str) -> str:
    return config.get(option, "").strip('"')

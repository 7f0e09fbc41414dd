# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that name files, and the files that are not there."""

from pathlib import Path

from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.config.named_files import missing_files

CONFIG = """
CONFIG_UNUSED_KSYMS_WHITELIST="abi.raw"
CONFIG_INITRAMFS_SOURCE="{folder}/root list"
CONFIG_SYSTEM_TRUSTED_KEYS="pkcs11:object=key"
CONFIG_BOOT_CONFIG_EMBED_FILE=""
CONFIG_EXTRA_FIRMWARE="a.bin b/c.bin"
CONFIG_EXTRA_FIRMWARE_DIR="firmware"
CONFIG_MODULE_SIG_KEY="certs/signing_key.pem"
"""


def test_files_that_options_name_are_looked_for_in_all_places(tmp_path: Path) -> None:
    config = parse_config(CONFIG.format(folder=tmp_path))
    assert missing_files(config, [tmp_path / "out", tmp_path]) == [
        f'CONFIG_INITRAMFS_SOURCE="{tmp_path}/root list" names {tmp_path}/root, which is not there',
        f'CONFIG_INITRAMFS_SOURCE="{tmp_path}/root list" names list, which is not there',
        'CONFIG_UNUSED_KSYMS_WHITELIST="abi.raw" names abi.raw, which is not there',
        'CONFIG_EXTRA_FIRMWARE="a.bin b/c.bin" names a.bin, which is not there',
        'CONFIG_EXTRA_FIRMWARE="a.bin b/c.bin" names b/c.bin, which is not there',
    ]
    (tmp_path / "out").mkdir()
    for name in ("abi.raw", "root", "out/list", "firmware/a.bin", "firmware/b/c.bin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert missing_files(config, [tmp_path / "out", tmp_path]) == []

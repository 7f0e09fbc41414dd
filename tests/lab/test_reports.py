# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of reports that every study needs: how the configs of two kernels differ."""

from pathlib import Path

from kdelta.kernels.model import Kernel
from kdelta.lab.reports import config_changes
from kdelta.report.model import ReportedOption


def kernel(path: Path | None) -> Kernel:
    config = None if path is None else str(path)
    return Kernel("a" * 64, "image:x", "/vmlinuz", "x86_64", "6.1.0", config=config)


def test_how_two_configs_differ(tmp_path: Path) -> None:
    base, other = tmp_path / "base", tmp_path / "other"
    base.write_text("CONFIG_HZ=250\nCONFIG_SMP=y\n# CONFIG_RUST is not set\n")
    other.write_text("CONFIG_HZ=1000\nCONFIG_SMP=y\nCONFIG_RUST=y\n# CONFIG_NEW is not set\n")
    assert config_changes(kernel(base), kernel(other)) == (
        ReportedOption("CONFIG_HZ", "250", "1000"),
        ReportedOption("CONFIG_RUST", "n", "y"),
    )
    assert config_changes(kernel(base), kernel(base)) == ()


def test_a_config_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.write_text("CONFIG_HZ=250\n")
    for unknown in (None, kernel(None), kernel(tmp_path / "gone")):
        assert config_changes(kernel(base), unknown) is None
        assert config_changes(unknown, kernel(base)) is None

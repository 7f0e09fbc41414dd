# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a store has the file of a blob."""

from pathlib import Path


def blob_path(folder: Path, name: str) -> Path:
    return folder / name[:2] / name[2:]

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Config files of public projects, and what kdelta takes each for.

    scripts/proofs/public_configs.py FOLDER

reads the files that the records name from clones of the projects, FOLDER/OWNER/NAME, at their HEAD,
and records what each is taken for. The files are not kept. It fails if one is taken for what it is
not. To add a file, add a record with its `repository`, `path`, `change` and `right`.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from kdelta.host.files import write_atomic
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.sources.content import read_content
from kdelta.kernels.sources.given import given_in
from kdelta.spec.change import parse_change
from kdelta.spec.errors import UserError

RECORDS = Path(__file__).parents[2] / "docs/cases/public-configs/records.json"


class ConfigRecord(msgspec.Struct, frozen=True):
    """What a file was taken for, and what kdelta reports of it. `change`: how it is named; `right`:
    what it is, by what its project does with it.
    """

    repository: str
    path: str
    change: str
    right: Literal["base", "fragment", "refused"]
    commit: str = ""
    options: int = 0
    taken_for: str = ""
    said: str = ""


def recorded() -> list[ConfigRecord]:
    """Return the records that are kept."""
    return msgspec.json.decode(RECORDS.read_bytes(), type=list[ConfigRecord])


def classified(record: ConfigRecord, folder: Path) -> ConfigRecord:
    """Return a record with what its file is taken for now."""
    git = ("git", "-C", str(folder / record.repository))
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    content = subprocess.check_output([*git, "show", f"HEAD:{record.path}"])
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, Path(record.path).name)
        file.write_bytes(content)
        text, taken_for = read_content(file).decode("utf-8", "replace"), "refused"
        try:
            given = given_in(parse_change(record.change.replace("FILE", str(file))))
            assert given is not None
            taken_for, said, text = given.kind, given.described, given.text
        except UserError as error:
            said = error.message.replace(str(file), file.name)
    options = len(parse_config(text))
    return msgspec.structs.replace(
        record, commit=commit, options=options, taken_for=taken_for, said=said
    )


def main() -> int:
    """Record what the clones have; 1 if a file is taken for what it is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    found = [classified(one, folder) for one in recorded()]
    write_atomic(RECORDS, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    wrong = [one for one in found if one.taken_for != one.right]
    for one in wrong:
        print(f"{one.repository} {one.path} is taken for: {one.said}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

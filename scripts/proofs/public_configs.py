#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Config files of public projects, and what kdelta takes each for.

    scripts/proofs/public_configs.py --clones FOLDER --again

reads the files that the records name from clones of the projects, FOLDER/OWNER/NAME, at their HEAD,
and records what each is taken for. The files are not kept. It fails if one is taken for what it is
not. To add a file, add a record with its `repository`, `path`, `change` and `right`.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from campaign import CASES, Proof

from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.sources.content import read_content
from kdelta.kernels.sources.given import given_in
from kdelta.spec.change import parse_change
from kdelta.spec.errors import UserError

FOLDER = CASES / "public-configs"


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

    @property
    def name(self) -> str:
        """Return its trial."""
        return f"{self.repository}/{self.path}"


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


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[ConfigRecord]:
    """Look at what the clones have."""
    for one in PROOF.records():
        if one.name in names:
            yield classified(one, options.clones)


def wrong(found: Sequence[ConfigRecord]) -> Iterator[str]:
    """Yield the files that are taken for what they are not."""
    for one in found:
        if one.taken_for != one.right:
            yield f"{one.name} is taken for: {one.said}"


PROOF: Proof[ConfigRecord] = Proof(
    record=ConfigRecord,
    file=FOLDER / "records.jsonl",
    trials=lambda _: [one.name for one in PROOF.records()],
    make=made,
    wrong=wrong,
    options=lambda parser: parser.add_argument("--clones", type=Path, help="OWNER/NAME clones"),
)


def check_public_configs_are_of_many_projects_and_of_each_kind(
    found: Sequence[ConfigRecord],
) -> None:
    """Check the records, and that the page names their files."""
    assert len({one.repository for one in found}) >= 10
    kinds = {(one.change, one.right) for one in found}
    assert kinds >= {("+FILE", "base"), ("+FILE", "fragment"), ("+base:FILE", "base")}
    page = (FOLDER / "README.md").read_text()
    for one in found:
        assert f"`{one.path}`" in page
        assert re.fullmatch(r"[0-9a-f]{40}", one.commit)
        assert one.right == "refused" or f" {one.options} option" in one.said


if __name__ == "__main__":
    sys.exit(PROOF.main())

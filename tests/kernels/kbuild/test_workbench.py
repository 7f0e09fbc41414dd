# SPDX-License-Identifier: GPL-2.0-or-later
"""Single objects that include what a whole build makes in another folder before; folders."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.kbuild.kbuild import Kbuild
from kdelta.kernels.kbuild.toolchain import toolchain
from kdelta.kernels.kbuild.workbench import CONFIGS, Workbench
from kdelta.spec.errors import LabError

TARGET = "arch/x86/boot/compressed/sev.o"
RULE = "$(obj)/inat-tables.c: $(inat_tables_script)\n\t$(call cmd,inat_tables)\n"


@pytest.mark.parametrize(
    ("wrong", "made"),
    [
        ("a.c:7: inat-tables.c: No such file or directory", ["arch/x86/lib/"]),
        ("a.c:7: '../lib/inat-tables.c' file not found", ["arch/x86/lib/"]),
        ("a.c:7: other.h: No such file or directory", None),
        ("a.c:7: expected ';' before '}' token", None),
    ],
)
def test_folder_that_makes_a_missed_file_is_built_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, made: list[str] | None
) -> None:
    makefile = tmp_path / "arch/x86/lib/Makefile"
    makefile.parent.mkdir(parents=True)
    makefile.write_text(RULE)
    asked: list[Sequence[str]] = []

    def make(targets: Sequence[str], *_: object) -> str | None:
        asked.append(targets)
        return wrong if len(asked) == 1 else None

    monkeypatch.setattr(Workbench, "use", lambda *_: None)
    monkeypatch.setattr("kdelta.kernels.kbuild.workbench.digest_of", lambda *_: "digest")
    kbuild = SimpleNamespace(tree=tmp_path, out=tmp_path, make=make)
    found = Workbench(kbuild, quiet).compile("", [TARGET])  # type: ignore[arg-type]
    if made is None:
        assert (found, asked) == (wrong, [[TARGET]])
    else:
        assert (found, asked) == ("digest", [[TARGET], made, [TARGET]])


def test_an_output_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    tools = toolchain({"ARCH": "x86_64"})
    (tmp_path / f"{CONFIGS}{tools.flavour}").write_text("")
    bench = Workbench(Kbuild(tmp_path, tmp_path, tools, 1), quiet)
    with pytest.raises(LabError, match=f"creating the folder .*{CONFIGS}"):
        bench.normalize()

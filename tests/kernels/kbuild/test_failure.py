# SPDX-License-Identifier: GPL-2.0-or-later
"""What a build that failed says of itself: recorded output of make, gcc, clang, as, ld and lld."""

import shutil
from pathlib import Path

import pytest

from kdelta.kernels.kbuild.failure import NoKernel, first_error, lab_failure
from kdelta.spec.run import RunStatus

TREE = Path("/cache/trees/linux-1/src")

MAKE = """\
make[3]: *** [{tree}/scripts/Makefile.build:229: {name}] Error 1
make[3]: *** Waiting for unfinished jobs....
make[2]: *** [{tree}/scripts/Makefile.build:478: mm] Error 2
make[1]: *** [{tree}/Makefile:1950: .] Error 2
make: *** [Makefile:224: __sub-make] Error 2
"""

COMPILER = """\
{place}/mm/a.c:2:1: error: unknown type name \u2018integer\u2019
    2 | integer pages[64];
      | ^~~~~~~
{place}/mm/a.c: In function \u2018f\u2019:
{place}/mm/a.c:3:22: error: too few arguments to function \u2018g\u2019
"""

LINKER = """\
ld: kernel/core.o: in function `start_kernel':
core.c:(.text+0x5): undefined reference to `h'
"""


def said(text: str, name: str = "mm/a.o") -> list[str]:
    """The lines of something that failed, with what make adds to it."""
    return (text + MAKE.format(tree=TREE, name=name)).splitlines()


@pytest.mark.parametrize("place", [str(TREE), "../src"])
def test_a_compilers_first_error_by_its_place_in_the_tree(place: str) -> None:
    found = first_error(said(COMPILER.format(place=place)), TREE)
    assert found == "mm/a.c:2: unknown type name \u2018integer\u2019"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "n.c:1:10: fatal error: nonsense.h: No such file or directory\n    1 | #include <x>\n",
            "n.c:1: nonsense.h: No such file or directory",
        ),
        ('n.c:1:2: error: #error "CONFIG_X is needed"\n', 'n.c:1: #error "CONFIG_X is needed"'),
        (
            "s.S: Assembler messages:\ns.S:1: Error: no such instruction: `nonsense %rax'\n",
            "s.S:1: no such instruction: `nonsense %rax'",
        ),
        ("mm/a.c:7:3: error: use of undeclared identifier 'x'\n1 error generated.\n",
         "mm/a.c:7: use of undeclared identifier 'x'"),
        (LINKER, "linking failed: core.c:(.text+0x5): undefined reference to `h'"),
        (
            ("ld: l2.o: in function `start':\nl.c:(.text+0x0): multiple definition of `start'; "
            "l.o:l.c:(.text+0x0): first defined here\n"),
            ("linking failed: l.c:(.text+0x0): multiple definition of `start'; "
            "l.o:l.c:(.text+0x0): first defined here"),
        ),
        (
            "ld: kernel image bigger than KERNEL_IMAGE_SIZE\n",
            "linking failed: ld: kernel image bigger than KERNEL_IMAGE_SIZE",
        ),
        (
            "ld.lld: error: undefined symbol: h\n>>> referenced by core.c:12\n",
            "linking failed: ld.lld: error: undefined symbol: h",
        ),
        (
            'ERROR: modpost: "h" [drivers/net/dummy.ko] undefined!\n',
            'linking failed: ERROR: modpost: "h" [drivers/net/dummy.ko] undefined!',
        ),
        (
            "vmlinux.o: error: objtool: start+0x5: unreachable instruction\n",
            "vmlinux.o: error: objtool: start+0x5: unreachable instruction",
        ),
        (
            "BTF: .tmp_vmlinux1: no data\nFailed to generate BTF for vmlinux\n",
            ("Failed to generate BTF for vmlinux "
            f"(make: [{TREE.name}/scripts/Makefile.build:229: mm/a.o] Error 1)"),
        ),
    ],
)  # fmt: skip
def test_what_went_wrong_first(text: str, expected: str) -> None:
    lines = [line.replace(f"{TREE.parent}/", "") for line in said(text)]
    assert first_error(lines) == expected


def test_a_warning_is_not_what_went_wrong() -> None:
    text = "mm/b.c:1:1: warning: unused\nld: warning: x.o: missing .note.GNU-stack section\n"
    assert first_error(said(text + COMPILER.format(place="../src")), TREE).startswith("mm/a.c:2: ")


def test_a_missing_file_of_the_tree() -> None:
    lines = ["make[1]: *** No rule to make target 'y.o', needed by 'x.o'.  Stop."]
    assert first_error(lines) == "No rule to make target 'y.o', needed by 'x.o'"


@pytest.mark.parametrize(
    "line",
    [
        "gcc: fatal error: Killed signal terminated program cc1",
        "make[3]: *** [scripts/Makefile.build:229: mm/slub.o] Error 137",
        "make[3]: *** [scripts/Makefile.build:229: mm/slub.o] Killed",
    ],
)
def test_a_killed_compiler(line: str) -> None:
    assert "too little memory" in first_error([line])


def test_silence() -> None:
    assert first_error([]) == "make said nothing"
    assert first_error(["make: *** [Makefile:1: x] Error 2"]) == "make: [Makefile:1: x] Error 2"


@pytest.mark.parametrize(
    ("line", "message", "package"),
    [
        ("/bin/sh: 1: bc: not found", "program bc", "bc"),
        ("/src/scripts/x.sh: line 5: pahole: command not found", "program pahole", "dwarves"),
        ("make[1]: bison: No such file or directory", "program bison", "bison"),
        ("elf.h:10:10: fatal error: gelf.h: No such file or directory", "gelf.h", "libelf-dev"),
        ("x.c:1:10: fatal error: 'openssl/bio.h' file not found", "openssl/bio.h", "libssl-dev"),
    ],
)
def test_what_the_host_lacks(line: str, message: str, package: str, tmp_path: Path) -> None:
    found = lab_failure(said(f"{line}\n"), tmp_path)
    assert found is not None
    assert f"{message} is missing" in found.message
    assert found.hint.endswith(f"apt-get install {package}")


@pytest.mark.parametrize(
    "text",
    [
        "as: can't write 12 bytes to section .text of mm/a.o: 'No space left on device'\n",
        "ld: final link failed: No space left on device\n",
        "/tmp/cc1.s: error: Disk quota exceeded\n",
        "ld: final link failed: File too large\n",
    ],
)
def test_a_full_disk(text: str, tmp_path: Path) -> None:
    found = lab_failure(said(text), tmp_path)
    assert found is not None
    assert str(tmp_path) in found.message
    assert found.hint


def test_a_disk_that_is_full_without_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = said("fixdep: failed\n")
    assert lab_failure(lines, tmp_path) is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: type("U", (), {"free": 4096}))
    found = lab_failure(lines, tmp_path)
    assert found is not None
    assert "No space left" in found.message


@pytest.mark.parametrize(
    "text",
    [
        COMPILER.format(place="../src"),
        LINKER,
        "n.c:1:10: fatal error: linux/nonsense.h: No such file or directory\n",
        "/bin/sh: 1: nonsense: not found\n",
        "cc1: fatal error: n.c: No such file or directory\n",
    ],
)
def test_what_the_kernel_is_to_blame_for(text: str, tmp_path: Path) -> None:
    assert lab_failure(said(text), tmp_path) is None


def test_a_failure_in_a_line() -> None:
    found = NoKernel("tree:/x", RunStatus.BUILD_FAILED, "1", "mm/a.c:2: wrong", "/logs/1.log")
    assert found.text == "build-failed: mm/a.c:2: wrong (log: /logs/1.log)"

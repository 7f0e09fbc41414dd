# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of its instruction sets the plugin takes a block of 32-bit ARM for."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.native import native_folder

from .conftest import HERE, SANITIZERS, compile_c

KERNEL, MODULE, VECTORS = 0xC0101000, 0xBF001000, 0xFFFF0000
USER, OTHER_PAGE = 0x10000, 0x11000
# In the order of memory. A mov and a push are of one set only; by its bytes alone, a dmb of A32
# looks like Thumb code, and an ldrex of Thumb code like A32.
MOV_A32, DMB_A32 = "0100a0e1", "5ff07ff5"
PUSH_THUMB, LDREX_THUMB = "10b5", "52e800ef"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plugin = native_folder() / "plugin"
    sources = [HERE / "arm_modes.c", plugin / "arm.c", plugin / "thumb.c"]
    path = tmp_path_factory.mktemp("modes") / "arm_modes"
    return compile_c(path, sources, f"-I{plugin}", *SANITIZERS)


@pytest.mark.parametrize(
    ("blocks", "last"),
    [
        ([(KERNEL, MOV_A32)], "a32"),
        ([(KERNEL, PUSH_THUMB)], "thumb"),
        # Where nothing around it is known, it is a guess.
        ([(KERNEL, DMB_A32)], "thumb"),
        ([(USER, LDREX_THUMB)], "a32"),
        # The kernel is of one set, and so are its modules.
        ([(KERNEL, MOV_A32), (KERNEL + 0x5000, DMB_A32)], "a32"),
        ([(KERNEL, MOV_A32), (MODULE, DMB_A32)], "a32"),
        ([(KERNEL, PUSH_THUMB), (KERNEL + 4, LDREX_THUMB)], "thumb"),
        # Its vectors have what the kernel offers to programs, which is A32.
        ([(KERNEL, PUSH_THUMB), (VECTORS, MOV_A32), (KERNEL, LDREX_THUMB)], "thumb"),
        # Of programs a page is.
        ([(USER, PUSH_THUMB), (USER + 4, LDREX_THUMB)], "thumb"),
        ([(USER, PUSH_THUMB), (OTHER_PAGE, LDREX_THUMB)], "a32"),
        ([(USER, PUSH_THUMB), (USER + (1024 << 12), MOV_A32), (USER, LDREX_THUMB)], "a32"),
        ([(USER, PUSH_THUMB), (USER, f"{MOV_A32} {LDREX_THUMB}")], "a32"),
    ],
)
def test_block_is_of_the_set_that_the_code_around_it_is(
    program: Path, blocks: list[tuple[int, str]], last: str
) -> None:
    lines = "".join(f"{address:x} {codes}\n" for address, codes in blocks)
    said = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    assert said.stdout.split()[-1] == last

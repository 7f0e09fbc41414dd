# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload has for one kernel, built by a kbuild of our own that takes milliseconds."""

import json
import subprocess
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.host.gcc import Compiler
from kdelta.host.native import native_folder
from kdelta.kernels.model import Kernel
from kdelta.workloads.catalog import find_workload, load_workload
from kdelta.workloads.kernel_part import KernelPart, build_kernel_part

pytestmark = pytest.mark.slow

AES = find_workload("aes")
HOST = Compiler("x86_64")

# Compiles what is there for user space, and writes the command as kbuild does.
MAKEFILE = r"""
FLAGS = -Os -fno-PIE -fno-strict-aliasing -mcmodel=kernel -Wall -DMODULE
modules:
	@echo $(M) >> calls
	@test -f $(M)/Kbuild && test -f $(M)/module.c && test -f $(M)/kdelta.h
	gcc -g $(FLAGS) -c -o $(M)/aes.o $(M)/aes.c
	printf 'savedcmd_%s := gcc $(FLAGS) -c -o %s %s\n' aes.o aes.o aes.c > $(M)/.aes.o.cmd
	ld -r --build-id=sha1 -o $(M)/kdelta_aes.ko $(M)/aes.o
"""


class Fake:
    """A kernel with a folder that its modules are built in."""

    def __init__(self, folder: Path) -> None:
        self.modules = folder / "lib/modules/1"
        self.build = self.modules / "build"
        self.build.mkdir(parents=True)
        (self.build / ".config").write_text("CONFIG_64BIT=y\n")
        self.make(MAKEFILE)

    def make(self, text: str) -> None:
        (self.build / "Makefile").write_text(text)

    def kernel(self, identity: str = "one", modules: bool = True) -> Kernel:
        folder = str(self.modules) if modules else None
        return Kernel(identity, "image:/i", "/i", "x86_64", "1.0", modules=folder)

    def part(self, identity: str = "one", modules: bool = True) -> KernelPart:
        return build_kernel_part(AES, self.kernel(identity, modules), quiet, by=HOST)

    def calls(self) -> int:
        return len((self.build / "calls").read_text().splitlines())


@pytest.fixture
def fake(tmp_path: Path, own_cache: Path) -> Fake:
    assert own_cache
    return Fake(tmp_path)


def disassembly(path: Path) -> str:
    """The cipher's instructions, without addresses."""
    argv = ["objdump", "-d", "--no-addresses", "--disassemble=aes256_cbc_encrypt", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return done.stdout.partition("file format")[2]


def test_module_and_program_are_built_once_a_kernel(fake: Fake) -> None:
    part = fake.part()
    assert part.warnings == ()
    assert part.module is not None
    assert part.module.name == "kdelta_aes.ko"
    assert part.program is not None
    said = subprocess.run([part.program, "--list"], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["user-kflags-encrypt", "user-kflags-decrypt"]
    subprocess.run([part.program], check=True)
    assert fake.part() == part
    assert fake.calls() == 1
    assert fake.part("two").module != part.module
    assert fake.calls() == 2


def test_only_what_lasts_is_kept(fake: Fake) -> None:
    part = fake.part()
    assert part.module is not None
    names = {path.name for path in part.module.parent.iterdir()}
    assert names == {"kdelta_aes.ko", "aes-kflags", "flags.json"}
    flags = json.loads((part.module.parent / "flags.json").read_text())
    assert flags == {
        "compiler": ["gcc"],
        "kept": ["-Os", "-fno-PIE", "-fno-strict-aliasing"],
        "left_out": ["-mcmodel=kernel"],
    }


def test_the_module_does_not_tell_where_it_was_built(fake: Fake) -> None:
    part = fake.part()
    assert part.module is not None
    content = part.module.read_bytes()
    assert b"build-id" not in content
    assert str(part.module.parent.parent).encode() not in content


def test_the_program_has_the_code_of_the_kernels_flags(fake: Fake) -> None:
    small = fake.part("small")
    fake.make(MAKEFILE.replace("-Os", "-O3"))
    fast = fake.part("fast")
    assert small.program is not None
    assert fast.program is not None
    assert disassembly(small.program) != disassembly(fast.program)


def test_what_does_not_compile_is_left_out_and_told(fake: Fake, own_cache: Path) -> None:
    fake.make(MAKEFILE.replace("$(M)/aes.c\n", "$(M)/aes.c -include nonsense.h\n", 1))
    part = fake.part()
    assert (part.module, part.program) == (None, None)
    (why,) = part.warnings
    assert "no module kdelta_aes for 1.0" in why
    assert "error: nonsense.h" in why
    log = own_cache / "logs/kdelta_aes-build.log"
    assert "nonsense.h" in log.read_text()
    fake.make(MAKEFILE)
    assert fake.part().module is not None


def test_a_kernel_without_headers(fake: Fake) -> None:
    part = fake.part(modules=False)
    assert (part.module, part.program) == (None, None)
    (why,) = part.warnings
    assert "without what modules are built against" in why


def test_a_workload_without_a_kernel_side_asks_for_nothing(fake: Fake) -> None:
    syscalls = find_workload("syscalls")
    assert build_kernel_part(syscalls, fake.kernel(), quiet, by=HOST) == KernelPart()
    assert not (fake.build / "calls").exists()


def test_all_workloads_sources_for_the_kernel_are_there() -> None:
    assert AES.kernel is not None
    folder = native_folder() / "kmod" / AES.kernel.module
    assert f"{AES.kernel.module}.o" in (folder / "Kbuild").read_text()
    assert load_workload(AES.folder / "workload.toml") == AES

# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files objects were made from: the fake tree's kernels, and .cmd files as kbuild's are."""

from pathlib import Path

import pytest

from kdelta.kernels.kbuild.built import DEPENDENCIES
from kdelta.kernels.objects.dependencies import (
    Dependencies,
    dependencies_of,
    load_dependencies,
    save_dependencies,
)
from kdelta.kernels.objects.digest import Digest, GeneratedFile, ObjectDigest
from kdelta.spec.errors import LabError
from tests.kernels.trees import fake_tree, kernel

KERNEL = "gcc -nostdinc -D__KERNEL__ -c -o"
NOTHING: frozenset[str] = frozenset()


class Build:
    """A tree and its output folder next to it, as kbuild leaves them."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.out = folder / "src", folder / "out"
        for path in (self.tree, self.out):
            path.mkdir()
        (self.out / "source").symlink_to(self.tree)
        self.objects: dict[str, ObjectDigest] = {}
        self.generated: dict[str, GeneratedFile] = {}

    def file(self, path: str, text: str = "") -> None:
        """A file of either folder."""
        (self.out.parent / path).parent.mkdir(parents=True, exist_ok=True)
        (self.out.parent / path).write_text(text)

    def compiled(self, target: str, source: str, *deps: str, command: str = KERNEL) -> None:
        """A target with a list of dependencies; options stand among those."""
        self.file(f"out/{target}")
        lines = [f"savedcmd_{target} := {command} {target} {source} ; ./tools/objtool {target}"]
        lines += ["", f"source_{target} := {source}", "", f"deps_{target} := \\"]
        lines += [r"    $(wildcard include/config/SMP) \ "[:-1]]
        lines += [f"  {dep} \\" for dep in deps]
        lines += ["", f"{target}: $(deps_{target})", "", f"$(deps_{target}):", ""]
        lines += ["#SYMVER free_task 0x93f23399", ""]
        name = target.rpartition("/")
        self.file(f"out/{name[0]}/.{name[2]}.cmd", "\n".join(lines))

    def made(self, target: str, command: str) -> None:
        """A target of which only the command is known."""
        self.file(f"out/{target}")
        name = target.rpartition("/")
        self.file(f"out/{name[0]}/.{name[2]}.cmd", f"savedcmd_{target} := {command}\n")

    def object(self, path: str, generated: tuple[str, ...] = ()) -> None:
        """Enters an object in the digest."""
        self.objects[path] = ObjectDigest(
            path, "", "", NOTHING, frozenset(generated), False, False, {}, {}, {}
        )

    def dependencies(self, *, boot: bool = True) -> Dependencies:
        return dependencies_of(self.out, Digest(self.objects, self.generated), boot=boot)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path)


def test_sources_headers_and_generated_headers(build: Build) -> None:
    build.file("src/kernel/time/timeconst.bc")
    build.file("out/include/generated/timeconst.h", "#define HZ 250\n")
    build.file("out/include/generated/autoconf.h")
    build.compiled(
        "kernel/fork.o",
        "../src/kernel/fork.c",
        "../src/include/linux/mm.h",
        f"{build.tree}/include/linux/sched.h",
        "include/generated/timeconst.h",
        "include/generated/autoconf.h",
        "/usr/lib/gcc/x86_64-linux-gnu/12/include/stdarg.h",
    )
    build.object("kernel/fork.o")
    found = build.dependencies()
    named = {"kernel/fork.c", "include/linux/mm.h", "include/linux/sched.h"}
    assert found.objects == {"kernel/fork.o": named | {"kernel/time/timeconst.bc"}}
    assert found.generated["include/generated/timeconst.h"] == {"kernel/time/timeconst.bc"}
    assert found.generated["include/generated/autoconf.h"] == NOTHING
    assert (found.unknown, found.tools) == (NOTHING, NOTHING)
    assert found.parsed == {"kernel/time/timeconst.bc"}


def test_a_header_that_is_gone_since_still_counts(build: Build) -> None:
    build.compiled("a.o", "../src/a.c", "../src/include/linux/gone.h")
    build.object("a.o")
    assert build.dependencies().objects["a.o"] == {"a.c", "include/linux/gone.h"}


def test_generated_files_are_followed_to_all_that_made_them(build: Build) -> None:
    """As the vDSO: compiled, linked by a script, made a C file by a program, compiled."""
    build.compiled("vdso/time.o", "../src/vdso/time.c", "../src/lib/vdso.c")
    build.compiled("vdso/vdso.lds", "../src/vdso/vdso.lds.S")
    build.made(
        "vdso/vdso.so",
        f"ld -shared -Wl,-T,vdso/vdso.lds vdso/time.o -o vdso/vdso.so && "
        f"sh {build.tree}/vdso/check.sh 'nm' 'vdso/vdso.so'; if true; then (rm -f x); fi",
    )
    build.file("src/vdso/check.sh")
    build.compiled("vdso/vdso2c", "../src/vdso/vdso2c.c", "../src/vdso/elf.h", command="gcc -o")
    build.made("vdso/image.c", "vdso/vdso2c vdso/vdso.so vdso/image.c")
    build.compiled("vdso/image.o", "vdso/image.c", "../src/vdso.h")
    build.object("vdso/image.o")
    found = build.dependencies()
    of_image = {
        "vdso/time.c", "lib/vdso.c", "vdso/vdso.lds.S", "vdso/check.sh", "vdso/vdso2c.c",
        "vdso/elf.h",
    }  # fmt: skip
    assert found.generated == {"vdso/image.c": of_image}
    assert found.objects == {"vdso/image.o": of_image | {"vdso.h"}}
    assert found.tools == NOTHING, "a program that made known files only is known by them"


def test_offsets_depend_on_what_they_are_offsets_in(build: Build) -> None:
    build.compiled("arch/x86/kernel/asm-offsets.s", "../src/offsets.c", "../src/linux/sched.h")
    build.file("out/include/generated/asm-offsets.h", "#define X 1\n")
    build.compiled("entry.o", "../src/entry.S", "include/generated/asm-offsets.h")
    build.object("entry.o")
    assert build.dependencies().objects["entry.o"] == {"entry.S", "offsets.c", "linux/sched.h"}


def test_system_call_tables_and_scripts_are_named_by_the_command(build: Build) -> None:
    for path in ("scripts/syscalltbl.sh", "arch/x86/entry/syscall_64.tbl"):
        build.file(f"src/{path}")
    header = "arch/x86/include/generated/asm/syscalls_64.h"
    table = f"{build.tree}/arch/x86/entry/syscall_64.tbl"
    build.made(header, f"sh {build.tree}/scripts/syscalltbl.sh --abis common,64 {table} {header}")
    build.compiled("a.o", "../src/a.c", header)
    build.object("a.o")
    made_from = {"scripts/syscalltbl.sh", "arch/x86/entry/syscall_64.tbl"}
    assert build.dependencies().generated[header] == made_from
    assert build.dependencies().parsed == made_from


def test_what_has_no_list_and_is_not_known_is_reported(build: Build) -> None:
    build.file("out/lib/table.h", "int table;\n")
    build.file("out/arch/x86/include/generated/asm/types.h", "#include <asm-generic/types.h>\n")
    deps = ("lib/table.h", "arch/x86/include/generated/asm/types.h", "lib/crc32table.h")
    build.file("out/lib/crc32table.h", "int crc;\n")
    build.compiled("lib/gen_crc32table", "../src/lib/gen_crc32table.c", command="gcc -o")
    build.compiled("lib/a.o", "../src/lib/a.c", *deps)
    build.object("lib/a.o")
    found = build.dependencies()
    assert found.unknown == {"lib/table.h"}
    assert found.generated["lib/crc32table.h"] == {"lib/gen_crc32table.c"}


def test_what_a_source_includes_as_binary_is_in_the_digest_alone(build: Build) -> None:
    build.compiled("rm/code.o", "../src/rm/code.S")
    build.made("rm/real.bin", "objcopy -O binary rm/code.o rm/real.bin")
    build.compiled("rm/piggy.o", "../src/rm/piggy.S")
    build.object("rm/piggy.o", ("rm/real.bin",))
    assert build.dependencies().objects["rm/piggy.o"] == {"rm/piggy.S", "rm/code.S"}


def test_linker_scripts_are_among_the_generated_files(build: Build) -> None:
    script = "arch/x86/kernel/vmlinux.lds"
    build.compiled(script, f"../src/{script}.S", "../src/include/asm-generic/vmlinux.lds.h")
    build.generated[script] = GeneratedFile("1", NOTHING, script)
    found = build.dependencies().generated[script]
    assert found == {f"{script}.S", "include/asm-generic/vmlinux.lds.h"}


def test_programs_that_the_build_runs(build: Build) -> None:
    host = "gcc -O2 -o"
    deps = ("../src/scripts/include/list.h", "/usr/include/stdio.h")
    build.compiled("scripts/kallsyms", "../src/scripts/kallsyms.c", *deps, command=host)
    build.compiled("scripts/mod/empty.o", "../src/scripts/mod/empty.c", "../src/linux/types.h")
    build.compiled("kernel/left.o", "../src/kernel/left.c")
    build.compiled("arch/x86/boot/compressed/misc.o", "../src/misc.c", "../src/linux/zlib.h")
    programs = {"scripts/kallsyms.c", "scripts/include/list.h"}
    assert build.dependencies(boot=False).tools == programs
    assert build.dependencies().tools == programs | {"misc.c", "linux/zlib.h"}


def test_programs_of_tools_name_their_files_from_where_they_are(build: Build) -> None:
    host = "gcc -O2 -o"
    for path in ("tools/objtool/check.c", "tools/lib/rbtree.c", "tools/lib/subcmd/help.c"):
        build.file(f"src/{path}")
    build.file("out/arch/x86/kernel/x")
    build.compiled("tools/objtool/check.o", "check.c", "../src/linux/elf.h", command=host)
    build.compiled("tools/objtool/librbtree.o", "../lib/rbtree.c", command=host)
    build.compiled("tools/objtool/libsubcmd/help.o", "help.c", command=host)
    found = build.dependencies().tools
    folders = {"build", "include", "scripts", "objtool", "lib/subcmd", "arch/x86"}
    assert {path for path in found if path.endswith("/")} == {f"tools/{path}/" for path in folders}
    assert found >= {"tools/lib/rbtree.c", "linux/elf.h"}


def test_they_are_kept_in_a_file(tmp_path: Path) -> None:
    files = frozenset(f"include/linux/{n}.h" for n in range(40))
    found = Dependencies(
        objects={"a.o": files | {"a.c"}, "b.o": frozenset(sorted(files)[::7]), "c.o": NOTHING},
        generated={"bounds.h": frozenset({"bounds.c"})},
        unknown=frozenset({"lib/table.h"}),
        tools=frozenset({"scripts/kallsyms.c", "a.c"}),
        parsed=frozenset({"include/linux/9.h", "x.tbl"}),
    )
    path = tmp_path / DEPENDENCIES
    save_dependencies(found, path)
    assert load_dependencies(path) == found
    for damaged in (b"", path.read_bytes()[:-9], b"no gzip at all"):
        path.write_bytes(damaged)
        with pytest.raises(LabError, match="cannot be used") as caught:
            load_dependencies(path)
        assert "build that kernel again" in caught.value.hint


@pytest.mark.usefixtures("own_cache")
@pytest.mark.slow
def test_a_build_leaves_them_with_its_kernel(tmp_path: Path) -> None:
    _, built = kernel(fake_tree(tmp_path), "+CONFIG_DEBUG_KERNEL=y", "+CONFIG_DEBUG_LIST=y")
    found = load_dependencies(built.path / DEPENDENCIES)
    assert found.objects["kernel/core.o"] > {"kernel/core.c", "include/linux/list.h"}
    assert found.objects["kernel/debug_list.o"] >= {"kernel/debug_list.c"}
    assert not any(path.startswith("/") for files in found.objects.values() for path in files)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Digests of finished builds: a small folder that looks like kbuild's."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.kernels.objects.cmdfiles import parse_cmd, thin_members
from kdelta.kernels.objects.digest import ANY_OPTION, Digest, digest_of
from kdelta.kernels.objects.digest_file import is_current, load_digest, save_digest
from kdelta.kernels.objects.objects import ObjectContent, read_object
from kdelta.spec.errors import LabError

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "ar"))), reason="needs gcc and ar"
)


def cmd(out: Path, target: str, source: str, deps: list[str], command: str = "gcc") -> None:
    path = out / target
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"savedcmd_{target} := {command}", ""]
    if source:
        lines += [f"source_{target} := {source}", "", f"deps_{target} := \\"]
        lines += [f"  {dep} \\" for dep in deps]
    path.with_name(f".{path.name}.cmd").write_text("\n".join([*lines, ""]))


def option(name: str) -> str:
    return f"  $(wildcard include/config/{name})"


class Build:
    """A tree and its output folder, with one archive of objects."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.out = folder / "src", folder / "out"
        self.objects: list[str] = []
        for path in (self.tree / "mm", self.out / "mm", self.out / "include/generated"):
            path.mkdir(parents=True)
        (self.out / "source").symlink_to(self.tree)

    def add(self, path: str, text: str, deps: list[str], suffix: str = ".c") -> None:
        source = self.tree / path.replace(".o", suffix)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        (self.out / path).parent.mkdir(parents=True, exist_ok=True)
        argv = ["gcc", "-c", str(source), "-o", str(self.out / path)]
        subprocess.run(argv, check=True, cwd=self.out)
        cmd(self.out, path, str(source), deps)
        self.objects.append(path)

    def header(self, path: str, text: str) -> None:
        (self.out / path).parent.mkdir(parents=True, exist_ok=True)
        (self.out / path).write_text(text)

    def digest(self) -> Digest:
        argv = ["ar", "cDPrST", "vmlinux.a", *self.objects]
        subprocess.run(argv, check=True, cwd=self.out)
        return digest_of(self.out)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    build = Build(tmp_path)
    build.header("include/generated/bounds.h", "#define N 1\n")
    cmd(build.out, "kernel/bounds.s", "../src/kernel/bounds.c", [option("NUMA")])
    deps = ["include/generated/bounds.h", option("SLUB"), "/usr/include/x.h", option("SMP")]
    build.add("mm/slub.o", "int slab; int alloc(void) { return slab; }\n", deps)
    build.add("lib/asm.o", ".globl go\ngo: ret\n", [option("SMP")], suffix=".S")
    return build


def test_objects_and_what_they_depend_on(build: Build) -> None:
    found = build.digest()
    assert list(found.objects) == ["lib/asm.o", "mm/slub.o"]
    slub = found.objects["mm/slub.o"]
    assert (slub.source, slub.module) == ("mm/slub.c", "")
    assert slub.options == {"CONFIG_SLUB", "CONFIG_SMP"}
    assert slub.generated == {"include/generated/bounds.h"}
    assert (set(slub.functions), set(slub.data)) == ({"alloc"}, {"slab"})
    assert (slub.is_assembler, found.objects["lib/asm.o"].is_assembler) == (False, True)
    bounds = found.generated["include/generated/bounds.h"]
    assert bounds.options == {"CONFIG_NUMA"}
    assert bounds.target == "prepare"
    build.header("include/generated/bounds.h", "#define N 2\n")
    other = build.digest().generated["include/generated/bounds.h"]
    assert (other.sha256 != bounds.sha256, other.options) == (True, bounds.options)


def test_sources_are_followed_through_what_they_are_generated_from(build: Build) -> None:
    """As the vDSO is: objects, linked, copied, made a C file, compiled."""
    out = build.out
    cmd(out, "vdso/time.o", "../src/vdso/time.c", [option("TIME_NS")])
    cmd(out, "vdso/vdso.so", "", [], "ld -o vdso/vdso.so vdso/time.o")
    cmd(out, "vdso/image.c", "", [], "vdso2c vdso/vdso.so vdso/image.c")
    for name in ("vdso/time.o", "vdso/vdso.so", "vdso/image.c"):
        build.header(name, "")
    build.add("vdso/image.o", "", [option("X86_64")])
    (build.tree / "vdso/image.c").unlink()
    cmd(out, "vdso/image.o", "vdso/image.c", [option("X86_64")])
    found = build.digest()
    image = found.objects["vdso/image.o"]
    assert image.source == "vdso/image.c"
    assert image.generated == {"vdso/image.c"}
    assert image.options == {"CONFIG_X86_64"}
    assert found.generated["vdso/image.c"].options == {"CONFIG_TIME_NS"}
    assert found.generated["vdso/image.c"].target == "vdso/image.c"


def test_included_binaries_are_followed(build: Build) -> None:
    build.header("rm/real.bin", "")
    cmd(build.out, "rm/code.o", "../src/rm/code.S", [option("REALMODE")])
    build.header("rm/code.o", "")
    cmd(build.out, "rm/real.bin", "", [], "objcopy rm/code.o rm/real.bin")
    text = '.incbin "rm/real.bin"\n.incbin "kernel/config_data.gz"\n'
    build.header("kernel/config_data.gz", "packed")
    build.add("rm/piggy.o", text, [], suffix=".S")
    found = build.digest()
    assert found.objects["rm/piggy.o"].generated == {"rm/real.bin"}
    assert found.generated["rm/real.bin"].options == {"CONFIG_REALMODE"}


def test_generated_files_of_known_and_of_unknown_making(build: Build) -> None:
    build.header("include/generated/timeconst.h", "#define HZ 250\n")
    build.header("arch/x86/include/generated/asm/types.h", "#include <asm-generic/types.h>\n")
    build.header("lib/table.h", "int table;\n")
    deps = ["include/generated/timeconst.h", "arch/x86/include/generated/asm/types.h"]
    build.add("lib/a.o", "", [*deps, "lib/table.h", "lib/absent.h"])
    found = build.digest()
    assert found.objects["lib/a.o"].generated == {"include/generated/timeconst.h", "lib/table.h"}
    assert found.generated["include/generated/timeconst.h"].options == {"CONFIG_HZ"}
    assert found.generated["lib/table.h"].options == {ANY_OPTION}


def test_linker_script_is_among_the_generated_files(build: Build) -> None:
    script = "arch/x86/kernel/vmlinux.lds"
    build.header(script, "SECTIONS\n")
    cmd(build.out, script, "../src/arch/x86/kernel/vmlinux.lds.S", [option("KPROBES")])
    assert build.digest().generated[script].options == {"CONFIG_KPROBES"}


def test_modules_objects_name_their_module(build: Build) -> None:
    build.add("drivers/a.o", "int probe(void) { return 1; }\n", [option("DRIVER")])
    build.objects.remove("drivers/a.o")
    (build.out / "modules.order").write_text("drivers/my-driver.o\n")
    (build.out / "drivers/my-driver.mod").write_text("drivers/a.o\n")
    assert build.digest().objects["drivers/a.o"].module == "my_driver"


def test_some_objects_only_also_ones_that_are_not_linked(build: Build) -> None:
    build.add("mm/new.o", "int new(void) { return 1; }\n", [option("NEW")])
    build.objects.remove("mm/new.o")
    assert "mm/new.o" not in build.digest().objects
    found = digest_of(build.out, only=["mm/new.o", "mm/slub.o", "mm/absent.o"])
    assert set(found.objects) == {"mm/new.o", "mm/slub.o"}
    assert found.objects["mm/new.o"].options == {"CONFIG_NEW"}


def test_only_what_changed_is_read_again(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.digest()
    read: list[bytes] = []

    def noted(content: bytes) -> ObjectContent | None:
        read.append(content)
        return read_object(content)

    monkeypatch.setattr("kdelta.kernels.objects.digest.read_object", noted)
    assert build.digest() == first
    assert not read
    build.objects.remove("mm/slub.o")
    build.add("mm/slub.o", "int slab; int alloc(void) { return slab + 1; }\n", [option("SLUB")])
    second = build.digest()
    assert len(read) == 1
    assert second.objects["lib/asm.o"] == first.objects["lib/asm.o"]
    pieces = [found.objects["mm/slub.o"].functions["alloc"] for found in (first, second)]
    assert pieces[0] != pieces[1]


def test_object_that_cannot_be_read_is_kept_by_its_bytes(build: Build) -> None:
    build.digest()
    (build.out / "mm/slub.o").write_bytes(b"BC\xc0\xde one")
    first = digest_of(build.out).objects["mm/slub.o"]
    (build.out / "mm/slub.o").write_bytes(b"BC\xc0\xde two")
    second = digest_of(build.out).objects["mm/slub.o"]
    assert (first.is_opaque, second.is_opaque) == (True, True)
    assert first.collected != second.collected


def test_saved_and_loaded_is_the_same(build: Build, tmp_path: Path) -> None:
    found = build.digest()
    save_digest(found, tmp_path / "digest")
    assert load_digest(tmp_path / "digest") == found


def test_damaged_digests_and_folders_are_lab_errors(build: Build, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no finished build"):
        digest_of(build.out)
    path = tmp_path / "digest"
    save_digest(build.digest(), path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-9] + b"123456789"):
        path.write_bytes(damaged)
        with pytest.raises(LabError, match="damaged"):
            load_digest(path)
    with pytest.raises(LabError, match="reading"):
        load_digest(tmp_path / "absent")


def test_a_digest_by_other_rules_is_told_from_a_damaged_one(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "digest"
    assert not is_current(path)
    save_digest(build.digest(), path)
    assert is_current(path)
    path.write_bytes(path.read_bytes().replace(b"kdelta digest ", b"kdelta digest f", 1))
    assert not is_current(path)
    with pytest.raises(LabError, match="another version"):
        load_digest(path)


def test_cmd_file_of_an_older_kbuild() -> None:
    found = parse_cmd(b"cmd_mm/a.o := gcc -c\n\nsource_mm/a.o := mm/a.c\n\ndeps_mm/a.o := \\\n")
    assert (found.command, found.source, found.options) == ("gcc -c", "mm/a.c", frozenset())


def test_members_of_thin_archives_with_long_names(tmp_path: Path) -> None:
    names = ["a.o", "a-rather-long-name-of-an-object.o", "b/c.o", "b/another-rather-long-name.o"]
    (tmp_path / "b").mkdir()
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    subprocess.run(["ar", "cDPrST", "inner.a", *names[1:]], check=True, cwd=tmp_path)
    subprocess.run(["ar", "cDPrST", "whole.a", "a.o", "inner.a"], check=True, cwd=tmp_path)
    assert thin_members(tmp_path / "whole.a") == names
    subprocess.run(["ar", "cDr", "thick.a", "a.o"], check=True, cwd=tmp_path)
    assert thin_members(tmp_path / "thick.a") is None

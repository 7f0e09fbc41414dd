# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of workloads: those that come with kdelta, and what is reported of a wrong one."""

from pathlib import Path

import pytest

from kdelta.host.gcc import Compiler
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.phase import PhaseRule
from kdelta.workloads.catalog import (
    KernelSide,
    UserlandWanted,
    build_workload,
    find_workload,
    list_workloads,
    load_workload,
)

GOOD = """
name = "mine"
summary = "a test"
program = "/workloads/mine"
sources = ["*.c"]
timeout_seconds = 5

[[operation]]
name = "getppid"
summary = "asks who the parent is"
"""

KERNEL = """
[kernel]
module = "mine"
sources = ["main.c"]
flags_of = "main.c"

[[op"""

TREE = """
[userland]
packages = ["gcc"]
programs = ["/usr/bin/gcc"]

[kernel_tree]
source = "deb-src:linux-source-6.12"
config = "main.c"
place = "/usr/src/linux"
compiler = "/usr/bin/gcc"
make = ["ARCH=x86_64"]
source_paths = ["lib"]
guest_paths = ["lib/Makefile"]
objects = ["lib/ctype.o"]

[[op"""


def write(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    path = folder / "workload.toml"
    path.write_text(text)
    return path


def test_all_that_come_with_kdelta_load() -> None:
    assert "syscalls" in list_workloads()
    for name, workload in list_workloads().items():
        assert name == workload.name
        assert workload.summary
        assert all(operation.summary for operation in workload.operations)


@pytest.mark.slow
def test_all_that_come_with_kdelta_compile_without_a_warning(own_cache: Path) -> None:
    assert own_cache
    for workload in list_workloads().values():
        assert build_workload(workload, by=Compiler("x86_64"), strict=True).is_file()


def test_a_good_one(tmp_path: Path) -> None:
    workload = load_workload(write(tmp_path, GOOD))
    assert workload.sources == ("main.c",)
    assert (workload.image, workload.timeout_seconds) == ("small", 5)
    assert workload.operation("getppid").summary == "asks who the parent is"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('summary = "a test"\n', "", "missing required field `summary`"),
        ("timeout_seconds = 5", 'timeout_seconds = "5"', r"\$\.timeout_seconds"),
        ("timeout_seconds = 5", "timeout = 5", "unknown field `timeout`"),
        ('["*.c"]', "[1]", r"\$\.sources\[0\]"),
        ('summary = "asks', 'sumary = "asks', r"\$\.operation\[0\]"),
        ('name = "mine"', 'name = "other"', "`name` must be that of the folder"),
        ('"/workloads/mine"', '"mine"', "`program` must be an absolute path"),
        ('["*.c"]', '["*.cc"]', "`sources` match no file"),
        ("[[operation]]", "[[operation", r"workload\.toml"),
        ('name = "getppid"', 'name = "x"\nbytes_per_iteration = 0', "must be positive"),
        ("[[op", '[kernel]\nmodule = "m"\n[[op', r"missing required field `sources`.*\$\.kernel"),
        ("timeout_seconds = 5", 'image = "large"', "`image` must be small or job"),
        ("[[op", '[userland]\nprograms = ["/bin/x"]\n[[op', r"field `packages`.*\$\.userland"),
        ("[[op", '[[phase]]\nname = "p"\ncalls = []\n[[op', "phase 'p' begins nowhere"),
        ("[[op", '[[phase]]\nname = "p"\n[[op', r"field `calls`.*\$\.phase"),
        ("[[op", KERNEL.replace('["main.c"]', '["none.c"]'), r"`kernel\.sources` are not all"),
        ("[[op", KERNEL.replace('of = "main.c"', 'of = "x.c"'), "is none of its sources"),
        ("[[op", TREE.replace('config = "main.c"', 'config = "x"'), "tree.config` is not there"),
        ("[[op", TREE.replace('programs = ["/usr/bin/gcc"]', ""), "tree.compiler` is no program"),
        ("[[op", TREE.replace('"lib/ctype.o"', ""), "tree.objects` are none"),
        ("[[op", TREE.replace("place =", "palce ="), "unknown field `palce`"),
    ],
)
def test_a_wrong_one_names_the_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert GOOD.count(old) == 1
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(LabError, match=said) as raised:
        load_workload(path)
    assert str(path) in raised.value.message


def test_one_with_a_kernel_side(tmp_path: Path) -> None:
    text = GOOD.replace("[[op", KERNEL) + "bytes_per_iteration = 4096\n"
    workload = load_workload(write(tmp_path, text))
    assert workload.kernel == KernelSide("mine", ("main.c",), "main.c")
    assert workload.operation("getppid").bytes_per_iteration == 4096
    plain = load_workload(write(tmp_path, GOOD))
    assert (plain.kernel, plain.operation("getppid").bytes_per_iteration) == (None, None)


def test_one_with_programs_and_phases(tmp_path: Path) -> None:
    more = """
needs = ["VETH"]
image = "job"

[userland]
packages = ["nftables"]
programs = ["/usr/sbin/nft"]
files = ["/usr/lib/*/x.so"]

[[phase]]
name = "router"
calls = ["receive"]
through = ["ip_forward"]

[[operation]]"""
    workload = load_workload(write(tmp_path, GOOD.replace("\n[[operation]]", more)))
    assert (workload.needs, workload.image) == (("VETH",), "job")
    wanted = UserlandWanted(("nftables",), ("/usr/sbin/nft",), ("/usr/lib/*/x.so",))
    assert workload.userland == wanted
    assert workload.phases == (PhaseRule("router", ("receive",), ("ip_forward",)),)
    plain = load_workload(write(tmp_path, GOOD))
    assert (plain.needs, plain.userland, plain.phases) == ((), None, ())


def test_one_that_compiles_a_kernel(tmp_path: Path) -> None:
    more = 'memory_mib = 2048\narchitectures = ["x86_64"]\n'
    workload = load_workload(write(tmp_path, GOOD.replace("[[op", more + TREE)))
    assert (workload.memory_mib, workload.architectures) == (2048, ("x86_64",))
    assert workload.kernel_tree
    assert workload.kernel_tree.objects == ("lib/ctype.o",)
    plain = load_workload(write(tmp_path, GOOD))
    assert (plain.memory_mib, plain.architectures, plain.kernel_tree) == (0, (), None)


def test_one_that_is_like_another(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD).with_name("workload-other.toml")
    path.write_text('like = "workload.toml"\nname = "mine-other"\nsummary = "more"\n')
    first, other = load_workload(write(tmp_path, GOOD)), load_workload(path)
    assert (other.name, other.summary) == ("mine-other", "more")
    assert (other.operations, other.sources) == (first.operations, first.sources)
    path.write_text('like = "none.toml"\nname = "mine-other"\n')
    with pytest.raises(LabError, match=r"none\.toml"):
        load_workload(path)
    path.write_text('like = "workload.toml"\n')
    with pytest.raises(LabError, match="`name` must be that of the folder"):
        load_workload(path)


def test_kbuild_has_30_objects_of_lib_and_kernel() -> None:
    tree = find_workload("kbuild").kernel_tree
    assert tree
    assert len(set(tree.objects)) == 30
    assert {name.partition("/")[0] for name in tree.objects} == {"kernel", "lib"}


def test_an_operation_twice(tmp_path: Path) -> None:
    operation = GOOD[GOOD.index("[[operation]]") :]
    with pytest.raises(LabError, match="name twice"):
        load_workload(write(tmp_path, GOOD + operation))


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UserError, match="no workload is called 'syscall'") as raised:
        find_workload("syscall")
    assert "syscalls" in raised.value.hint
    with pytest.raises(UserError, match="no operation of syscalls") as raised:
        find_workload("syscalls").operation("getpid")
    assert "getppid" in raised.value.hint


def test_operations_that_are_run_on_request_only(tmp_path: Path) -> None:
    more = '\n[[operation]]\nname = "long"\nsummary = "takes long"\non_request = true\n'
    workload = load_workload(write(tmp_path, GOOD + more))
    assert workload.wanted(()) == ("getppid",)
    assert workload.wanted(("long",)) == ("long",)
    assert load_workload(write(tmp_path, GOOD)).wanted(()) == ()
    assert find_workload("kbuild").wanted(()) == ("make-j1", "make-j4")

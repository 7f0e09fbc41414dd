# SPDX-License-Identifier: GPL-2.0-or-later
"""Relinked kernels of the fake tree: which order they have, what they share, what is refused."""

import subprocess
from pathlib import Path

import pytest

from kdelta.kernels.kbuild.built import DIGEST, LOG, BuiltKernel
from kdelta.kernels.kbuild.linked_map import Linked
from kdelta.kernels.objects.digest_file import load_digest
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from tests.conftest import FakeProgram
from tests.kernels.trees import compiled, failure, fake_tree, kernel, made

NAMES = [f"work_{number}" for number in range(12)]
VARIABLES = [f"held_{number}" for number in range(12)]
COLD = ["complain", "give_up"]
MORE = """/* SPDX-License-Identifier: GPL-2.0-or-later */
extern int seen;
int seen;
{}
__attribute__((cold)) void complain(int it) {{ seen = it; }}
__attribute__((cold)) void give_up(int it) {{ seen = it + 1; }}
__attribute__((hot)) void busy(void) {{ seen = 7; }}
__attribute__((section(".noinstr.text"))) void quiet(void) {{ seen = 8; }}
__attribute__((section(".init.text"))) void once(void) {{ seen = 9; }}
void startup(void) {{ seen = 10; }}
"""

pytestmark = [pytest.mark.build, pytest.mark.slow, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The fake tree with more functions, some of them cold, hot, or of sections of their own."""
    tree = fake_tree(tmp_path)
    bodies = (f"void {name}(void) {{ seen = {n}; }}" for n, name in enumerate(NAMES))
    (tree / "kernel/work.c").write_text(MORE.format("\n".join(bodies)))
    with (tree / "kernel/Makefile").open("a") as file:
        file.write("obj-y += work.o\n")
    return tree


def order_file(tree: Path, *names: str) -> str:
    path = tree.parent / f"order-{len(names)}-{names[0]}.txt"
    path.write_text("".join(f"{name}\n" for name in names))
    return f"+order:{path}"


def functions(built: BuiltKernel) -> list[str]:
    """The functions of its image, by address."""
    words = ["nm", "-n", str(built.path / built.image)]
    rows = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return [row.split()[2] for row in rows if row.split()[1] in "tT"]


def of(built: BuiltKernel, names: list[str]) -> list[str]:
    return [name for name in functions(built) if name in names]


def linked(built: BuiltKernel) -> Linked:
    assert built.linked is not None
    return built.linked


@pytest.mark.slow
def test_sections_leave_the_order_as_it_is(tree: Path) -> None:
    plain, built = kernel(tree)
    assert built.linked is None
    base, relinked = kernel(tree, "+sections")
    assert base.identity != plain.identity
    assert of(relinked, NAMES) == NAMES
    assert linked(relinked).functions >= len(NAMES)
    assert linked(relinked).together > 0.5


def test_an_order_is_followed(tree: Path) -> None:
    wanted = ["work_9", "work_2", "work_11", "lock", "work_0"]
    _, built = kernel(tree, order_file(tree, *wanted))
    found = functions(built)
    start = found.index("busy") + 1
    assert found[start : start + len(wanted)] == wanted
    assert linked(built).ordered == len(wanted)
    assert (linked(built).displaced, linked(built).unknown) == ((), ())
    rest = [name for name in NAMES if name not in wanted]
    assert of(built, rest) == rest, "the others stay as they were"


def test_what_an_order_cannot_move_is_told(tree: Path) -> None:
    words = ["give_up", "no_such", "quiet", "work_3", "once", "complain", "neither"]
    _, built = kernel(tree, order_file(tree, *words))
    assert linked(built).unknown == ("no_such", "neither")
    assert linked(built).fixed == ("quiet", "once")
    assert linked(built).ordered == 3
    assert of(built, COLD) == ["give_up", "complain"]
    lines = "\n".join(linked(built).lines)
    assert "2 are no functions of this kernel: no_such, neither" in lines
    assert "2 are of code that a relink does not move: quiet, once" in lines


def test_a_seed_shuffles_and_another_one_otherwise(tree: Path) -> None:
    _, base = kernel(tree, "+sections")
    first, one = kernel(tree, "+shuffle:1")
    second, two = kernel(tree, "+shuffle:2")
    assert first.identity != second.identity
    orders = {tuple(of(built, NAMES)) for built in (base, one, two)}
    assert len(orders) == 3
    assert sorted(functions(one)) == sorted(functions(base))
    assert linked(one).seed == 1
    assert linked(one).together < linked(base).together


@pytest.mark.slow
def test_a_seed_gives_the_same_kernel_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = kernel(tree, "+shuffle:5")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "other"))
    kernel(tree, "+shuffle:6")
    again, built = kernel(tree, "+shuffle:5")
    assert again.identity == first.identity
    assert compiled(built) == []


@pytest.mark.slow
@pytest.mark.parametrize("change", ["+sections", "+shuffle:3"])
def test_sections_stay_where_they_belong(tree: Path, change: str) -> None:
    _, built = kernel(tree, change)
    found = functions(built)
    marks = ["busy", "__noinstr_text_start", "quiet", "__noinstr_text_end", "_etext"]
    marks += ["_sinittext", "once", "_einittext"]
    assert of(built, marks) == marks
    main = {*NAMES, "startup", "lock"}
    cold = {found.index(name) for name in COLD}
    hot = found.index("busy")
    assert all(hot < found.index(name) < min(cold) for name in main)
    assert max(cold) < found.index("__noinstr_text_start")


@pytest.mark.slow
def test_one_order_after_another_is_only_linked(tree: Path) -> None:
    _, base = kernel(tree, "+sections")
    assert "kernel/work.o" in compiled(base)
    _, shuffled = kernel(tree, "+shuffle:1")
    _, ordered = kernel(tree, order_file(tree, "work_4"))
    _, again = kernel(tree, order_file(tree, "work_5"))
    for built in (shuffled, ordered, again):
        assert compiled(built) == []
        assert linked(built).objects == linked(base).objects
        assert "  LD      vmlinux" in (built.path / LOG).read_text()
    assert functions(ordered) != functions(again)


def test_a_relink_asks_for_no_config_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("+CONFIG_DEBUG_KERNEL=y", "+CONFIG_DEBUG_LIST=y")
    _, base = kernel(tree, *words, "+sections")
    kernel(tree, "+sections")
    monkeypatch.setattr("kdelta.kernels.kbuild.build.configure", None)
    monkeypatch.setattr("kdelta.kernels.kbuild.build.digest_of", None)
    found, built = kernel(tree, *words, "+shuffle:1")
    assert (found.release, built.asked, built.base) == ("6.12.99", base.asked, base.base)
    assert Path(found.config or "").read_text() == (base.path / base.config).read_text()
    assert "list_valid" in functions(built)
    assert load_digest(built.path / DIGEST) == load_digest(base.path / DIGEST)
    assert linked(built).together < linked(base).together


@pytest.mark.slow
def test_without_the_kernel_before_a_relink_is_made_from_scratch(tree: Path) -> None:
    _, base = kernel(tree, "+sections")
    (base.path / base.image).unlink()
    found, _ = kernel(tree, "+shuffle:1")
    other, _ = kernel(tree, "+shuffle:2")
    assert found.identity != other.identity


@pytest.mark.slow
def test_plain_and_relinked_kernels_do_not_disturb_each_other(tree: Path) -> None:
    first, _ = kernel(tree)
    kernel(tree, "+shuffle:1")
    _, other = kernel(tree, "+CONFIG_OLD_DRIVER=y")
    assert compiled(other) == ["drivers/old.o"]
    _, built = kernel(tree, "+CONFIG_OLD_DRIVER=y", "+shuffle:1")
    assert compiled(built) == ["drivers/old.o"]
    folders = sorted(path.name for path in Path(built.folder).glob("out-*"))
    assert folders == ["out-x86", "out-x86-sections"]
    Path(first.image).unlink()
    assert kernel(tree)[0].identity == first.identity


def variables(built: BuiltKernel) -> list[str]:
    """Those of `VARIABLES` in its image, by address, with what marks the others' place."""
    words = ["nm", "-n", str(built.path / built.image)]
    rows = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for row in rows if (name := row.split()[2]) in (*VARIABLES, "_once", "warned")]


def test_variables_are_shuffled_and_functions_are_not(tree: Path) -> None:
    held = [f"int {name} = {n + 1};\n" for n, name in enumerate(VARIABLES)]
    once = '__attribute__((section(".data.once"))) int warned = 1;\n'
    (tree / "kernel/held.c").write_text("".join([*held, once]))
    with (tree / "kernel/Makefile").open("a") as file:
        file.write("obj-y += held.o\n")
    _, base = kernel(tree, "+sections")
    _, one = kernel(tree, "+dshuffle:1")
    _, two = kernel(tree, "+dshuffle:2")
    orders = [variables(built) for built in (base, one, two)]
    assert orders[0][:-2] in (VARIABLES, VARIABLES[::-1]), "compilers may begin with the last"
    assert len({tuple(order) for order in orders}) == 3
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    assert [order[-2:] for order in orders] == [["_once", "warned"]] * 3
    assert functions(one) == functions(base)
    assert compiled(two) == []
    assert linked(one).data_seed == 1
    assert linked(one).variables >= len(VARIABLES)
    assert "variables shuffled by seed 1" in "\n".join(linked(one).lines)
    assert linked(base).data_seed is None


def test_an_order_and_a_seed_together(tree: Path) -> None:
    _, built = kernel(tree, "+shuffle:1", order_file(tree, "work_9", "work_2"))
    found = functions(built)
    assert found[found.index("busy") + 1 :][:2] == ["work_9", "work_2"]
    rest = [name for name in NAMES if name not in ("work_9", "work_2")]
    assert of(built, rest) != rest


def test_of_two_seeds_the_last_counts(tree: Path) -> None:
    _, built = kernel(tree, "+shuffle:1", "+shuffle:2")
    assert linked(built).seed == 2
    assert kernel(tree, "+shuffle:2")[1].key == built.key


def test_functions_are_aligned_but_cold_ones(tree: Path) -> None:
    _, built = kernel(tree, "+align:64")
    words = ["nm", str(built.path / built.image)]
    rows = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    addresses = {row.split()[2]: int(row.split()[0], 16) for row in rows}
    assert [name for name in NAMES if addresses[name] % 64] == []
    aligned, of_all = linked(built).aligned["main"]
    assert aligned == of_all >= len(NAMES)
    assert linked(built).aligned["unlikely"][1] == len(COLD)
    assert "are aligned to 64" in "\n".join(linked(built).lines)
    assert linked(built).objects != linked(kernel(tree, "+sections")[1]).objects
    assert "out-x86-sections-align64" in {p.name for p in Path(built.folder).iterdir()}


def test_where_the_compiler_does_not_align_that_is_told(tree: Path) -> None:
    _, built = kernel(tree, "+align:64", "+CONFIG_OPTIMIZE_FOR_SIZE=y")
    aligned, of_all = linked(built).aligned["main"]
    assert aligned < of_all


def test_the_order_counts_and_not_the_name_of_its_file(tree: Path) -> None:
    first, _ = kernel(tree, order_file(tree, "work_4"))
    path = tree.parent / "other.txt"
    path.write_text("# the same\nwork_4\n\n")
    second, _ = kernel(tree, f"+order:{path}")
    assert (second.built, second.identity) == (first.built, first.identity)
    path.write_text("work_5\n")
    assert kernel(tree, f"+order:{path}")[0].identity != first.identity


def test_the_users_tree_is_not_changed(tree: Path) -> None:
    before = {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    kernel(tree, "+shuffle:1")
    assert {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()} == before


def test_a_tree_whose_script_cannot_be_changed(tree: Path) -> None:
    script = tree / "include/asm-generic/vmlinux.lds.h"
    script.write_text(script.read_text().replace("TEXT_MAIN", ".text"))
    found = failure(tree, "+shuffle:1")
    assert found.status is RunStatus.BUILD_FAILED
    assert "TEXT_MAIN" in found.detail
    script.unlink()
    assert "no include/asm-generic/vmlinux.lds.h" in failure(tree, "+sections").detail


def test_a_linker_that_takes_no_notice(tree: Path, fake_program: FakeProgram) -> None:
    kept = 'case $1 in --shuffle*|--symbol*|--no-warn*) ;; *) set -- "$@" "$1";; esac; shift'
    linker = fake_program(
        "ld.lld-lazy",
        f'#!/bin/bash\nfor one in "$@"; do {kept}; done\nexec ld.lld "$@"\n',
    )
    many = "\n".join(f"void more_{n}(void) {{ seen = {n}; }}" for n in range(120))
    with (tree / "kernel/work.c").open("a") as file:
        file.write(many)
    found = failure(tree, "+shuffle:1", f"+LD={linker}")
    assert found.status is RunStatus.BUILD_FAILED
    assert "did not shuffle" in found.detail
    backwards = [f"more_{n}" for n in reversed(range(120))]
    found = failure(tree, order_file(tree, *backwards), f"+LD={linker}")
    assert "did not follow the order" in found.detail


def test_a_script_that_mixes_cold_functions_with_others(tree: Path) -> None:
    arch = tree / "arch/x86/kernel/vmlinux.lds.S"
    early = "_stext = .; *(.text.unlikely.give_up)"
    arch.write_text(arch.read_text().replace("_stext = .;", early))
    found = failure(tree, "+sections")
    assert found.status is RunStatus.BUILD_FAILED
    assert "mixed: complain of .text.unlikely.complain" in found.detail


def test_a_script_that_puts_functions_elsewhere(tree: Path) -> None:
    script = tree / "include/asm-generic/vmlinux.lds.h"
    script.write_text(script.read_text().replace("*(.noinstr.text)", "*(.noinstr.text .text.wor*)"))
    text = script.read_text()
    script.write_text(text.replace("\t\t*(TEXT_MAIN", "\t\t*(.noinstr.texts) *(TEXT_MAIN"))
    arch = tree / "arch/x86/kernel/vmlinux.lds.S"
    arch.write_text(arch.read_text().replace("_stext = .;", "_stext = .; *(.noinstr.text)"))
    found = failure(tree, "+sections")
    assert "quiet of .noinstr.text lies at" in found.detail


def test_another_linker_is_refused(tree: Path) -> None:
    with pytest.raises(UserError, match=r"LD=ld\.bfd was given"):
        made(tree, "+shuffle:1", "+LD=ld.bfd")


def test_without_lld_nothing_is_relinked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.kernels.kbuild.relink.LINKER", "ld.no-lld")
    with pytest.raises(LabError, match=r"ld\.no-lld is missing"):
        made(tree, "+shuffle:1")


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"\xff\xfe", "not text"), (None, "be read")]
)
def test_an_order_file_that_is_none(tree: Path, content: bytes | None, message: str) -> None:
    path = tree.parent / "order.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        made(tree, f"+order:{path}")


def test_a_relinked_kernel_takes_no_digest_by_older_rules(tree: Path) -> None:
    _, base = kernel(tree, "+sections")
    kept = base.path / DIGEST
    kept.write_bytes(b"by older rules" + kept.read_bytes())
    _, relinked = kernel(tree, "+shuffle:1")
    assert relinked.identity != base.identity
    assert load_digest(relinked.path / DIGEST).objects

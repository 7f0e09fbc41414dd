# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU's file that has only what differs from another CPU."""

from pathlib import Path

import msgspec
import pytest

from kdelta.cpus import list_cpus
from kdelta.cpus.catalog import load_file
from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.model import CPU, MissPrice, Price
from kdelta.spec.errors import UserError

HEAD = 'name = "mine"\ntitle = "my own"\nlike = "zen3"\n'
ZEN3 = list_cpus()["zen3"]


def mine(text: str = "", like: str = "zen3") -> CPU:
    return decode_cpu((HEAD.replace("zen3", like) + text).encode())


def renamed(cpu: CPU) -> CPU:
    """What has nothing of its own but a name."""
    own = ("core", "transfer")
    sources = {field: text for field, text in cpu.sources.items() if field not in own}
    return msgspec.structs.replace(
        cpu, name="mine", title="my own", core=None, transfer=None, sources=sources
    )


@pytest.mark.parametrize("cpu", list_cpus().values(), ids=lambda cpu: cpu.name)
def test_like_without_differences_is_the_other_but_for_its_identity(cpu: CPU) -> None:
    assert mine(like=cpu.name) == renamed(cpu)
    assert list(mine(like=cpu.name).sources) == list(renamed(cpu).sources)


def test_field_of_a_table_replaces_the_others() -> None:
    cpu = mine('[l2]\nbytes = 1048576\nsets = 2048\nsource = "assumed: twice as large"\n')
    sources = renamed(ZEN3).sources | {"l2": "assumed: twice as large"}
    l2 = msgspec.structs.replace(ZEN3.l2, sets=2 * ZEN3.l2.sets)
    assert cpu == msgspec.structs.replace(renamed(ZEN3), l2=l2, sources=sources)


def test_price_of_a_miss_replaces_the_others() -> None:
    cpu = mine('[misses.l2]\ncycles = [1, 2]\nsource = "assumed: so"\n')
    assert cpu.misses == ZEN3.misses | {"l2": MissPrice(1, 2, False)}
    assert list(cpu.misses) == list(ZEN3.misses)


def test_document_replaces_the_one_of_the_same_key() -> None:
    cpu = mine('[sources]\ncpuid = "another dump"\n')
    changed = {field for field, text in cpu.sources.items() if text != ZEN3.sources[field]}
    assert changed
    assert all(cpu.sources[field].startswith("another dump") for field in changed)


def test_documents_of_the_other_need_no_use() -> None:
    """All that neoverse-n1 has of that page is what its front end is."""
    assert "WikiChip" in list_cpus()["neoverse-n1"].sources["frontend"]
    cpu = mine('frontend_source = "assumed: so"\n', like="neoverse-n1")
    assert not any("WikiChip, Cortex-A76" in text for text in cpu.sources.values())


def test_special_replaces_the_price_of_its_kinds() -> None:
    cpu = mine('[[special]]\nkinds = ["rdpmc", "mine"]\ncycles = [1, 2]\nsource = "assumed: so"\n')
    assert cpu.specials == ZEN3.specials | {"rdpmc": Price(1, 2), "mine": Price(1, 2)}
    assert cpu.sources["special.rdtsc"] == ZEN3.sources["special.rdtsc"]
    assert cpu.sources["special.rdpmc"] == "assumed: so"


def test_special_of_the_same_kinds_keeps_its_place() -> None:
    cpu = mine('[[special]]\nkinds = ["lfence"]\ncycles = [1, 2]\nsource = "assumed: so"\n')
    assert list(cpu.specials) == list(ZEN3.specials)
    assert cpu.specials["lfence"] == Price(1, 2)


def test_paths_are_those_that_are_named() -> None:
    first, *_, last = ZEN3.paths
    cpu = mine(
        f'[[path]]\nname = "{last.name}"\n'
        '[[path]]\nname = "new"\nsource = "cpuid"\notherwise = "old"\nflags = ["new"]\n'
        f'[[path]]\nname = "{first.name}"\notherwise = "slower"\nsource = "assumed: so"\n'
    )
    assert [path.name for path in cpu.paths] == [last.name, "new", first.name]
    assert cpu.paths[0] == last
    changed = msgspec.structs.replace(first, otherwise="slower", source="assumed: so")
    assert cpu.paths[2] == changed


def test_table_that_is_lacking_is_not_taken_from_the_other() -> None:
    sources = {
        field: text for field, text in renamed(ZEN3).sources.items() if field != "itlb_small"
    }
    cpu = mine('lacks = ["itlb_small"]\n')
    assert cpu == msgspec.structs.replace(renamed(ZEN3), itlb_small=None, sources=sources)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('lacks = ["l3"]', "`lacks` has 'l3': zen3 has no such table"),
        ('lacks = ["name"]', "`lacks` has 'name': the file has it"),
        ('lacks = ["arch"]', "`lacks` has 'arch': zen3 has no such table"),
        ('lacks = ["l2"]\nl2.sets = 2048', "`lacks` has 'l2': the file has it"),
        ('lacks = ["stlb"]', r"`misses\.stlb` is the price of something that is not there"),
        ('lacks = ["l2"]', "missing required field `l2`"),
        ('lacks = "l2"', r"Expected `array`, got `str` - at `\$\.lacks`"),
        ("l2.sets = 2048", "`l2` has another `sets`, and no `source` of its own"),
        ("l2.color = 1", "`l2` has another `color`, and no `source`"),
        ('l2.color = 1\nl2.source = "cpuid"', r"unknown field `color` - at `\$\.l2`"),
        ("misses.l2.cycles = [1, 2]", r"`misses\.l2` has another `cycles`, and no `source`"),
        ('frontend = "coupled"', "`frontend` is given, and `frontend_source` is not"),
        ("l2 = 1", r"Expected `object`, got `int` - at `\$\.l2`"),
        ("misses = 1", r"\$\.misses"),
        ("special = [{}]", r"missing required field `kinds` - at `\$\.special\[0\]`"),
        ("special = 1", r"\$\.special"),
        ("path = [{}]", r"missing required field `name` - at `\$\.path\[0\]`"),
        ('path = [{ name = "x" }]', "`path` 'x' has only a name, which the other CPU lacks"),
        ('sources.unused = "x"', "`sources.unused` is the source of nothing"),
        (
            '[[special]]\nkinds = ["a", "a"]\ncycles = [1, 2]\nsource = "assumed: x"',
            "`special` has 'a' twice",
        ),
        ("colour = 1", "unknown field `colour`"),
    ],
)
def test_wrong_difference_names_file_and_field(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + text)
    with pytest.raises(UserError, match=said) as raised:
        load_file(path)
    assert str(path) in raised.value.message


@pytest.mark.parametrize(
    ("like", "said"),
    [
        ('"zen9"', "`like` is 'zen9', which is none of cortex-a53, "),
        ('"../cpus/zen3"', "`like` is '../cpus/zen3', which"),
        ('"host"', "`like` is 'host', which"),
        ("1", r"Expected `str`, got `int` - at `\$\.like`"),
    ],
)
def test_like_no_cpu_of_kdeltas_is_refused(like: str, said: str) -> None:
    with pytest.raises(CPUFileError, match=said):
        decode_cpu(f'name = "mine"\ntitle = "my own"\nlike = {like}\n'.encode())


@pytest.mark.parametrize("field", ["name", "title"])
def test_like_has_a_name_of_its_own(field: str) -> None:
    lines = [line for line in HEAD.splitlines() if not line.startswith(field)]
    with pytest.raises(CPUFileError, match=f"missing required field `{field}`"):
        decode_cpu("\n".join(lines).encode())

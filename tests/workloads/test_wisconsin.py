# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `wisconsin`: its relations by their definition, what it expects of queries, and its
three databases.
"""

import re
import subprocess

import pytest

from kdelta.host.gcc import Compiler
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import build_workload, find_workload
from tests.workloads.wisconsin import STRING4, STRINGU1, UNIQUE1, expected, relations, results

SQLITE = find_workload("wisconsin")
SERVERS = [find_workload(f"wisconsin-{name}") for name in ("mariadb", "postgresql")]


def test_the_relations_are_as_defined() -> None:
    sizes = {name: len(rows) for name, rows in relations().items()}
    assert sizes == {"onektup": 1000, "tenktup1": 10000, "tenktup2": 10000, "bprime": 1000}
    for name in ("onektup", "tenktup1", "tenktup2"):
        rows = relations()[name]
        assert sorted(int(row[UNIQUE1]) for row in rows) == list(range(len(rows)))
        assert [row[UNIQUE1] for row in rows[:100]] != list(range(100))
    assert relations()["tenktup1"] != relations()["tenktup2"]
    first = relations()["tenktup1"][0]
    assert first[:13] == (2968, 0, 0, 0, 8, 8, 68, 8, 3, 0, 2968, 136, 137)
    assert first[STRINGU1] == "AAAAEKE" + "x" * 45
    assert {str(row[STRING4])[:5] for row in relations()["onektup"]} == {
        "AAAAx",
        "HHHHx",
        "OOOOx",
        "VVVVx",
    }


@pytest.mark.slow
def test_what_is_expected_follows_from_the_definition() -> None:
    assert (SQLITE.folder / "expected.h").read_text() == expected()


def test_selections_and_joins_have_the_published_sizes() -> None:
    sizes = {name: len(rows) for name, rows in results().items()}
    assert {sizes[name] for name in sizes if "1pct" in name} == {100, 400}
    assert {sizes[name] for name in sizes if "10pct" in name} == {1000}
    assert {sizes[name] for name in sizes if name.startswith("join")} == {1000}
    assert {sizes[name] for name in sizes if "groups" in name} == {100}
    assert sizes["project-100pct"] == 10000


def test_there_are_the_32_queries_and_all_of_them_in_one() -> None:
    names = [operation.name for operation in SQLITE.operations]
    program = build_workload(SQLITE, by=Compiler("x86_64"))
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == names
    assert len(names) == 33
    assert sorted(names) == sorted(results())
    assert SQLITE.wanted(()) == tuple(names[:-1])


def test_all_databases_have_the_same_queries_and_program() -> None:
    for server in SERVERS:
        assert server.operations == SQLITE.operations
        assert server.sources == SQLITE.sources
        assert build_workload(server, by=Compiler("x86_64")) == build_workload(
            SQLITE, by=Compiler("x86_64")
        )
        assert server.arguments[:2] == ("--database", server.name.partition("-")[2])


def test_no_package_s_name_has_a_version() -> None:
    """But what is a library's: those are kept from release to release, or move seldom."""
    for workload in (SQLITE, *SERVERS):
        assert workload.userland
        named = [name for name in workload.userland.packages if not name.startswith("lib")]
        assert not [name for name in named if re.search(r"\d", name)]


def test_the_loop_count_is_a_parameter() -> None:
    many = find_workload("wisconsin-mariadb:loops=10")
    assert many.name == "wisconsin-mariadb:loops=10"
    assert many.arguments == (*SERVERS[0].arguments, "--loops", "10")
    assert find_workload("wisconsin:loops=1") == SQLITE
    assert build_workload(many, by=Compiler("x86_64")) == build_workload(
        SQLITE, by=Compiler("x86_64")
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wisconsin:loops=0", "loops of wisconsin cannot be '0'"),
        ("wisconsin:loops=1001", "loops of wisconsin cannot be '1001'"),
        ("wisconsin:loops", "loops of wisconsin cannot be ''"),
        ("wisconsin:loops=\N{ARABIC-INDIC DIGIT ONE}", "cannot be"),
        ("wisconsin:loop=1", "no parameter of wisconsin is called 'loop'"),
        ("wisconsin:loops=1,loops=2", "wisconsin is given loops twice"),
        ("wisconsin:", "no parameter of wisconsin is called ''"),
        ("syscalls:", "syscalls takes no parameters: 'syscalls:'"),
        ("syscalls:loops=1", "syscalls takes no parameters: 'syscalls:loops=1'"),
        ("wisconsin-oracle", "no workload is called 'wisconsin-oracle'"),
    ],
)
def test_a_wrong_parameter_is_named(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_workload(name)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The generated pages of the reference have every command, CPU, workload and module."""

import re

import pytest

from kdelta.cpus import list_cpus
from kdelta.workloads.catalog import list_workloads
from scripts.docs_pages import SOURCES, commands_page, cpus_page, module_pages, workloads_page
from tests.docs.commands import COMMANDS


def heads(page: str) -> list[str]:
    return re.findall(r"^## (.*)", page, re.MULTILINE)


def test_commands_page_has_every_command_and_option() -> None:
    page = commands_page()
    assert heads(page) == [*(f"kdelta {name}" for name in COMMANDS), "Kernel specs and changes"]
    for command in COMMANDS.values():
        for option in command.params:
            assert all(name in page for name in option.opts if name.startswith("-"))


def test_commands_page_shows_kernel_specs_once() -> None:
    page = commands_page()
    assert page.count("git:PATH@REV") == 1
    assert page.count("](#kernel-specs-and-changes)") > 5


def test_cpus_page_has_every_cpu() -> None:
    assert heads(cpus_page()) == list(list_cpus())


def test_workloads_page_has_every_workload() -> None:
    page = workloads_page()
    assert all(f"\n{name}: " in page for name in list_workloads())


@pytest.mark.slow
def test_module_pages_have_every_module() -> None:
    found = {head for page in module_pages().values() for head in heads(page)}
    files = [file.relative_to(SOURCES.parent) for file in SOURCES.glob("*/**/*.py")]
    names = {".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files}
    assert found == names

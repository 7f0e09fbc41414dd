# SPDX-License-Identifier: GPL-2.0-or-later
"""The data files of architectures, and what else an architecture needs."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from elftools.elf.enums import ENUM_E_MACHINE

from kdelta.arch import files
from kdelta.host.target import targets
from kdelta.kernels.arches import kernel_arches
from kdelta.kernels.objects.elf_machines import ELF_MACHINES
from kdelta.machines.arch import arch_machine

ROOT = Path(__file__).parents[2]
CLASSIFIERS = {"arm": "arm.c", "arm64": "aarch64.c", "riscv64": "riscv.c", "x86_64": "x86.c"}

every = pytest.mark.parametrize("name", targets())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of data files, empty."""
    monkeypatch.setattr(files, "_FOLDER", tmp_path)
    files._files.cache_clear()
    yield tmp_path
    files._files.cache_clear()


def test_all_rooms_know_the_same_architectures() -> None:
    names = tuple(CLASSIFIERS)
    assert tuple(targets()) == names
    assert all(arch_machine(name).boards for name in names)
    assert tuple(one.machine for one in kernel_arches().values()) == names


@every
def test_architecture_has_relocations_of_its_programs(name: str) -> None:
    target = targets()[name]
    assert ELF_MACHINES[ENUM_E_MACHINE[target.elf_machine]].bits == target.bits


@every
def test_architecture_has_a_classifier_for_its_emulator(name: str) -> None:
    emulated = targets()[name].emulator.removeprefix("qemu-system-")
    source = (ROOT / "native/plugin" / CLASSIFIERS[name]).read_text()
    assert f'.target_name = "{emulated}"' in source


@every
def test_architecture_has_options_that_boot_it(name: str) -> None:
    assert "#: boot" in files.fragment(name, "lab")


def test_fragment_of_another_architecture_is_empty() -> None:
    assert files.fragment("nosuch", "lab") == ""


def test_tables_are_by_name_in_order(folder: Path) -> None:
    for name in ("b", "a"):
        (folder / f"{name}.toml").write_text(f'build = {{}}\nmachine = {{}}\nhost.x = "{name}"\n')
    (folder / "a-lab.config").write_text("CONFIG_A=y\n")
    assert list(files.tables("host", dict[str, str]).items()) == [
        ("a", {"x": "a"}),
        ("b", {"x": "b"}),
    ]
    assert files.fragment("a", "lab") == "CONFIG_A=y\n"
    assert files.fragment("a", "small") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("host = {}\nbuild = {}\n", "missing required field `machine`"),
        ("host = {}\nbuild = {}\nmachine = {}\nelf = {}\n", "unknown field `elf`"),
        ("host = 1\nbuild = {}\nmachine = {}\n", r"\$\.host"),
    ],
)
def test_file_with_other_tables_is_refused(folder: Path, text: str, said: str) -> None:
    (folder / "a.toml").write_text(text)
    with pytest.raises(msgspec.ValidationError, match=said):
        files.tables("host", dict[str, str])

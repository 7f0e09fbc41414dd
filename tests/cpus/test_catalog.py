# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPUs that come with kdelta, and those of the user's own files."""

import os
import re
from pathlib import Path

import pytest

from kdelta.cpus import DEFAULT_CPU, list_cpus, load_cpu
from kdelta.cpus.model import (
    ASSUMED,
    CPU,
    MEASURED,
)
from kdelta.infer.cycles.prices import PRICED_APART
from kdelta.spec.errors import UserError

SHIPPED = {
    "cortex-a53", "cortex-a55", "cortex-a7", "cortex-a72", "cortex-a76", "cortex-a9",
    "generic-x86-64", "granite-rapids", "icelake-server", "neoverse-n1", "neoverse-v2",
    "sapphire-rapids", "sierra-forest", "skylake-server", "zen2", "zen3", "zen4", "zen5",
}  # fmt: skip
FOLDER = Path(__file__).parents[2] / "src/kdelta/cpus"
PLUGIN = Path(__file__).parents[2] / "native/plugin"
SOURCES = {
    "x86_64": ("x86_kinds.c", "wrmsr"),
    "arm": ("arm.c", "svc"),
    "arm64": ("aarch64.c", "svc"),
}

every_cpu = pytest.mark.parametrize("cpu", list_cpus().values(), ids=lambda cpu: cpu.name)


def test_all_are_there_under_the_names_of_their_files() -> None:
    assert set(list_cpus()) == SHIPPED
    assert {path.stem for path in FOLDER.glob("*.toml")} == SHIPPED
    assert DEFAULT_CPU in SHIPPED


@every_cpu
def test_no_price_pretends_to_be_calibrated(cpu: CPU) -> None:
    assert not any(price.calibrated for price in cpu.misses.values())


@every_cpu
def test_a_decoupled_front_end_may_hide_all_and_a_coupled_one_not(cpu: CPU) -> None:
    price = cpu.misses["l1i"]
    assert (price.hidden == 0) == (cpu.frontend == "decoupled")
    assert price.hidden < price.exposed


@every_cpu
def test_every_figure_has_a_document_a_measurement_or_a_reason(cpu: CPU) -> None:
    for text in cpu.sources.values():
        for word in (ASSUMED, MEASURED):
            assert not text.startswith(word) or len(text) > len(word) + 10
        assert text.isascii()


@every_cpu
def test_what_was_measured_names_the_cpu_that_it_was_measured_on(cpu: CPU) -> None:
    for field, text in cpu.sources.items():
        named = text.startswith((f"{MEASURED} on a Zen 4 EPYC", f"{MEASURED} on Sapphire Rapids"))
        assert named or not text.startswith(MEASURED), field


@every_cpu
def test_special_instructions_are_those_that_the_plugin_counts(cpu: CPU) -> None:
    file, one_of_them = SOURCES[cpu.arch]
    source = (PLUGIN / file).read_text()
    names = set(re.findall(r'"([a-z0-9-]+)"', source[: source.index("NULL")]))
    assert one_of_them in names
    assert set(cpu.specials) <= names | PRICED_APART
    assert {kind for path in cpu.paths for kind in path.specials} <= names


@every_cpu
def test_a_cpu_that_is_emulated_brings_in_no_entropy_of_the_host(cpu: CPU) -> None:
    if cpu.arch != "x86_64" or not cpu.qemu.cpu:
        return
    assert "-rdrand" in cpu.qemu.cpu
    assert "-rdseed" in cpu.qemu.cpu


@every_cpu
def test_a_path_that_is_not_emulated_says_what_depends_on_it(cpu: CPU) -> None:
    for path in cpu.paths:
        assert path.functions or path.specials or path.strings or path.entries, path.name
        assert set(path.foreign) >= set(path.mitigations), path.name


def test_known_geometries() -> None:
    a9 = load_cpu("cortex-a9")
    assert (a9.l1i.bytes, a9.l1i.ways, a9.l1i.line_bytes) == (32 << 10, 4, 32)
    assert a9.l1i.sets * a9.l1i.line_bytes == 8 << 10  # lines so far apart share a set
    assert load_cpu("cortex-a72").l1i.bytes == 48 << 10
    assert load_cpu("neoverse-n1").l1i.bytes == 64 << 10
    servers = ("zen2", "zen3", "zen4", "skylake-server", "icelake-server", "sapphire-rapids")
    for name in ("generic-x86-64", *servers):
        l1i = load_cpu(name).l1i
        assert (l1i.bytes, l1i.ways, l1i.line_bytes) == (32 << 10, 8, 64)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UserError, match="no CPU is called 'zen6'") as raised:
        load_cpu("zen6")
    assert "zen5" in raised.value.hint


def test_a_file_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / "zen2.toml").read_text().replace('name = "zen2"', 'name = "my-zen"')
    (tmp_path / "mine.toml").write_text(text)
    assert load_cpu(str(tmp_path / "mine.toml")).name == "my-zen"
    monkeypatch.chdir(tmp_path)
    assert load_cpu("mine.toml").name == "my-zen"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.toml cannot be read: No such file"):
        load_cpu(str(tmp_path / "none.toml"))


def test_file_nested_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_bytes(b"a = " + b"[" * 100_000)
    with pytest.raises(UserError, match="nested too deeply"):
        load_cpu(str(path))


@pytest.mark.parametrize("device", [True, False])
def test_a_file_without_end_is_none(tmp_path: Path, *, device: bool) -> None:
    path = Path("/dev/zero")
    if not device:
        path = tmp_path / "large.toml"
        path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(UserError, match="is no CPU file"):
        load_cpu(str(path))


def test_a_pipe_is_no_file_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    with pytest.raises(UserError, match="is no CPU file but a folder, a pipe or a device"):
        load_cpu(str(path))


def test_a_key_of_many_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.toml"
    path.write_text(f"{'a.' * 50_000}b = 1")
    with pytest.raises(UserError, match="line 1 has more than 50 dots"):
        load_cpu(str(path))

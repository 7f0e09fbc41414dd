# SPDX-License-Identifier: GPL-2.0-or-later
"""Where functions of a relinked program lie, and what is refused as no relink of it."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from kdelta.counts.trace import Trace
from kdelta.replay.programs import (
    REST,
    ProgramText,
    placed_program,
    program_layouts,
    program_text,
)
from kdelta.spec.errors import LabError, UserError

SOURCE = """
static int seven = 7;
int counted;
__attribute__((noinline)) static int same(int x) { return x * 3 + counted; }
__attribute__((noinline)) int one(int x) { return same(x) + seven++; }
__attribute__((noinline)) int two(int x) { return x ^ (int)(long)&one; }
__attribute__((noinline)) int three(int x) { counted += x; return x * x; }
int (*const table[])(int) = {one, two, three};
void _start(void)
{
    for (int i = 0; i < 9; i++)
        table[i % 3](i);
    one(1), two(2), three(3);
    for (;;);
}
"""
OTHER = """
__attribute__((noinline)) static int same(int x) { return x - 5; }
int four(int x) { return same(x) + same(x + 1); }
"""
CHANGED = SOURCE.replace("x * x", "x * x + 1000")
FLAGS = ["-O2", "-ffreestanding", "-ffunction-sections", "-fno-pie", "-fno-stack-protector"]


def built(folder: Path, sources: tuple[str, ...], seed: int, *flags: str) -> ProgramText:
    objects = []
    for number, source in enumerate(sources):
        (folder / f"{number}.c").write_text(source)
        objects.append(folder / f"{number}.o")
        subprocess.run(
            ["gcc", *FLAGS, *flags, "-c", folder / f"{number}.c", "-o", objects[-1]], check=True
        )
    output = folder / f"linked-{seed}"
    shuffle = f"--shuffle-sections=.text.*={seed}"
    subprocess.run(["ld.lld", "-static", shuffle, "-o", output, *objects], check=True)
    return program_text(output.name, output.read_bytes())


def traced(text: ProgramText, labels: tuple[str, ...], outside: int = 0xFFFFFFFF81000000) -> Trace:
    """A trace in which the first 4 bytes of each of these functions were executed, and a block of
    the kernel.
    """
    addresses = [*(text.names[label] for label in labels), outside]
    n = len(addresses)
    return Trace(
        region="pass",
        addresses=np.array(addresses, dtype=np.uint64),
        sizes=np.full(n, 4, np.uint32),
        insns=np.full(n, 1, np.uint32),
        physical=None,
        items=np.arange(n, dtype=np.uint32),
        starts=np.array([0, n], dtype=np.uint64),
        sequence=np.zeros(1, np.uint32),
        contexts=np.zeros(1, np.uint8),
        truncated=False,
        iterations=1,
    )


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> list[ProgramText]:
    folder = tmp_path_factory.mktemp("links")
    return [built(folder, (SOURCE, OTHER), seed) for seed in (1, 2, 3)]


def test_functions_are_where_each_link_has_them(links: list[ProgramText]) -> None:
    trace = traced(links[0], ("one", "same", "three"))
    placement = placed_program(trace, links[0])
    layouts = program_layouts(placement, links[0], links)
    assert layouts.shape == (3, len(placement.labels))
    assert placement.labels[-1] == REST
    assert (layouts[0] == placement.starts).all()
    for row, link in enumerate(links):
        for label in ("one", "same", "same#2", "two", "three", "four"):
            assert layouts[row, placement.labels.index(label)] == link.names[label]
        # The kernel's block stays.
        at = layouts[row, placement.placed.function[-1]] + placement.placed.offset[-1]
        assert at == 0xFFFFFFFF81000000
    assert len({tuple(row) for row in layouts.tolist()}) == 3
    executed = {
        label for label, was in zip(placement.labels, placement.executed, strict=True) if was
    }
    assert executed == {"one", "same", "three", REST}


def test_functions_of_one_name_are_told_apart_by_their_object(links: list[ProgramText]) -> None:
    for link in links:
        content = {label: link.content(link.labels.index(label)) for label in ("same", "same#2")}
        assert len(content["same"]) != len(content["same#2"])
        assert len(content["same"]) == len(links[0].content(links[0].labels.index("same")))


def test_a_trace_of_another_program_is_refused(links: list[ProgramText]) -> None:
    trace = traced(links[0], ())
    with pytest.raises(LabError, match="not of linked-1"):
        placed_program(trace, links[0])


def test_code_that_was_changed_is_no_relink(links: list[ProgramText], tmp_path: Path) -> None:
    changed = built(tmp_path, (CHANGED, OTHER), 1)
    placement = placed_program(traced(links[0], ("three",)), links[0])
    with pytest.raises(UserError, match="no relink of the program that was traced: three has"):
        program_layouts(placement, links[0], [changed])
    # What was not executed may differ.
    placement = placed_program(traced(links[0], ("one",)), links[0])
    program_layouts(placement, links[0], [changed])


def test_a_constant_that_was_changed_is_no_relink(links: list[ProgramText], tmp_path: Path) -> None:
    changed = built(tmp_path, (SOURCE.replace("x * 3", "x * 5"), OTHER), 1)
    placement = placed_program(traced(links[0], ("same",)), links[0])
    with pytest.raises(UserError, match="no relink"):
        program_layouts(placement, links[0], [changed])


def test_what_is_nowhere_is_nowhere_in_each_link(tmp_path: Path) -> None:
    """A call of an undefined weak symbol goes to address 0, from wherever it is."""
    weak = """
void nobody(void) __attribute__((weak));
__attribute__((noinline)) int five(int x) { if (x > 7) nobody(); return x + 5; }
"""
    links = [built(tmp_path, (SOURCE, weak), seed) for seed in (1, 2, 3)]
    assert len({link.names["five"] for link in links}) > 1
    assert len({link.content(link.labels.index("five")) for link in links}) > 1
    placement = placed_program(traced(links[0], ("five",)), links[0])
    layouts = program_layouts(placement, links[0], links)
    assert layouts[:, placement.labels.index("five")].tolist() == [
        link.names["five"] for link in links
    ]


def test_a_function_that_is_missing_is_named(links: list[ProgramText], tmp_path: Path) -> None:
    placement = placed_program(traced(links[0], ("four",)), links[0])
    with pytest.raises(UserError, match="it has no four"):
        program_layouts(placement, links[0], [built(tmp_path, (SOURCE,), 1)])


def test_what_is_no_static_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no ELF program"):
        program_text("text", b"#!/bin/sh\n")
    content = (Path("/bin/ls")).read_bytes()
    with pytest.raises(UserError, match="loaded anywhere"):
        program_text("ls", content)
    stripped = tmp_path / "stripped"
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(
        ["gcc", *FLAGS, "-nostdlib", "-static", "-s", "-o", stripped, tmp_path / "a.c"], check=True
    )
    with pytest.raises(UserError, match="no symbols"):
        program_text("stripped", stripped.read_bytes())

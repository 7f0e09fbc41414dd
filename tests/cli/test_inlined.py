# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff --inlined` and `--source` with the debug info that a compiler wrote: two kernels, of
which one inlines a function and the other does not.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from reading import read_document

from kdelta.cli import main as cli
from kdelta.host.target import host_target
from kdelta.kernels.model import Kernel
from kdelta.store.model import Run
from tests.cli.recorded import recorded
from tests.profiles import Stack, profile_of

Captured = pytest.CaptureFixture[str]
SOURCE = """\
static SMALL int small(int a)
{
    return a * 5 + 3;
}
__attribute__((noinline)) int vfs_read(int a)
{
    return small(a);
}
int entry(int a)
{
    return vfs_read(a) ^ 9;
}
"""
A: dict[Stack, int] = {
    ("work:main",): 10,
    ("work:main", "entry"): 7,
    ("work:main", "entry", "vfs_read"): 100,
    ("work:main", "entry", "vfs_read", "small"): 50,
}
B: dict[Stack, int] = {
    ("work:main",): 10,
    ("work:main", "entry"): 7,
    ("work:main", "entry", "vfs_read"): 190,
}


def vmlinux(folder: Path, name: str, small: str, stacks: Mapping[Stack, int], debug: str) -> Path:
    """An ELF file whose functions are where the profile of these stacks has them."""
    folder = folder / name
    folder.mkdir()
    (folder / "fs.c").write_text(SOURCE)
    places = [
        f".text.{function.name} {function.address:#x} : {{ *(.text.{function.name}) }}"
        for function in profile_of(stacks).functions
        if function.origin == "kernel"
    ]
    (folder / "places").write_text("SECTIONS\n{\n" + "\n".join(places) + "\n}\n")
    flags = ["-O1", debug, "-ffunction-sections", "-fcf-protection=none", "-fno-pie"]
    linked = ["-no-pie", "-nostdlib", "-static", "-Wl,-e,entry", "-Wl,-T,places"]
    argv = ["gcc", *flags, f"-DSMALL={small}", *linked, "-o", "vmlinux", "fs.c"]
    subprocess.run(argv, check=True, cwd=folder)
    return folder / "vmlinux"


def two(
    folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch, debug: str = "-g"
) -> tuple[Run, Run]:
    """Runs of a kernel that calls `small`, and of one that inlines it."""
    kernels: dict[str, Kernel] = {}
    sides = (
        ("a", "__attribute__((noinline,noipa))", A),
        ("b", "inline __attribute__((always_inline))", B),
    )
    runs = []
    for name, small, stacks in sides:
        run = recorded(data, stacks)
        image = str(vmlinux(folder, name, small, stacks, debug))
        kernels[run.id] = Kernel(
            "a" * 64, "image:vmlinux", image, "x86_64", "6.12.0", image_format="vmlinux"
        )
        runs.append(run)
    monkeypatch.setattr(
        "kdelta.studies.recorded.recorded.kernel_of", lambda run, *_: kernels[run.id]
    )
    return runs[0], runs[1]


def rows(text: str) -> dict[str, list[str]]:
    """Of each function of a listing the difference, and the same in per cent."""
    found = re.findall(r"^(\S.*?) +([+-]\S+) +([+-]\S+%) ", text, re.MULTILINE)
    return {name: [diff, percent] for name, diff, percent in found}


pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(getattr(host_target(), "name", "") != "x86_64", reason="compiles for it"),
]


@pytest.mark.slow
def test_what_one_kernel_inlined_is_compared_with_the_others_function(
    tmp_path: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    a, b = two(tmp_path, own_data, monkeypatch)
    assert cli.ended(["diff", a.id, b.id]) == 0
    plain = rows(capsys.readouterr().out)
    assert plain["vfs_read"] == ["+90", "+90.0%"]
    assert plain["small"] == ["-50", "-100.0%"]
    assert cli.ended(["diff", a.id, b.id, "--inlined"]) == 0
    found = rows(capsys.readouterr().out)
    # All that vfs_read's first instruction did in B is of the function that it has inlined.
    assert found["small (inlined)"] == ["+140", "+280.0%"]
    assert found["vfs_read"] == ["-100", "-100.0%"]
    assert found["total"] == plain["total"] == ["+40", "+24.0%"]


@pytest.mark.slow
def test_lines_are_those_of_the_function_wherever_it_was_compiled(
    tmp_path: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    a, b = two(tmp_path, own_data, monkeypatch)
    assert cli.ended(["diff", a.id, b.id, "--source", "--json"]) == 0
    document = read_document(capsys.readouterr().out)
    lines = document.views.lines
    found = {((one.b_line or one.a_line).function, one.a, one.b) for one in lines}
    assert ("small", 0, 190) in found
    assert {function for function, a, _ in found if a} >= {"small", "vfs_read"}
    assert sum(one.b - one.a for one in lines) == 40


@pytest.mark.slow
def test_without_debug_info_nothing_is_inlined_and_that_is_reported(
    tmp_path: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    a, b = two(tmp_path, own_data, monkeypatch, "-g0")
    assert cli.ended(["diff", a.id, b.id, "--inlined"]) == 0
    shown = capsys.readouterr()
    assert rows(shown.out)["small"] == ["-50", "-100.0%"]
    assert "(inlined)" not in shown.out
    said = "No debug info, so what is inlined there is not known: kernel, work."
    assert said in " ".join(shown.out.split())

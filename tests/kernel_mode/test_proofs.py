# SPDX-License-Identifier: GPL-2.0-or-later
"""A process in kernel mode is a process like any other: programs that prove it, in both modes.

docs/kernel-mode-proofs.md tells what each of them proves, and what differs.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernel_mode.guest import (
    INSIDE,
    NAMES,
    UNSAFE,
    Boot,
    Machine,
    Step,
    boot,
    differences,
    program,
    programs,
    steps,
    symbol,
)

pytestmark = [pytest.mark.build, pytest.mark.guest, pytest.mark.slow]

Boots = dict[str, Boot]


@pytest.fixture(scope="module")
def boots(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    """All programs, in both modes on one kernel."""
    return {
        mode: boot(
            Machine(kernel), tmp_path_factory.mktemp(mode), programs(NAMES), steps(NAMES, directory)
        )
        for mode, directory in (("user", ""), ("kernel", INSIDE))
    }


@pytest.mark.parametrize("mode", ["user", "kernel"])
@pytest.mark.parametrize("name", NAMES)
def test_it_holds(boots: Boots, name: str, mode: str) -> None:
    step = boots[mode].steps[name]
    assert step.said("not ok") == []
    assert (step.how, step.said("done")) == ("exit-0", ["0"]), step.lines[-3:]
    assert "mode" in step.said("ok"), "it ran in the mode that it should"


@pytest.mark.parametrize("mode", ["user", "kernel"])
def test_the_kernel_is_well(boots: Boots, mode: str) -> None:
    assert boots[mode].oopses == []
    assert boots[mode].whole


def test_what_depends_on_the_cpu_is_the_same_in_both_modes_but_for_what_is_documented(
    boots: Boots,
) -> None:
    found = differences(boots["user"], boots["kernel"])
    text = (Path(__file__).parents[2] / "docs/kernel-mode-proofs.md").read_text()
    for name in found:
        assert f"`{name}`" in text, found[name]


def test_all_three_ways_to_call_were_tried(boots: Boots) -> None:
    for name in ("faults", "restarts", "filter", "trace", "gates"):
        said = boots["kernel"].steps[name].said("ok")
        for way in ("syscall", "entry", "fast"):
            assert any(line.endswith(f"-by-{way}") for line in said), (name, way)


@pytest.mark.outside
@pytest.mark.parametrize("mode", ["user", "kernel"])
def test_the_host_reads_its_core_file(boots: Boots, mode: str, tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.write_bytes(boots[mode].core)
    commands = ["bt", "info registers rip cs ss r12 r15", "print known", "info threads"]
    asked = [word for command in commands for word in ("-ex", command)]
    ran = subprocess.run(
        ["gdb", "-nx", "-batch", *asked, program("core"), core],
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"#0 .* third .*#1 .* second .*#2 .* first ", ran.stdout, re.DOTALL), ran
    assert re.search(r"^cs +0x33 ", ran.stdout, re.MULTILINE)
    assert re.search(r"^ss +0x2b ", ran.stdout, re.MULTILINE)
    assert re.search(r"^r12 +0x1111 ", ran.stdout, re.MULTILINE)
    assert re.search(r"^r15 +0x2a ", ran.stdout, re.MULTILINE), "40, and 1 for each of two calls"
    assert ran.stdout.count("LWP ") >= 2, "both of its threads"


def unsafe_words(kernel: Path, name: str) -> tuple[str, ...]:
    """The command for one thing, with the address that it is done to: the system's names, or a
    function that only returns.
    """
    of = "__x64_sys_ni_syscall" if name == "call-kernel-code" else "init_uts_ns"
    return f"{INSIDE}/unsafe", name, symbol(kernel, of)


@pytest.fixture(scope="module")
def unsafe(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Boot]:
    """A boot for one thing that ring 0 does not catch, and a step after it."""

    def booted(name: str, directory: str) -> Boot:
        plan = [
            Step(name, unsafe_words(kernel, name), directory, seconds=5),
            Step("after", (f"{INSIDE}/unsafe",), seconds=5),
        ]
        folder = tmp_path_factory.mktemp(name)
        return boot(Machine(kernel, seconds=60), folder, programs(["unsafe"]), plan)

    return booted


def test_user_mode_catches_all_of_it(
    kernel: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = [Step(name, unsafe_words(kernel, name), seconds=20) for name in UNSAFE]
    ended = boot(Machine(kernel), tmp_path_factory.mktemp("safe"), programs(["unsafe"]), plan)
    for name in UNSAFE:
        # A segment for the stack that is the one it has anyway is nothing to catch.
        caught = [] if name == "stack-segment" else [f"{name}: signal 11"]
        assert ended.steps[name].said("caught") == caught, ended.steps[name]
    assert ended.oopses == []


@pytest.mark.parametrize("name", [name for name, ends in UNSAFE.items() if not ends])
def test_what_kernel_mode_lets_through(unsafe: Callable[[str, str], Boot], name: str) -> None:
    ended = unsafe(name, INSIDE)
    assert ended.steps[name].said("not") == [f"caught {name}"], ended
    assert ended.oopses == []
    if name == "write-kernel":
        assert ended.steps["after"].said("ostype") == ["Kinux"], "for all others, too"


@pytest.mark.parametrize("name", [name for name, ends in UNSAFE.items() if ends])
def test_what_ends_the_whole_guest(unsafe: Callable[[str, str], Boot], name: str) -> None:
    ended = unsafe(name, INSIDE)
    assert not ended.whole
    assert ended.steps[name].how == "nothing"

# SPDX-License-Identifier: GPL-2.0-or-later
"""The Firefox Profiler's format as its own loader, that of its command line, reads it."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kdelta.report.exports.model import clean
from tests.report.exports.example import (
    ODD,
    OTHER,
    READ,
    example,
    inclusive,
    made,
    naming_with,
    output,
    own,
    tool,
)

READ_OWN = {stack: insns for stack, insns in READ.items() if stack[0] != "irq_entry"}
Ask = Callable[..., Any]


@pytest.fixture
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Ask]]:
    """Loads a file; what it gives asks the loader a question, and answers with the JSON."""
    # The path of a socket in it has a limit.
    folder = tmp_path_factory.mktemp("fx")
    program = tool("profiler-cli/dist/profiler-cli.js")

    def run(*words: str) -> str:
        return output(
            "node", program, *words, "--session", "s", PROFILER_CLI_SESSION_DIR=str(folder)
        )

    def load(file: Path) -> Ask:
        run("load", str(file))
        return lambda *words: json.loads(run(*words, "--json"))

    yield load
    subprocess.run(
        ["node", str(program), "stop", "s"],
        env={"PATH": os.environ["PATH"], "PROFILER_CLI_SESSION_DIR": str(folder)},
        check=False,
        capture_output=True,
    )


@pytest.mark.outside
def test_regions_are_processes_and_contexts_threads(
    tmp_path: Path, ask: Callable[[Path], Ask]
) -> None:
    told = ask(made("firefox", tmp_path, example()))("profile", "info", "--all")
    names = {
        process["name"]: [thread["name"] for thread in process["threads"]]
        for process in told["processes"]
    }
    assert names == {
        "read": ["work (own)", "work (interrupts)"],
        "read (x); <b>&amp; [1m": ["work (own)"],
    }


@pytest.mark.outside
def test_functions_have_own_and_inclusive_figures(
    tmp_path: Path, ask: Callable[[Path], Ask]
) -> None:
    told = ask(made("firefox", tmp_path, example()))("thread", "functions", "--thread", "t-0")
    found = {
        one["nameWithLibrary"]: (one["totalSamples"], one["selfSamples"])
        for one in told["functions"]
    }
    total, self = inclusive([READ_OWN]), own([READ_OWN])
    expected = {}
    for name in total:
        origin, _, plain = name.rpartition(":")
        expected[f"{origin or 'kernel'}!{clean(plain)}"] = (total[name], self[name])
    assert found == {**expected, "work": (sum(READ_OWN.values()), 0)}
    assert found[f"kernel!{clean(ODD)}"] == (7, 7)


@pytest.mark.outside
def test_it_says_what_it_is_of(tmp_path: Path, ask: Callable[[Path], Ask]) -> None:
    told = json.dumps(ask(made("firefox", tmp_path, example()))("profile", "meta"))
    for fact in ("deb:linux-image", "a 'b' <c> d", "7f3a", "instructions"):
        assert fact in told


@pytest.mark.outside
def test_with_lines_functions_have_files(tmp_path: Path, ask: Callable[[Path], Ask]) -> None:
    naming = naming_with({4096 * n: ("fs/a b.c", n) for n in range(1, 5)})
    question = ask(made("firefox", tmp_path, example(), naming))
    functions = question("thread", "functions", "--thread", "t-0")["functions"]
    (handle,) = [one["functionHandle"] for one in functions if one["name"] == "vfs_read"]
    told = question("function", "annotate", handle, "--mode", "src")
    assert "fs/a b.c" in json.dumps(told), told


def test_weights_and_times_are_whole(tmp_path: Path) -> None:
    document = json.loads(made("firefox", tmp_path, example()).read_text())
    thread = document["threads"][-1]
    assert thread["samples"]["weight"] == list(OTHER.values())
    assert thread["samples"]["time"] == [0, 0.001]
    assert document["meta"]["preprocessedProfileVersion"] == 60

# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion: which words there are, through the shells themselves, and what it may not do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.cli.commands import COMMANDS
from kdelta.cli.completion import SCRIPTS
from kdelta.cli.words import TABLE, completed, for_bash, print_words
from kdelta.cpus import list_cpus
from kdelta.workloads.catalog import list_workloads
from scripts.make_words import text
from tests.cli.captured import stored
from tests.cli.test_start import NOT_NEEDED
from tests.report.example import base_counts

BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a tree, a config and a file with a blank in its name."""
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux" / "Makefile").write_text("")
    (tmp_path / "fast.config").write_text("")
    (tmp_path / "a b.config").write_text("")
    (tmp_path / ".hidden").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cached(own_cache: Path) -> str:
    """The spec of the one kernel that is in the cache."""
    folder = own_cache / "kernels" / "linux-image-6.1-x=6.1.1-1"
    folder.mkdir(parents=True)
    record = '{"package": "linux-image-6.1-x", "version": "6.1.1-1", "architecture": null}'
    (folder / "kernel.json").write_text(record)
    (own_cache / "kernels" / "damaged").mkdir()
    (own_cache / "kernels" / "damaged" / "kernel.json").write_text("{")
    return "deb:linux-image-6.1-x=6.1.1-1"


def test_the_table_is_that_of_the_commands() -> None:
    """Where it is not: scripts/make_words.py."""
    assert TABLE.read_text() == text()


def test_commands_and_options() -> None:
    assert completed(["comp"]) == ["compare", "completion"]
    assert set(COMMANDS) < set(completed([""]))
    assert completed(["--ver"]) == ["--version"]
    assert completed(["compare", "--path"]) == ["--path-margin"]
    assert "--help" in completed(["runs", "--"])
    assert completed(["nonesuch", "--"]) == []
    assert completed(["compare", "--seconds", ""]) == []


def test_values_of_options() -> None:
    assert completed(["compare", "--as", "c"]) == ["container"]
    assert completed(["compare", "--as=c"]) == ["--as=container"]
    assert completed(["report", "--format", "j"]) == ["json", "junit"]
    assert completed(["pin", "f"]) == ["fetch"]
    assert completed(["pin", "fetch", "--arch", "arm"]) == ["arm", "arm64"]
    assert completed(["compare", "x", "ARCH=r"]) == ["ARCH=riscv64"]


@pytest.mark.usefixtures("own_data")
def test_workloads_operations_and_cpus_are_those_that_there_are() -> None:
    known = list_workloads()
    assert set(completed(["compare", "-w", ""])) == set(known)
    operations = [one.name for one in known["syscalls"].operations]
    assert completed(["compare", "-o", ""]) == operations
    nat = completed(["compare", "a", "-w", "nat", "-o", ""])
    assert nat == [one.name for one in known["nat"].operations]
    assert set(completed(["compare", "--cpu", ""])) == {"host", *list_cpus()}


@pytest.mark.usefixtures("here", "own_data")
def test_kernel_specs(cached: str) -> None:
    assert completed(["compare", "de"]) == ["deb:", "deb-src:"]
    assert cached in completed(["compare", "deb:linux-image-6.1-"])
    assert completed(["compare", "tree:l"]) == ["tree:linux/"]
    assert completed(["compare", "image:linux/M"]) == ["image:linux/Makefile"]
    assert completed(["compare", "linux", "+fa"]) == ["+fast.config"]
    assert completed(["compare", "linux", "+cm"]) == ["+cmdline:"]
    assert completed(["build", "./li"]) == ["./linux/"]
    assert ".hidden" not in completed(["build", ""])
    assert completed(["run", "linux", "--", "fa"]) == ["fast.config"]


@pytest.mark.usefixtures("own_cache")
def test_ids_of_the_store(own_data: Path) -> None:
    assert completed(["show", "l"]) == ["last"]
    assert not list(own_data.iterdir())  # the store is not made for it
    first = stored(own_data, base_counts(0))
    assert completed(["show", first.id[:3]]) == [first.id[:8]]
    assert first.id[:8] in completed(["rm", ""])
    assert completed(["report", first.id[:3]]) == []
    assert first.kernel_spec in completed(["compare", first.kernel_spec[:4]])


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_a_damaged_store_has_no_ids(own_data: Path, content: bytes) -> None:
    (own_data / "store.db").write_bytes(content)
    assert completed(["show", ""]) == ["last"]


def test_words_control_characters_in_a_name_left_out(
    here: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for name in ("b\x1b[2Jad", "b\nad", "bad"):
        (here / name).mkdir()
    print_words(["words", "compare", "tree:b"])
    assert capfdbinary.readouterr().out == b"tree:bad/\n"


@pytest.mark.usefixtures("here", "own_data")
def test_bash_is_given_what_follows_its_word_breaks(cached: str) -> None:
    after = cached.removeprefix("deb:")
    assert for_bash("kdelta compare deb:linux-image-6.1-x", BREAKS) == [after]
    assert for_bash("kdelta compare deb:linux-image-6.1-x", BREAKS.replace(":", "")) == [cached]
    assert for_bash("kdelta compare --as=c", BREAKS) == ["container"]
    assert for_bash("kdelta ablate linux --from a", BREAKS) == [r"a\ b.config"]
    assert for_bash("kdelta ablate linux --from 'a b", BREAKS) == ["a b.config"]
    assert for_bash("kdelta compare --as ", BREAKS) == ["service", "container", "none"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program `kdelta`, in a folder of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "kdelta"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kdelta "$@"\n')
    path.chmod(0o755)
    return path


def shell_env(program: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb"}


BASH = """\
source <(kdelta completion bash)
function=$(complete -p kdelta); function=${function#*-F }; function=${function%% *}
COMP_LINE=$1; COMP_POINT=${#1}
$function kdelta
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.usefixtures("here", "own_data")
@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("kdelta comp", ["compare", "completion"]),
        ("kdelta compare --as c", ["container"]),
        ("kdelta compare deb:linux-image-6.1-x", ["linux-image-6.1-x=6.1.1-1"]),
        ("kdelta ablate linux --from fa", ["fast.config"]),
        ("kdelta ablate linux --from a", [r"a\ b.config"]),
        ("kdelta nonesuch ", [""]),
    ],
)
@pytest.mark.slow
def test_bash_itself(line: str, reply: list[str], cached: str, program: Path) -> None:
    assert cached
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", line],
        env=shell_env(program), capture_output=True, text=True, check=True,
    )  # fmt: skip
    # Outside of a completion, compopt complains; in one it does not.
    assert [one for one in done.stderr.splitlines() if "compopt" not in one] == []
    assert done.stdout.splitlines() == reply


@pytest.mark.outside
@pytest.mark.usefixtures("here", "own_data")
def test_fish_itself(cached: str, program: Path) -> None:
    assert shutil.which("fish")
    code = "kdelta completion fish | source; complete -C 'kdelta compare deb:linux-image-6.1'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code],
        env=shell_env(program), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [cached]


ZSH = """\
compdef() { :; }
source <(kdelta completion zsh)
compadd() { [[ $1 == -S ]] && shift 2; shift; print -rl -- "$@"; }
words=(${(z)1}); CURRENT=${#words}
_kdelta
"""


@pytest.mark.outside
@pytest.mark.usefixtures("here", "own_data")
def test_zsh_itself(cached: str, program: Path) -> None:
    assert shutil.which("zsh")
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH, "zsh", "kdelta compare deb:linux-image-6.1"],
        env=shell_env(program), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.split() == [cached]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bash"],
        ["bash", "kdelta 'x", "", "more"],
        ["bash", "", ":="],
        ["words"],
        ["words", "\udcff"],
        ["nonesuch", "compare", "deb:"],
    ],
)
@pytest.mark.usefixtures("own_data", "own_cache")
def test_nothing_is_ever_an_error(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kdelta", "__complete", *arguments],
        env={**os.environ, "HOME": "/nonesuch"}, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stderr == b""


CODE = """
import sys
from kdelta.cli.words import print_words
print_words(["words", "compare", "deb:"])
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""


@pytest.mark.usefixtures("own_data", "own_cache")
def test_completion_imports_nothing_that_takes_long() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert not (NOT_NEEDED | {"click", "msgspec"}) & set(done.stderr.split())


def test_every_shell_has_a_script() -> None:
    assert set(SCRIPTS) == {"bash", "zsh", "fish"}
    assert all("__complete" in script for script in SCRIPTS.values())

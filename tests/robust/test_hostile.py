# SPDX-License-Identifier: GPL-2.0-or-later
"""Some trials of scripts/proofs/hostile.py without guests, and that it sees what is wrong."""

import random
import sys
from pathlib import Path

import pytest
from hostile import Ended, input_trial, judged, listing, look, place
from hostile_inputs import INPUTS
from hostile_made import Command

TRIALS = [at for at, kind in enumerate(INPUTS) if kind in ("cpu", "clock", "output", "store")]

LARGE = ("image", "package", "patch", "mailbox")
"""Kinds whose files have hundreds of MiB."""


@pytest.mark.long
@pytest.mark.parametrize("number", TRIALS)
def test_hostile_input_is_refused_or_read(number: int, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    trial = input_trial(tmp_path, number, seed=1)
    assert not trial.wrong, trial
    assert trial.said or trial.code < 0


@pytest.mark.parametrize("kind", [one for one in INPUTS if one not in LARGE])
@pytest.mark.slow
def test_each_kind_is_made_by_its_seed(kind: str, tmp_path: Path) -> None:
    made = []
    for name in ("one", "other"):
        with place(tmp_path, tmp_path, tmp_path) as where:
            words = INPUTS[kind](where.folder, random.Random(name[:0])).words
            made.append([str(one).replace(str(where.folder), "") for one in words])
            assert listing(where).keys() == {"home/.bashrc", "home/.gitconfig", "canary/file"}
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("ended", "wrong"),
    [
        (Ended(0, 1.0, 1 << 20, b"\x1b[2K\x1b[32mfaster\x1b[0m\r\nline\r\n", ()), []),
        (Ended(0, 1.0, 1, b"kdelta: this is a bug in kdelta: x", ()), ["a bug"]),
        (Ended(1, 1.0, 1, b"", ()), ["exit code 1"]),
        (Ended(0, 1.0, 3 << 30, b"", ()), ["memory: 3072 MiB"]),
        (Ended(0, 1.0, 1, b"\x1b]0;x", ()), ["control character: '\\x1b]0;x'"]),
        (Ended(0, 1.0, 1, b"a\rb", ()), ["control character: 'a\\rb'"]),
        (Ended(-9, 61.0, 1, b"", ("has not ended",)), ["has not ended"]),
    ],
)
def test_what_is_wrong_is_seen(ended: Ended, wrong: list[str], tmp_path: Path) -> None:
    with place(tmp_path, tmp_path, tmp_path) as where:
        assert list(look(where, ended, (0,))) == wrong
        (where.folder / "ran/git").touch()
        assert list(look(where, ended, (0,))) == [*wrong, "programs ran: ['git']"]


def test_what_a_command_writes_and_leaves_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import os, sys; os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '60'); open(sys.argv[1], 'w')"
    )
    monkeypatch.setattr("hostile.KDELTA", sys.executable)
    monkeypatch.setattr("hostile.SAMPLE", 0)
    with place(tmp_path, tmp_path, tmp_path) as where:
        command = Command(("-c", program, where.folder / "canary/new"))
        trial = judged(where, "input", "x", 0, command)
    assert len(trial.wrong) == 2, trial
    assert trial.wrong[0].startswith("processes are left: [b'sleep")
    assert trial.wrong[1] == "changed: ['canary/new']"

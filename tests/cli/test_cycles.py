# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose paths are taken, and on which CPUs model cycles are judged: `--cpu` and `--cycles`."""

from typing import Any

import pytest

from kdelta.cpus.catalog import list_cpus
from kdelta.studies.compare.request import CompareRequest
from tests.cli.studies import Captured, Studies, kdelta

NOTED = "note: the paths of zen3; --cycles judges its model cycles, too"
OLD = "note: model cycles on zen3 are judged, too; --cycles asks for them now"


@pytest.mark.parametrize(
    ("options", "judged", "note"),
    [
        ("--cpu zen3", (["zen3"], False), NOTED),
        ("--cpu zen3 --cpu zen4", (["zen3", "zen4"], False), "note: the paths of zen3 zen4;"),
        ("--cycles", (["zen4"], True), ""),
        ("--cycles zen3", (["zen3"], True), ""),
        ("--cycles=zen3 --cycles zen5", (["zen3", "zen5"], True), ""),
        ("--cpu zen3 --cycles", (["zen3"], True), ""),
        ("--cpu zen3 --cycles zen3", (["zen3"], True), ""),
        ("--cpu zen3 --layouts 16", (["zen3"], True), OLD),
        ("--cpu zen3 --margin 2", (["zen3"], True), OLD),
        ("--cpu zen3 --data", (["zen3"], True), OLD),
        ("--cpu zen3 -q", (["zen3"], False), ""),
        ("", ([], True), ""),
    ],
)
def test_paths_and_model_cycles_of_a_comparison(
    studies: Studies, capsys: Captured, options: str, judged: tuple[list[str], bool], note: str
) -> None:
    assert kdelta("compare", "image:a", "image:b", *options.split()) == 0
    (request,) = studies.asked
    assert isinstance(request, CompareRequest)
    assert ([cpu.name for cpu in request.cpus], request.cycles) == judged
    said = capsys.readouterr().err
    assert note in said
    assert ("note:" in said) is bool(note)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--cpu zen3 --cycles zen4", "--cpu zen3 and --cycles zen4 at once"),
        ("--cpu zen3 --cpu zen4 --cycles zen4", "--cpu zen3 zen4 and --cycles zen4 at once"),
        ("--cycles image:c", "--cycles without a name stands last"),
        ("--cycles --qemu-cpu max", "--cpu zen4 and --qemu-cpu max at once"),
    ],
)
def test_slips(studies: Studies, capsys: Captured, options: str, words: str) -> None:
    assert kdelta("compare", "image:a", "image:b", *options.split()) == 2
    assert studies.asked == []
    assert words in capsys.readouterr().err


class Searches:
    """Stands in for searches: notes what they are asked, and ends them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        for command in ("ablate", "bisect", "crossing"):
            monkeypatch.setattr(f"kdelta.cli.{command}.run_{command}", self.search)

    async def search(self, request: Any, _: object) -> None:
        self.asked.append(request)
        raise KeyboardInterrupt


COMMANDS = {
    "ablate": "ablate ./linux --from a --to b",
    "bisect": "bisect a..b ./linux",
    "crossing": "crossing ./linux",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_searches_take_the_paths_alone_or_with_model_cycles(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    searches = Searches(monkeypatch)
    words = COMMANDS[command].split()
    model = list_cpus()["zen3"].qemu.cpu
    for options in (["--cpu", "zen3"], ["--cycles", "zen3"], ["--cpu", "zen3", "--cycles"]):
        kdelta(*words, *options)
    paths, named, both = searches.asked
    assert (paths.cpu, paths.lab.machine.cpu) == (None, model)
    assert named.cpu == both.cpu == list_cpus()["zen3"]
    assert capsys.readouterr().err.count(NOTED) == 1
    assert kdelta(*words, "--cycles=zen3", "--cycles=zen4") == 2
    assert "model cycles on several CPUs: zen3 zen4" in capsys.readouterr().err

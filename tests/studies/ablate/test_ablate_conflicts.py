# SPDX-License-Identifier: GPL-2.0-or-later
"""Of options of a real kernel, the one that two CPUs contend more without is found by conflicts."""

import asyncio
from pathlib import Path

import pytest

from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.ablate.model import GroupOutcome
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate
from tests.machines.bench import kernel
from tests.native.conftest import compile_c

pytestmark = [pytest.mark.guest, pytest.mark.build, pytest.mark.slow]

TREE = "deb-src:linux-source-6.12"
REGION = "open-many (conflicts)"
CHANGED = (
    ("SLUB_CPU_PARTIAL", "n"),  # slabs that are neither full nor empty go to the node's list
    ("SLAB_FREELIST_HARDENED", "y"),  # instructions of each CPU
    ("IKCONFIG", "y"),  # nothing that is executed
)


def changed(text: str) -> str:
    """The config's text with the options above."""
    for name, value in CHANGED:
        word = f"CONFIG_{name}"
        new = f"# {word} is not set" if value == "n" else f"{word}={value}"
        old = f"{word}=y" if value == "n" else f"# {word} is not set"
        assert f"{old}\n" in text, old
        text = text.replace(f"{old}\n", f"{new}\n")
    return text


@pytest.mark.timeout(4 * 3600)
def test_ablate_finds_the_option_that_cpus_contend_more_without(
    store: Store, tmp_path: Path
) -> None:
    config = kernel(TREE).config
    assert config
    text = Path(config).read_text()  # which the cache may drop meanwhile
    before, after = tmp_path / "before.config", tmp_path / "after.config"
    before.write_text(text)
    after.write_text(changed(text))
    source = Path(__file__).with_name("opening.c")
    program = compile_c(tmp_path / "opening", [source], "-static")
    request = AblateRequest(
        tree=TREE,
        before=str(before),
        after=str(after),
        program=Program((str(program),)),
        switches=False,
        lab=LabRequest(machine=MachineOptions(cpus=2)),
    )
    report = asyncio.run(run_ablate(request, Lab(store, Silent())))
    assert not report.failure
    groups = {group.name: group for group in report.option_groups}
    assert set(groups) == {name for name, _ in CHANGED}
    found, hardened = groups["SLUB_CPU_PARTIAL"], groups["SLAB_FREELIST_HARDENED"]
    assert groups["IKCONFIG"].outcome is GroupOutcome.IDENTICAL
    assert found.outcome is hardened.outcome is GroupOutcome.MEASURED
    # Slabs go from CPU to CPU, and with them the files that are opened: many accesses an iteration.
    assert found.effects[REGION].low > 1000
    assert found.effects["getppid (conflicts)"].value == 0
    assert hardened.effects["open-many"].low > 0
    assert hardened.effects[REGION].value == 0
    (measured,) = found.measured
    (reason,) = (one.reason for one in measured.effects if one.reason)
    assert "slab" in reason

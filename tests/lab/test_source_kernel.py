# SPDX-License-Identifier: GPL-2.0-or-later
"""A real 6.12 from a distribution's source: built, rebuilt for one option, run, and compared.

Its functions have sections of their own, so that test_relinks.py can relink it: CI compiles one
kernel.
"""

import asyncio
from pathlib import Path

import pytest

from kdelta.host.dirs import data_dir
from kdelta.host.files import remove
from kdelta.infer.effects.effects import Effects, Word
from kdelta.kernels.kbuild.built import DIGEST, LOG
from kdelta.kernels.objects.digest_file import load_digest
from kdelta.lab.configs import compare_configs
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from tests.kernels.trees import built

pytestmark = [pytest.mark.build, pytest.mark.guest, pytest.mark.slow]

CONFIG = Path(__file__).parents[2] / "docs/cases/options/speed.config"
PLAIN = f"deb-src:linux-source-6.12 +base:{CONFIG} +sections"
SYSRQ = f"{PLAIN} +CONFIG_MAGIC_SYSRQ=y"


def compared(workload: str, *operations: str) -> Effects:
    request = CompareRequest(
        base=PLAIN,
        others=(SYSRQ,),
        workload=workload,
        operations=operations,
        lab=LabRequest(perturbations=2),
    )
    with Store.open(data_dir()) as store:
        (found,) = asyncio.run(run_compare(request, Lab(store, Silent())))
    assert found.base.failure == found.other.failure == ""
    assert found.effects is not None
    return found.effects


def test_it_is_built_and_boots_from_vmlinux() -> None:
    kernel, record = built(PLAIN)
    assert kernel.image_format == "vmlinux"
    assert kernel.release.startswith("6.12.")
    assert "kdelta@kdelta" in kernel.banner
    assert record.missing == ()
    assert len(load_digest(record.path / DIGEST).objects) > 1000


def test_one_option_compiles_only_what_it_reaches_and_the_same_again_is_the_same() -> None:
    plain, plain_record = built(PLAIN)
    first, record = built(SYSRQ)
    # Both are made again, so that the output folder is at PLAIN whatever was last built in it.
    for one in (plain_record, record):
        remove(one.path)
    again, _ = built(PLAIN)
    assert again.identity == plain.identity
    again, record = built(SYSRQ)
    assert again.identity == first.identity
    log = (record.path / LOG).read_text()
    assert log.count("\n  CC ") < 100


def test_what_it_changed_and_what_it_did_not() -> None:
    effects = compared("syscalls", "getppid", "uname", "write-null-1b")
    words = {one.name: one.verdict.word for one in effects.operations}
    assert words == dict.fromkeys(("getppid", "uname", "write-null-1b"), Word.SAME)
    _, plain = built(PLAIN)
    _, sysrq = built(SYSRQ)
    difference = compare_configs(plain, sysrq)
    assert "CONFIG_MAGIC_SYSRQ" in [flip.option for flip in difference.flips]
    assert "reaches" in difference.reach["CONFIG_MAGIC_SYSRQ"]


def test_a_module_is_built_against_it() -> None:
    operations = ("user-encrypt", "user-kflags-encrypt", "kernel-encrypt")
    effects = compared("aes", *operations)
    found = {one.name: one for one in effects.operations}
    assert list(found) == list(operations), effects.warnings
    for one in found.values():
        assert one.verdict.word is Word.SAME
        assert one.base is not None
    user, kernel = found["user-kflags-encrypt"].base, found["kernel-encrypt"].base
    assert user is not None
    assert kernel is not None
    assert abs(user.value - kernel.value) < 5, "one source, and the same flags"

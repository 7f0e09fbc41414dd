# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as KTAP, read by the kernel's own parser."""

import importlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from kdelta.host.command import log_to_stderr
from kdelta.kernels.sources.source import Source, source_file, source_of
from kdelta.report.document import Outcome
from kdelta.spec.kernel import DebSrcSpec, parse_kernel_spec
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import document_of
from kdelta.workloads.catalog import find_workload
from tests.report.example_stored import EVERY, EXAMPLES, nasty

ktap = FORMS["ktap"].render

FILES = ("kunit_parser.py", "kunit_printer.py")
FOLDER = "tools/testing/kunit"


@pytest.fixture(scope="module")
def kunit_parser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The kernel's own reader, of the source that the workload kbuild compiles, too."""
    tree = find_workload("kbuild").kernel_tree
    assert tree is not None
    spec = parse_kernel_spec(tree.source)
    assert isinstance(spec, DebSrcSpec)
    source = source_of(spec, log_to_stderr)
    assert isinstance(source, Source)
    folder = tmp_path_factory.mktemp("kunit")
    for name in FILES:
        text = source_file(source, f"{FOLDER}/{name}")
        assert text is not None, f"{source.name} has no {FOLDER}/{name}"
        (folder / name).write_text(text)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("kunit_parser")
    finally:
        sys.path.remove(str(folder))
        for name in FILES:
            sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.network
@pytest.mark.slow
@EVERY
def test_the_kernels_parser_reads_it(name: str, kunit_parser: ModuleType) -> None:
    document = document_of(EXAMPLES[name])
    found = kunit_parser.parse_run_tests(ktap(EXAMPLES[name]).splitlines())
    status = kunit_parser.TestStatus
    words = {
        Outcome.OK: status.SUCCESS,
        Outcome.SLOWER: status.FAILURE,
        Outcome.FAILED: status.FAILURE,
        Outcome.UNKNOWN: status.SKIPPED,
    }

    def errors(test: Any) -> int:
        return int(test.counts.errors) + sum(errors(one) for one in test.subtests)

    assert errors(found) == 0
    assert [suite.name for suite in found.subtests] == [
        escaped_name(one.name) for one in document.suites
    ]
    for suite, ours in zip(found.subtests, document.suites, strict=True):
        assert [(test.name, test.status) for test in suite.subtests] == [
            (escaped_name(case.name), words[case.outcome]) for case in ours.cases
        ]


def escaped_name(name: str) -> str:
    return name.replace("#", r"\x23")


def test_ktap_by_its_own_rules() -> None:
    """As Documentation/dev-tools/ktap.rst has it: a version, a plan, a line for each test."""
    text = ktap(EXAMPLES["compare"])
    assert text.isascii()
    lines = text.splitlines()
    assert lines[:2] == ["KTAP version 1", "1..2"]
    assert "  KTAP version 1" in lines
    assert "  1..10" in lines
    results = [line for line in lines if re.match(r" *(not )?ok ", line)]
    top = [line for line in results if not line.startswith(" ")]
    assert top == ["not ok 1 kernels", "not ok 2 path"]
    inner = [line.replace("not ", "").split()[1] for line in results if line.startswith("  ")]
    assert inner == [str(number) for number in (1, 2, *range(1, 11))]
    assert "  ok 10 futex-wake # SKIP not comparable (only in other)" in lines
    assert "  # read-zero-64k: mixed (+1213%)" in lines
    assert lines[-1] == "# Totals: pass:4 fail:3 xfail:0 xpass:0 skip:4 error:1"


@pytest.mark.slow
@pytest.mark.network
def test_nasty_names_in_ktap(kunit_parser: ModuleType) -> None:
    text = ktap(nasty())
    assert text.isascii()
    found = kunit_parser.parse_run_tests(text.splitlines())
    plain = kunit_parser.parse_run_tests(ktap(EXAMPLES["compare"]).splitlines())
    assert str(found.counts) == str(plain.counts)
    names = [test.name for test in found.subtests[1].subtests]
    assert names[0].startswith(r"getppid a \x23 SKIP |b| `c` <script>")

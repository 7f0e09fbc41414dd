# SPDX-License-Identifier: GPL-2.0-or-later
"""The glossary has every word of a verdict or status, and every heading of a table."""

import html
import itertools
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from kdelta.cpus import list_cpus
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Adds
from kdelta.infer.effects.functions import FunctionChange
from kdelta.spec.run import RunStatus
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import stored_of
from kdelta.workloads.catalog import list_workloads

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/report/kept"
RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")
"""A kernel's release, as columns of kernels are named."""
CPU = re.compile(r"\b(" + "|".join(map(re.escape, list_cpus())) + r")\b")


def terms() -> set[str]:
    """What stands in backticks in the first cell of a row."""
    rows = re.findall(r"^\| (`[^|]*`) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    return {term for row in rows for term in re.findall(r"`([^`]+)`", row)}


def headings() -> Iterator[str]:
    """The headings of all tables of all kept studies, as Markdown and as a page."""
    for file in KEPT.rglob("*.z"):
        stored = stored_of(zlib.decompress(file.read_bytes()))
        lines = FORMS["markdown"].render(stored).splitlines()
        for head, rule in itertools.pairwise(lines):
            if rule.startswith("| :---"):
                yield from head.strip("| ").split(" | ")
        page = FORMS["html"].render(stored)
        for cell in re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page, re.DOTALL):
            yield html.unescape(re.sub("<[^>]+>", "", cell)).strip()


def test_words_of_verdicts_are_in_the_glossary() -> None:
    words = {str(word) for kind in (Word, RunStatus, FunctionChange, Adds) for word in kind}
    assert words - terms() == set()


def test_headings_of_tables_are_in_the_glossary() -> None:
    named = (heading for heading in headings() if not RELEASE.fullmatch(heading))
    found = {CPU.sub("CPU", heading) for heading in named}
    assert len(found) > 100
    assert found - terms() - set(list_workloads()) - {""} == set()

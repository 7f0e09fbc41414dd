# SPDX-License-Identifier: GPL-2.0-or-later
"""Links between files of the repository lead somewhere. `make docs` checks the site's own."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
GENERATED = re.compile(r"docs/reference/(commands|cpus|workloads|modules/\w+)\.md")
"""Pages that exist in the site alone."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"\bdocs/[\w/-]+\.md")
SOURCES = ("src", "native", "scripts", "tests")
SUFFIXES = {".py", ".c", ".h", ".toml", ""}


def anchors(page: Path) -> set[str]:
    """The ids that GitHub and the site give to the headings of a page."""
    heads = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(page.read_text()):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if "://" in link or GENERATED.fullmatch(str(path.relative_to(root))):
            continue
        if not path.exists() or (anchor and anchor not in anchors(path)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_exist(page: Path) -> None:
    assert broken(page) == []


def test_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A head\n[a](nowhere.md) [b](#nowhere) [c](#a-head) [d](page.md#a-head)\n")
    assert broken(page, tmp_path) == ["nowhere.md", "#nowhere"]


def test_pages_that_sources_name_exist() -> None:
    files = (
        file
        for folder in SOURCES
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and file.suffix in SUFFIXES
    )
    named = {name for file in files for name in MENTION.findall(file.read_text(errors="ignore"))}
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []

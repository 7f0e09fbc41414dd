# SPDX-License-Identifier: GPL-2.0-or-later
"""MkDocs hooks: generated pages, and links from the documentation into the source tree."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from scripts.docs_pages import ROOT, reference_pages

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, text in reference_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links to what is no page.

    A file outside docs/ is published as text. A folder becomes its README, or its path as text.
    """
    if page.file.abs_src_path is None:
        return markdown
    folder = Path(page.file.abs_src_path).parent

    def rewritten(link: re.Match[str]) -> str:
        text, target = link.groups()
        path = (folder / target).resolve()
        if path.is_dir():
            if (path / "README.md").is_file():
                return f"[{text}]({target.rstrip('/')}/README.md)"
            return f"{text} (`{path.relative_to(ROOT)}`)"
        if not path.is_file() or path.is_relative_to(config.docs_dir):
            return link[0]
        published = f"source/{path.relative_to(ROOT)}.txt"
        if files.get_file_from_path(published) is None:
            files.append(File.generated(config, published, content=path.read_bytes()))
        up = "../" * page.file.src_uri.count("/")
        return f"[{text}]({up}{published})"

    return _LINK.sub(rewritten, markdown)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the pages of the documentation's reference from the program and its sources."""

import ast
import contextlib
import html
import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src/kdelta"
_NO_FILL = "\b\n"
"""What stands before a paragraph of help whose lines stay as they are."""


def reference_pages() -> dict[str, str]:
    """Return the generated pages: Markdown by its path below docs/."""
    return {
        "reference/commands.md": commands_page(),
        "reference/cpus.md": cpus_page(),
        "reference/workloads.md": workloads_page(),
        **module_pages(),
    }


def commands_page() -> str:
    """Describe every command: its help, usage and options."""
    group, context, commands = all_commands()
    epilogs = {name: paragraphs(one.epilog) for name, one in commands.items()}
    times = Counter(paragraph for found in epilogs.values() for paragraph in found)
    shared = [paragraph for paragraph, count in times.items() if count > 1]
    lines = ["# Commands", "", group.help, "", *paragraphs(group.epilog), ""]
    for name, command in commands.items():
        lines += _command(name, command, context)
        own = [one for one in epilogs[name] if one not in shared]
        lines += _verbatim(own)
        if len(own) < len(epilogs[name]):
            lines += ["", "It takes [kernel specs and changes](#kernel-specs-and-changes).", ""]
    lines += ["## Kernel specs and changes", "", *_verbatim(shared)]
    return "\n".join(lines) + "\n"


def all_commands() -> tuple[Any, Any, dict[str, Any]]:
    """Return kdelta as click knows it, its context, and its commands by name."""
    from kdelta.cli.main import app  # noqa: PLC0415  (slow, and a fault in it must name the page)

    group: Any = app
    context = group.make_context("kdelta", [], resilient_parsing=True)
    return (
        group,
        context,
        {name: group.get_command(context, name) for name in group.list_commands(context)},
    )


def paragraphs(epilog: str | None) -> list[str]:
    """Return the paragraphs of a help text's end, whose lines stay as they are."""
    parts = (epilog or "").replace(_NO_FILL, "").split("\n\n")
    return [part.strip("\n") for part in parts if part.strip()]


def _verbatim(paragraphs: Iterable[str]) -> list[str]:
    text = "\n\n".join(paragraphs)
    return ["```text", text, "```", ""] if text else []


def _command(name: str, command: Any, group: Any) -> Iterator[str]:
    context = command.make_context(name, [], parent=group, resilient_parsing=True)
    yield from (f"## kdelta {name}", "", html.escape(command.help, quote=False), "")
    yield from ("```text", command.get_usage(context).removeprefix("Usage: "), "```", "")
    rows = [param.get_help_record(context) for param in command.get_params(context)]
    yield from ("| argument or option | effect |", "|---|---|")
    yield from (f"| <code>{_cell(row[0])}</code> | {_cell(row[1])} |" for row in rows if row)
    yield ""


def _cell(text: str) -> str:
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def cpus_page() -> str:
    """Show what each CPU file says, with the source of every figure."""
    table = kdelta("cpus")
    names = [line.split()[0] for line in table.partition("\n\n")[0].splitlines()[1:]]
    lines = ["# CPUs", "", "[CPUs and model cycles](../cpus.md) describes the file.", ""]
    lines += _verbatim([table])
    for name in names:
        lines += [f"## {name}", "", *_verbatim([kdelta("cpus", name)])]
    return "\n".join(lines) + "\n"


def workloads_page() -> str:
    """List the workloads and their operations."""
    about = (
        "[nat](../nat.md), [kbuild](../kbuild.md) and [wisconsin](../wisconsin.md) have pages of"
        " their own."
    )
    return "\n".join(["# Workloads", "", about, "", *_verbatim([kdelta("workloads")])]) + "\n"


def kdelta(*words: str) -> str:
    """Return what a command prints, without any of the user's own files."""
    from kdelta.cli.main import ended  # noqa: PLC0415

    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        own = {f"KDELTA_{kind}_DIR": folder for kind in ("CONFIG", "DATA", "CACHE")}
        with mock.patch.dict(os.environ, own):
            code = ended(words)
    if code:
        raise RuntimeError(f"kdelta {' '.join(words)} ended with {code}")
    return printed.getvalue().strip("\n")


def module_pages() -> dict[str, str]:
    """Describe the public classes and functions of every module, a page for each package."""
    packages = sorted(one.parent for one in SOURCES.glob("*/__init__.py"))
    lines = ["# Python modules", "", "| package | what it does |", "|---|---|"]
    pages = {}
    for package in packages:
        pages[f"reference/modules/{package.name}.md"] = _package_page(package)
        doc = _cell(_doc(ast.parse((package / "__init__.py").read_text())).split("\n\n")[0])
        lines.append(f"| [{package.name}]({package.name}.md) | {doc} |")
    return {"reference/modules/index.md": "\n".join(lines) + "\n", **pages}


def _package_page(package: Path) -> str:
    lines = [f"# kdelta.{package.name}", ""]
    for file in sorted(package.rglob("*.py")):
        tree = ast.parse(file.read_text())
        name = ".".join(file.relative_to(package).with_suffix("").parts).removesuffix("__init__")
        title = f"kdelta.{package.name}.{name}".rstrip(".")
        lines += [f"## {title}", "", _doc(tree), ""]
        for node in tree.body:
            lines += _definition(node)
    return "\n".join(lines) + "\n"


def _definition(node: ast.stmt) -> Iterator[str]:
    """A public class or function as Markdown, nothing for all else."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if node.name.startswith("_"):
        return
    yield from (f"### {node.name}", "", "```python", _signature(node), "```", "", _doc(node), "")


def _signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The head of a function; of a class its fields, too."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        head = f"class {node.name}({bases})" if bases else f"class {node.name}"
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        return "\n".join([head, *(f"    {ast.unparse(one)}" for one in fields)])
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{word} {node.name}({ast.unparse(node.args)}){returns}"


def _doc(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A docstring; its indented lines (lists of fields) stay as they are."""
    return html.escape(ast.get_docstring(node) or "", quote=False)

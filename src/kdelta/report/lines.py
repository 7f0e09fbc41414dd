# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of a report: at most 80 columns of plain ASCII, save for names that are longer."""

import textwrap
from collections.abc import Iterable

from kdelta.counts.model import KERNEL
from kdelta.store.model import Facts

WIDTH = 80


def ascii_only(text: str) -> str:
    """The text with what is no printable ASCII escaped, line ends kept."""
    return "".join(
        char if char == "\n" or " " <= char <= "~" else ascii(char)[1:-1] for char in text
    )


def wrapped(text: str, first: str, later: str) -> list[str]:
    """A text in lines, with what they begin with; words are never broken."""
    return textwrap.wrap(
        text,
        WIDTH - 1,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def machine_facts(machine: Facts) -> list[tuple[str, str]]:
    """Return the machine and its CPU, and every other known fact, as labels and texts."""
    facts = dict(machine)
    cpu, model = facts.pop("cpu", ""), facts.pop("cpu_model", "")
    like, force = facts.pop("cpu_like", ""), facts.pop("force", "")
    words = [str(facts.pop(key)) for key in ("name", "arch") if key in facts]
    if "memory_mib" in facts:
        words.append(f"{facts.pop('memory_mib')} MiB")
    if "cpus" in facts:
        words.append(f"{facts.pop('cpus')} CPUs")
    if "qemu" in facts:
        words.append(f"QEMU {facts.pop('qemu')}")
    words += [f"{key.replace('_', ' ')} {value}" for key, value in facts.items() if value != ""]
    found = [("machine", ", ".join(words))]
    if cpu or model:
        both = f"{model} ({cpu})" if cpu and model else str(cpu or model)
        # A CPU's features are one long word: let it wrap.
        text = (f"like {like}: " if like else "") + both.replace(",", ", ")
        if is_bare(machine):
            text += "; its features are not forced in the kernel"
        found.append(("CPU", text + (f"; forced in the kernel: {force}" if force else "")))
    return found


def is_bare(machine: Facts) -> bool:
    """Whether the machine is like the default CPU, but for the features that are to be forced."""
    return "cpu_like" in machine and "force" not in machine


def function_name(name: str, origin: str, moved_from: str | None = None) -> str:
    """A function with its module or binary, where it is not of the kernel's image."""
    where = "" if origin == KERNEL else f" {origin}"
    return f"{name}{where}" + (f" (was in {moved_from})" if moved_from else "")


def finished(lines: Iterable[str]) -> str:
    """The report's text."""
    return ascii_only("\n".join(line.rstrip() for line in lines)) + "\n"


def merged(texts: Iterable[str]) -> list[str]:
    """Return texts of "NAME: WHAT" so that what holds for several names is there once."""
    found: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        name, sign, what = text.partition(": ")
        if not sign or " " in name:
            name, what = "", text
        found.setdefault(what, []).append(name)
    return [": ".join(filter(None, (", ".join(filter(None, names)), what)))
            for what, names in found.items()]  # fmt: skip

# SPDX-License-Identifier: GPL-2.0-or-later
"""A small reader of a tree's Kconfig files: what depends on what. It explains and proposes; what a
config comes to is always said by the tree's own conf.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kdelta.kernels.config.kconfig_expr import TRUE, Expr, parse_expr

_ARCH_FOLDERS = {
    **dict.fromkeys(("i386", "x86_64"), "x86"),
    **dict.fromkeys(("sparc32", "sparc64"), "sparc"),
    "parisc64": "parisc",
    "sh64": "sh",
}
"""ARCH -> folder below arch/, as in the tree's Makefile, where they differ."""

_TYPES = ("bool", "boolean", "tristate", "string", "int", "hex")
_IF = re.compile(r"\sif\s+(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)")
_PROMPT = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_VARIABLE = re.compile(r"([\w-]+)\s*(:?=|\+=)\s*(.*)")
_REFERENCE = re.compile(r"\$\((\w+)\)|\$(\w+)")


class Conditional(msgspec.Struct, frozen=True):
    """A value that holds, or an option that is selected, under a condition."""

    value: str
    condition: str = ""


class KconfigEntry(msgspec.Struct):
    """One place in the files that defines an option. `conditions` must all hold: its own, and
    those around it. `prompt` is None where the user is not asked, else the condition of asking.
    `choice` numbers the choice it is a member of.
    """

    name: str
    conditions: list[str]
    kind: str = ""
    prompt: str | None = None
    defaults: list[Conditional] = msgspec.field(default_factory=list)
    selects: list[Conditional] = msgspec.field(default_factory=list)
    ranges: list[Conditional] = msgspec.field(default_factory=list)
    choice: int | None = None

    def depends(self) -> Expr:
        """What must hold for the option to exist."""
        return _all(self.conditions)

    def asked_if(self) -> Expr:
        """What must hold for a user to be asked; meaningless where `prompt` is None."""
        return _all([*self.conditions, self.prompt or ""])


class Kconfig:
    """All options of a tree for one ARCH, by name without CONFIG_."""

    def __init__(self, arch: str = "x86") -> None:
        self.arch = arch
        self.entries: dict[str, list[KconfigEntry]] = {}
        self.choices: list[list[str]] = []
        self._selectors: dict[str, list[tuple[KconfigEntry, str]]] | None = None

    def kind(self, name: str) -> str:
        """bool, tristate, int, hex or string; empty for an option that is not there."""
        return next((entry.kind for entry in self.entries.get(name, []) if entry.kind), "")

    def may_be_set(self, name: str) -> bool:
        """Whether a user may ever be asked for it, or this tree does not know it: then it was set
        for another one.
        """
        entries = self.entries.get(name)
        return entries is None or any(entry.prompt is not None for entry in entries)

    def choice_of(self, name: str) -> list[str]:
        """The members of the choice that an option belongs to; empty if it is in none."""
        found = [entry.choice for entry in self.entries.get(name, []) if entry.choice is not None]
        return self.choices[found[0]] if found else []

    def selectors(self, name: str) -> list[tuple[KconfigEntry, str]]:
        """What selects an option, each with the condition of the select."""
        if self._selectors is None:
            self._selectors = {}
            for entry in itertools.chain.from_iterable(self.entries.values()):
                for one in entry.selects:
                    self._selectors.setdefault(one.value, []).append((entry, one.condition))
        return self._selectors.get(name, [])


def read_kconfig(tree: Path, arch: str = "x86") -> Kconfig:
    """Reads the Kconfig files of a tree for one ARCH; a file that is not there has no options."""
    kconfig = Kconfig(_ARCH_FOLDERS.get(arch, arch))
    names = {"SRCARCH": kconfig.arch, "ARCH": arch, "HEADER_ARCH": "x86"}
    _KconfigReader(tree, kconfig, names).file("Kconfig")
    return kconfig


def _all(conditions: list[str]) -> Expr:
    parts = tuple(parse_expr(text) for text in dict.fromkeys(conditions) if text)
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Expr("and", "", parts)


class _Block(msgspec.Struct):
    """An open if, menu or choice; `conditions` grows with its own "depends on"."""

    conditions: list[str]
    choice: int | None = None


class _KconfigReader:
    """Reads files into a Kconfig, with the blocks that are open around the current line."""

    def __init__(self, tree: Path, kconfig: Kconfig, variables: dict[str, str]) -> None:
        self._tree = tree
        self._kconfig = kconfig
        self._variables = variables
        self._blocks: list[_Block] = []
        self._entry: KconfigEntry | _Block | None = None

    def file(self, name: str) -> None:
        """Reads one file; a pattern stands for all that match it."""
        paths = sorted(self._tree.glob(name)) if re.search(r"[*?\[]", name) else [self._tree / name]
        for path in paths:
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            for line in _statements(text):
                self._statement(line, path)

    def _statement(self, line: str, path: Path) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word in ("config", "menuconfig"):
            self._open_entry(rest)
        elif word in ("source", "osource"):
            self.file(self._expand(rest.strip("\"'")))
        elif word in ("rsource", "orsource"):
            name = path.parent / self._expand(rest.strip("\"'"))
            self.file(str(name.relative_to(self._tree)))
        elif word in ("if", "menu", "choice"):
            self._open_block(word, rest)
        elif word in ("endif", "endmenu", "endchoice"):
            if self._blocks:
                self._blocks.pop()
            self._entry = None
        elif word in ("comment", "mainmenu"):
            self._entry = None
        elif not self._attribute(word, rest) and (match := _VARIABLE.fullmatch(line)):
            self._variables[match[1]] = self._expand(match[3])

    def _open_entry(self, name: str) -> None:
        # "depends on" of a menu or choice stands before what is in it, so the blocks are complete.
        entry = KconfigEntry(name, [text for block in self._blocks for text in block.conditions])
        around = [block.choice for block in self._blocks if block.choice is not None]
        entry.choice = around[-1] if around else None
        if entry.choice is not None and name not in self._kconfig.choices[entry.choice]:
            self._kconfig.choices[entry.choice].append(name)
        self._kconfig.entries.setdefault(name, []).append(entry)
        self._entry = entry

    def _open_block(self, word: str, rest: str) -> None:
        block = _Block([rest] if word == "if" else [])
        if word == "choice":
            block.choice = len(self._kconfig.choices)
            self._kconfig.choices.append([])
        self._blocks.append(block)
        self._entry = None if word == "if" else block

    def _attribute(self, word: str, rest: str) -> bool:
        """Takes a line that says something of the option, menu or choice before it."""
        target = self._entry
        if target is None:
            return False
        if word == "depends":
            condition, only_if = _split_if(rest.removeprefix("on").strip())
            target.conditions.append(f"(!({only_if}) || ({condition}))" if only_if else condition)
            return True
        if isinstance(target, _Block):
            # A menu's "visible if" hides prompts only, which nothing here needs to know.
            return word in (*_TYPES, "prompt", "default", "optional", "visible")
        value, condition = _split_if(rest)
        if word in _TYPES:
            target.kind = "bool" if word == "boolean" else word
            if rest:
                target.prompt = condition
        elif word == "prompt":
            target.prompt = condition
        elif word in ("def_bool", "def_tristate"):
            target.kind = word.removeprefix("def_")
            target.defaults.append(Conditional(value, condition))
        elif word in ("default", "select", "range"):
            lists = {"default": target.defaults, "select": target.selects, "range": target.ranges}
            lists[word].append(Conditional(value, condition))
        else:
            # Nothing here looks at imply: the tree's own conf says what it comes to.
            return word in ("imply", "option", "modules", "transitional", "optional")
        return True

    def _expand(self, text: str) -> str:
        return _REFERENCE.sub(
            lambda match: self._variables.get(match[1] or match[2], match[0]), text
        )


def _split_if(text: str) -> tuple[str, str]:
    """Splits `VALUE if CONDITION`; a prompt's own words may hold an "if"."""
    start = match.end() if (match := _PROMPT.match(text)) else 0
    if (found := _IF.search(text, max(0, start - 1))) is None:
        return text.strip(), ""
    return text[: found.start()].strip(), text[found.end() :].strip()


def _statements(text: str) -> Iterator[str]:
    """The lines that mean something: joined, without comments and help, blanks made single."""
    help_indent: int | None = None
    in_help = False
    joined = ""
    for raw in text.split("\n"):
        if not (line := raw.rstrip()):
            continue
        if in_help:
            expanded = line.expandtabs()
            indent = len(expanded) - len(expanded.lstrip())
            if help_indent is None and indent > 0:
                help_indent = indent
            if help_indent is not None and indent >= help_indent:
                continue
            in_help = False
        stripped = line.strip()
        if stripped.endswith("\\"):
            joined += stripped[:-1] + " "
            continue
        stripped, joined = joined + stripped, ""
        if stripped in ("help", "---help---"):
            in_help, help_indent = True, None
            continue
        if stripped := _without_comment(stripped):
            yield stripped.replace("\t", " ")


def _without_comment(line: str) -> str:
    if "#" not in line:
        return line
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[at - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char == "#":
            return line[:at].rstrip()
    return line

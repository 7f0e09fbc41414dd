# SPDX-License-Identifier: GPL-2.0-or-later
"""One thing that a figure depends on is changed between two commands: hostile.py looks whether the
second is answered by the first one's runs.

The program prints what it depends on: a word of a file that a link leads to, of its library, of a
header, and its argument. Contents change under the same size and time. With the argument of the
program that `run --against` is given it computes longer, so that the answer is "faster".
"""

import os
import random
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from kdelta.host.emulator import find_qemu
from kdelta.host.target import target

PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "word.h"
const char *library_word(void);
int main(int n, char **words)
{
    char text[64] = "";
    struct stat state;
    FILE *file = fopen("link", "r");

    for (volatile int left = strcmp(words[n - 1], "old") ? 0 : 100000; left > 0; left--)
        ;
    stat("asked", &state);
    if (!file || !fgets(text, sizeof text, file))
        return 1;
    printf("%s %s %s ", text, library_word(), WORD);
    printf("%s %lld\\n", words[n - 1], (long long)state.st_size);
    return 0;
}
"""
OLD = "old"
"""The argument of the program that another one is compared with."""
_OLD_NS = 1_700_000_000_123_456_789


class Depends:
    """The files of one command's program in a folder, and the words that it prints."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.words = {
            name: self._word() for name in ("a", "b", "lib1", "lib2", "header", "argument")
        }
        self.link, self.library, self.size, self.option = "a", "lib1", 10, "kdelta"
        (folder / "main.c").write_text(PROGRAM)
        for name in ("a", "b"):
            self._write(folder / name, self.words[name])
        for name in ("lib1", "lib2"):
            (folder / name).mkdir()
            self._build_library(name)
        self._write(folder / "asked", "x" * self.size)
        self._point()
        self._build()
        self._write_qemu()

    def printed(self, form: str) -> set[str]:
        """What the programs of that form must print now."""
        words = (self.words[self.link], self.words[self.library], self.words["header"])
        arguments = [self.words["argument"], *([OLD] if form == "against" else [])]
        return {f"{' '.join(words)} {one} {self.size}" for one in arguments}

    @property
    def environment(self) -> dict[str, str]:
        """What its commands find besides the usual."""
        return {"LD_LIBRARY_PATH": str(self.folder / self.library)}

    @property
    def command(self) -> tuple[str, ...]:
        """The program with its argument."""
        return "./program", self.words["argument"]

    def change(self, kind: str) -> None:
        """Change one thing of that kind: see CHANGES."""
        CHANGES[kind](self)

    def content(self) -> None:
        """Write another content in place."""
        self.words[self.link] = self._word()
        self._write(self.folder / self.link, self.words[self.link])

    def replaced(self) -> None:
        """Put another file in a file's place."""
        self.words[self.link] = self._word()
        self._write(self.folder / "new", self.words[self.link])
        (self.folder / "new").replace(self.folder / self.link)

    def asked_size(self) -> None:
        """Give the file that is only asked about another size."""
        self.size += 1
        self._write(self.folder / "asked", "x" * self.size)

    def other_link(self) -> None:
        """Let the link lead to the other file."""
        self.link = "b" if self.link == "a" else "a"
        self._point()

    def library_content(self) -> None:
        """Compile another library in the place of the one that is used."""
        self.words[self.library] = self._word()
        self._build_library(self.library)

    def variable(self) -> None:
        """Set LD_LIBRARY_PATH to the other library."""
        self.library = "lib2" if self.library == "lib1" else "lib1"

    def header(self) -> None:
        """Compile the program with another header."""
        self.words["header"] = self._word()
        self._build()

    def argument(self) -> None:
        """Call the program with another word."""
        self.words["argument"] = self._word()

    def qemu(self) -> None:
        """Let the script in QEMU's place add another option, which is in a file next to it."""
        self.option = self._word()
        self._write_qemu()

    def _word(self) -> str:
        return "".join(self.chance.choices("abcdefghijklmnop", k=8))

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        os.utime(path, ns=(_OLD_NS, _OLD_NS))

    def _point(self) -> None:
        (self.folder / "link").unlink(missing_ok=True)
        (self.folder / "link").symlink_to(self.link)
        os.utime(self.folder / "link", ns=(_OLD_NS, _OLD_NS), follow_symlinks=False)

    def _gcc(self, output: Path, *words: str) -> None:
        subprocess.run(["gcc", "-O1", "-o", output, *words], cwd=self.folder, check=True)
        os.utime(output, ns=(_OLD_NS, _OLD_NS))

    def _build_library(self, name: str) -> None:
        text = f'const char *library_word(void) {{ return "{self.words[name]}"; }}\n'
        (self.folder / "lib.c").write_text(text)
        self._gcc(self.folder / name / "libword.so", "-shared", "-fPIC", "lib.c")

    def _build(self) -> None:
        (self.folder / "word.h").write_text(f'#define WORD "{self.words["header"]}"\n')
        self._gcc(self.folder / "program", "main.c", "-Llib1", "-lword")

    def _write_qemu(self) -> None:
        begin = shlex.join(find_qemu(target("x86_64"), "pin").argv)
        self._write(self.folder / "option", f"-name {self.option}")
        script = self.folder / "qemu"
        self._write(script, f'#!/bin/sh\nexec {begin} $(cat {self.folder}/option) "$@"\n')
        script.chmod(0o755)


CHANGES: dict[str, Callable[[Depends], None]] = {
    "content": Depends.content,
    "replaced": Depends.replaced,
    "asked": Depends.asked_size,
    "link": Depends.other_link,
    "library": Depends.library_content,
    "variable": Depends.variable,
    "header": Depends.header,
    "argument": Depends.argument,
    "qemu": Depends.qemu,
}
"""What can be changed, by kind."""


FORMS = ("run", "compare", "against")
SELDOM = 4
"""One of so many rounds has a change of QEMU, for which kernels boot again."""
_KERNELS = ("deb:linux-image-cloud-amd64@bookworm", "deb:linux-image-6.12-cloud-amd64@bookworm")


def kind_of(number: int) -> str:
    """What the trial of that number changes."""
    kinds = list(CHANGES)
    kind = kinds[number // len(FORMS) % len(kinds)]
    is_turn = number // len(FORMS) // len(kinds) % SELDOM == 0
    return kind if kind != "qemu" or is_turn else "content"


def words_of(form: str, depends: Depends) -> tuple[str, ...]:
    """The command line of that form."""
    options = ("--quiet", "--json", "--qemu", "./qemu", "--", *depends.command)
    if form == "compare":
        return ("compare", *_KERNELS, "--perturb", "1", *options)
    against = ("--against", f"./program {OLD}") if form == "against" else ()
    return ("run", _KERNELS[0], *against, *options)

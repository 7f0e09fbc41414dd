# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that only a shell knows, or that are a shell's line in one word, as slips after --."""

import re
import shlex
import shutil
from collections.abc import Sequence

from kdelta.spec.errors import UserError

_WORDS = (
    ". : alias bg break builtin case cd command continue declare dirs disown do eval exec exit "
    "export fg for function getopts hash help history if jobs let local popd pushd read readonly "
    "return select set shift shopt source suspend time times trap type typeset ulimit umask "
    "unalias unset until wait while { ( ! [["
)
_OF_SHELLS = frozenset(_WORDS.split())
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OF_LINES = re.compile(r"[|&;<>()$`*?\n]")


def shell_meant(command: Sequence[str]) -> UserError | None:
    """Return what to report of a command whose first word is no program here; None if no shell
    would know more of it.
    """
    word = command[0]
    if _ASSIGNMENT.match(word):
        return _slip(word, "it sets a variable", ("env", *command))
    if word in _OF_SHELLS:
        by_shell = ("sh", "-c", shlex.join(command) if word.isalpha() else " ".join(command))
        return _slip(word, "it is a word of the shell, no program", by_shell)
    try:
        words = shlex.split(word)
    except ValueError:
        return None
    if len(words) < 2 or not (words[0] in _OF_SHELLS or shutil.which(words[0])):
        return None
    line = " ".join((word, *map(shlex.quote, command[1:])))
    is_plain = not _OF_LINES.search(word) and words[0] not in _OF_SHELLS
    instead = (*words, *command[1:]) if is_plain else ("sh", "-c", line)
    return _slip(repr(word), "it is a command line in one word", instead)


def _slip(word: str, why: str, instead: Sequence[str]) -> UserError:
    hint = f"for example: -- {shlex.join(instead)}"
    return UserError(f"cannot run {word}: {why}", hint, ("--", "--", *instead))

# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs in the end where a program is started by another one, such as a script in its place."""

import re
from collections.abc import Sequence
from pathlib import Path

from kdelta.host.environment import environ_with
from kdelta.host.files import FileState, sha256_state

_REPORTED = re.compile(r"^runs-as ([0-9a-f]*) ([0-9a-f]*) ([0-9a-f]*)$", re.MULTILINE)
_OF_SHELLS = frozenset(("OLDPWD", "PWD", "SHLVL", "_"))


def what_runs(reported: str, argv: Sequence[str], program: FileState) -> tuple[str, ...]:
    """Return what another start would have to have in common with this one, besides the program
    that was named: the executable's content, words and variables that others added, and the content
    of files that such words name. Nothing where it runs as it was started.

    reported: what it printed of itself (native/probe); argv: how it was started.
    """
    found = _REPORTED.search(reported)
    if found is None:
        return ()
    executable, words, variables = (
        bytes.fromhex(one).decode("utf-8", "replace") for one in found.groups()
    )
    added = words.split("\0")[:-1]
    for word in argv:
        if word in added:
            added.remove(word)
    ours = environ_with()
    assigned = [one for one in argv if re.match(r"\w+=", one)]
    own = [
        one
        for one in sorted(filter(None, variables.split("\0")))
        if one.partition("=")[0] not in (*ours, *_OF_SHELLS) and one not in assigned
    ]
    facts = [f"word {word}" for word in added] + [f"variable {one}" for one in own]
    facts += [
        _content(Path(word)) for word in added if Path(word).is_absolute() and Path(word).is_file()
    ]
    of_argv = {Path(word).resolve() for word in argv if Path(word).is_absolute()}
    if Path(executable) not in {program.path.resolve(), *of_argv}:
        facts.append(_content(Path(executable)))
    return tuple(facts)


def _content(path: Path) -> str:
    return f"content {sha256_state(FileState.of(path))}"

# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels were meant by words that are no kernel specs, by what is on this host."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kdelta.host.target import host_target
from kdelta.kernels.packages.apt import Apt
from kdelta.kernels.packages.packages import likely_packages
from kdelta.kernels.sources.git import object_named
from kdelta.spec.errors import KdeltaError
from kdelta.spec.kernel import KernelSpecError, parse_kernel_spec
from kdelta.spec.meant import VERSION, Meant, meant_by

_PACKAGES = "linux-image-"


class KernelsMeant(NamedTuple):
    """What to do about words that are no kernel specs, and what to write instead of each; nothing
    where no kernel is left then.
    """

    advice: str
    instead: Mapping[str, str]


def kernels_meant(words: Sequence[str]) -> KernelsMeant | None:
    """Return what the words were meant as that are no kernel specs; None unless it is clear of all.

    words: those of a command line that name kernels and changes of these.
    """
    wrong = [word for word in dict.fromkeys(words) if _is_wrong(word)]
    found = {word: meant for word in wrong if (meant := _here(word) or meant_by(word))}
    if not wrong or len(found) < len(wrong):
        return None
    advice = "; ".join(dict.fromkeys(meant.advice for meant in found.values()))
    instead = {word: meant.right for word, meant in found.items()}
    is_change = instead.get(words[0], "").startswith("+")
    return KernelsMeant(advice, {} if is_change else instead)


def are_kernels(words: Sequence[str]) -> tuple[str, ...]:
    """Return two or more words as the kernel specs that they are, or were meant as; empty where one
    is none.
    """
    if len(words) < 2 or any(word.startswith("-") for word in words):
        return ()
    if not any(map(_is_wrong, words)):
        return tuple(words)
    meant = kernels_meant(words)
    return tuple(meant.instead.get(word, word) for word in words) if meant else ()


def _is_wrong(word: str) -> bool:
    if word.startswith("+") or word == ",":
        return False
    try:
        parse_kernel_spec(word)
    except KernelSpecError:
        return True
    except KdeltaError:
        return False
    return False


def _here(word: str) -> Meant | None:
    """The same of a word that names something on this host: a folder, a commit or a package."""
    if word and Path(word).is_dir():
        return Meant(f"for a source tree write ./{word}", f"./{word}")
    if (match := VERSION.fullmatch(word)) is None:
        return None
    number = match[1]
    is_commit = False
    with contextlib.suppress(KdeltaError):  # another user's repository
        is_commit = bool(object_named(Path(), f"v{number}^{{commit}}"))
    if is_commit:
        return Meant(f"for the commit write git:.@v{number}", f"git:.@v{number}")
    host = host_target()
    found: list[str] = []
    with contextlib.suppress(KdeltaError):  # without apt
        names = Apt.best().names(_PACKAGES)
        found = likely_packages(
            f"{_PACKAGES}{number}", [one for one in names if host and one.endswith(f"-{host.dpkg}")]
        )
    if found and found[0].startswith((f"{_PACKAGES}{number}.", f"{_PACKAGES}{number}-")):
        right = f"deb:{found[0]}"
        return Meant(f"for the package write {right}", right)
    return None

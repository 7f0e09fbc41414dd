# SPDX-License-Identifier: GPL-2.0-or-later
"""A search as `git bisect log` has it, for one of the commits that it found, so that
`git bisect replay` can go on from there.
"""

from collections.abc import Mapping, Sequence

Parents = Mapping[str, tuple[str, ...]]


def bisect_log(
    parents: Parents,
    ends: tuple[str, str],
    seen: Sequence[tuple[str, bool]],
    culprit: str,
    subjects: Mapping[str, str],
    *,
    slower: bool = True,
) -> str:
    """The log's text.

    ends  the good and the bad commit
    seen  the commits that were looked at, in order, and whether they could be measured

    A commit is on the side of the bad end if it has the culprit; it is left out if it is not below
    the last such commit, as git knows no more than one of them. Where the culprit makes a kernel
    faster, the terms of the log are slow and fast, as "bad" would be wrong.
    """
    old, new = ("good", "bad") if slower else ("slow", "fast")
    good, bad = ends
    holders = _holders(parents, culprit)
    lines = [_comment(new, bad, subjects), _comment(old, good, subjects)]
    # git takes the words of this line only in quotes.
    terms = "" if slower else f"'--term-new={new}' '--term-old={old}' "
    lines.append(f"git bisect start {terms}'{bad}' '{good}'")
    below = _below(parents, bad)
    for commit, measured in seen:
        if measured and commit in holders:
            if commit not in below:
                continue
            below = _below(parents, commit)
        word = "skip" if not measured else new if commit in holders else old
        lines += [_comment(word, commit, subjects), f"git bisect {word} {commit}"]
    lines.append(_comment(f"first {new} commit", culprit, subjects))
    return "\n".join(lines) + "\n"


def _comment(word: str, commit: str, subjects: Mapping[str, str]) -> str:
    return f"# {word}: [{commit}] {subjects.get(commit, '')}".rstrip()


def _holders(parents: Parents, culprit: str) -> set[str]:
    """The commits that have it; parents come before what is made on them."""
    found = {culprit}
    for commit, its in parents.items():
        if not found.isdisjoint(its):
            found.add(commit)
    return found


def _below(parents: Parents, commit: str) -> set[str]:
    """A commit and those that it is made on."""
    found, pending = {commit}, [commit]
    while pending:
        new = set(parents.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found

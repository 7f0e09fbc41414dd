# SPDX-License-Identifier: GPL-2.0-or-later
"""Which changes to a source tree can reach executed code, by the files that they touch; the others
are ruled out unbuilt. Patches of a series, commits of a range.

It is sound for the reason that reach.py gives: a change makes other objects of those that
were made from a file that it touches, and of no others. Where all of them are dead, in all kernels
that were measured, nothing that is executed differs. An object is reached

- if kbuild names the file among those that it was made from, in any of the builds, also by way of
  what was generated from it (asm-offsets.h, the vDSO);
- if what makes a header that it includes is not known, and it came out otherwise in the builds;
- if it is not in all of the builds, and no change can have brought or removed it but by its files.

Makefiles, Kconfig files, scripts, the sources of programs that the build ran, and whatever is
neither compiled nor included nor known to be of no concern, reach everything. A change that touches
such a file is kept, unless the caller knows that the file does the same before and after it.

An object that some builds lack, and that several changes reach, was never seen with one of them
alone: such changes are kept, as in reach.py.

What is left to those who measure between the ends: what is brought by one change and removed again
by another, such as a call that only commits in between have, of a function that neither end
executes. More measured kernels in between make the answer better, since each adds what it executed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.reach.alive import BuiltSide, find_alive
from kdelta.infer.reach.reach import (
    NOT_EXECUTED,
    AliveObject,
    Excluded,
    NotExcluded,
    Reach,
    came_out_otherwise,
)
from kdelta.kernels.objects.dependencies import Dependencies
from kdelta.kernels.objects.digest import LINKER_SCRIPTS

NOTHING_BUILT = "nothing was built from what it touches"
HARMLESS = "what it touches does the same before and after it"

_COMPILED = re.compile(r".+\.(?:[chsS]|rs|dts|dtsi|dtso)")
"""Files that a build sees by compiling or including them only, so that kbuild names them all."""

_MAKEFILE = re.compile(r"Makefile|Kbuild")
_CONFIG = re.compile(r"(?:.*/)?(?:Kconfig[^/]*|[^/]*\.config|[^/]*defconfig)")

_NO_CONCERN = re.compile(
    r"(?:Documentation|LICENSES|debian)/.*|(?:.*/)?\.[^/]*|(?:.*/)?README[^/]*|.*\.rst"
    r"|MAINTAINERS|CREDITS|COPYING"
    r"|scripts/(?:coccinelle|gdb|package|kernel-doc|ver_linux|tags\.sh|decode|spelling\.txt"
    r"|get_maintainer\.pl|checkpatch\.pl|const_structs|stackdelta|bloat-o-meter|faddr2line).*"
)
_SCRIPTS = "scripts/"
_PARTS = (
    "block/", "crypto/", "drivers/", "fs/", "net/", "samples/", "security/", "sound/", "virt/",
)  # fmt: skip
"""Folders whose parts do not change what is built elsewhere."""


class TouchedFiles(msgspec.Struct, frozen=True):
    """A patch or a commit. `files`: the paths that it touches, relative to the tree, both of a
    file that it renames. `harmless`: those of them that are known to do the same before and after
    it, such as a file in which only comments differ.
    """

    name: str
    files: frozenset[str]
    harmless: frozenset[str] = frozenset()


class Tree(msgspec.Struct, frozen=True):
    """A built and measured kernel.

    made_from  for each object all files of the source tree that it was made from
    generated  the same for the generated files of which that is known
    unknown    those of which it is not
    tools      the files of programs that the build ran; a folder, with a slash at its end, stands
               for all below it
    parsed     files that scripts read, comments included
    """

    side: BuiltSide
    made_from: Mapping[str, frozenset[str]]
    generated: Mapping[str, frozenset[str]] = {}
    unknown: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    parsed: frozenset[str] = frozenset()


def touches_config(change: TouchedFiles) -> bool:
    """Whether a change touches what configs are made from."""
    return any(_CONFIG.fullmatch(file) for file in change.files - change.harmless)


def tree_of(side: BuiltSide, found: Dependencies) -> Tree:
    """A built and measured kernel with what its build was made from."""
    return Tree(side, found.objects, found.generated, found.unknown, found.tools, found.parsed)


def reach_of_changes(
    ends: Sequence[Tree], changes: Sequence[TouchedFiles], config_same: Collection[str] = ()
) -> dict[str, Reach]:
    """For each change whether executed code can depend on it, by name.

    ends: at least the kernels before and after all changes; any measured in between may be given
    as well. config_same: the changes before and after which the tree grants the same config.
    """
    builds = _Builds(ends, frozenset().union(*(change.files for change in changes)))
    found = [_Touch(change, builds, change.name in config_same) for change in changes]
    reached = [touch.reached() for touch in found]
    if not any(touch.everything for touch in found):
        unexplained = builds.one_sided - builds.made_from_sources(changes)
        reached = [paths | unexplained for paths in reached]
    times = Counter(path for paths in reached for path in paths)
    several = frozenset(path for path in builds.one_sided if times[path] > 1)
    return {
        touch.change.name: touch.verdict(paths, several)
        for touch, paths in zip(found, reached, strict=True)
    }


class _Builds:
    """What the builds say of the files that are touched at all."""

    def __init__(self, ends: Sequence[Tree], touched: frozenset[str]) -> None:
        self.digests = [end.side.digest for end in ends]
        self.objects = _users((end.made_from for end in ends), touched)
        self.generated = _users((end.generated for end in ends), touched)
        self.tools = frozenset().union(*(end.tools for end in ends))
        self.alive: dict[str, str] = {}
        for end in reversed(ends):
            self.alive |= find_alive(end.side).objects
        held = [frozenset(digest.objects) for digest in self.digests]
        self.every: frozenset[str] = frozenset().union(*held)
        self.one_sided = self.every - held[0].intersection(*held)
        unknown = frozenset().union(*(end.unknown for end in ends))
        self.unknown = {path for path in unknown if came_out_otherwise(path, self.digests)}
        made = [*self.every, *(path for digest in self.digests for path in digest.generated)]
        made += [file for file in self.tools if not file.endswith("/")]
        self._folders = {
            path.rsplit("/", cut)[0] for path in made for cut in range(1, path.count("/") + 1)
        }
        self._tool_folders = tuple(path for path in self.tools if path.endswith("/"))

    def includes(self, generated: Collection[str]) -> set[str]:
        """The objects that include any of these."""
        return {
            path
            for digest in self.digests
            for path, thing in digest.objects.items()
            if not thing.generated.isdisjoint(generated)
        }

    def made_from_sources(self, changes: Sequence[TouchedFiles]) -> set[str]:
        """The objects whose own source some change touches."""
        files = frozenset().union(*(change.files for change in changes))
        return {
            path
            for digest in self.digests
            for path, thing in digest.objects.items()
            if thing.source in files
        }

    def runs(self, file: str) -> bool:
        """Whether a program that the build ran is made from a file."""
        return file in self.tools or file.startswith(self._tool_folders)

    def is_foreign(self, file: str) -> bool:
        """Whether a file belongs to another architecture, or to a tool that did not run."""
        parts = file.split("/")
        if parts[0] == "arch" and len(parts) > 2:
            return "arch" in self._folders and "/".join(parts[:2]) not in self._folders
        return parts[0] == "tools"

    def is_elsewhere(self, file: str) -> bool:
        """Whether a file belongs to a part of the tree in which nothing was built. A Makefile has
        no say outside its folder; other files are used from above at most.
        """
        parts = file.split("/")
        folder = parts[:-1] if _MAKEFILE.match(parts[-1]) else parts[:2]
        return file.startswith(_PARTS) and "/".join(folder) not in self._folders


def _users(
    builds: Iterable[Mapping[str, frozenset[str]]], touched: frozenset[str]
) -> dict[str, list[str]]:
    """Of each file that is touched, what was made from it in any of the builds."""
    return by_key(
        (file, path)
        for made_from in builds
        for path, files in made_from.items()
        for file in files & touched
    )


class _Touch:
    """What one change gets at."""

    def __init__(self, change: TouchedFiles, builds: _Builds, config_is_same: bool) -> None:
        self.change = change
        self.builds = builds
        self.everything: list[str] = []
        self.files = change.files - change.harmless
        if config_is_same:
            self.files = frozenset(file for file in self.files if not _CONFIG.fullmatch(file))
        self.generated: set[str] = set()
        for file in sorted(self.files):
            self.generated.update(builds.generated.get(file, ()))
            if why := self._why_everything(file):
                self.everything.append(why)
        # What makes them may look at any file that a kernel is made from.
        if any(_COMPILED.fullmatch(file) for file in change.files):
            self.generated |= builds.unknown

    def _why_everything(self, file: str) -> str:
        """Why no list of objects tells what a file can change; "" if one does."""
        if self.builds.runs(file):
            return f"the build runs what is made from {file}"
        if self.builds.is_foreign(file):
            return ""
        if _CONFIG.fullmatch(file):
            return f"{file} may change the config"
        if self.builds.is_elsewhere(file) or _NO_CONCERN.fullmatch(file):
            return ""
        is_named_if_used = _COMPILED.fullmatch(file) and not file.startswith(_SCRIPTS)
        return "" if is_named_if_used else f"{file} may change anything"

    def reached(self) -> frozenset[str]:
        """The objects of all builds that it can change."""
        if self.everything:
            return self.builds.every
        by_file = (self.builds.objects.get(file, ()) for file in self.files)
        return frozenset().union(self.builds.includes(self.generated), *by_file)

    def verdict(self, reached: frozenset[str], several: frozenset[str]) -> Reach:
        """What is known of the change; several: objects that some builds lack, and that more than
        one change reaches.
        """
        alive = self.builds.alive
        living = [AliveObject(path, alive[path]) for path in sorted(reached & alive.keys())]
        unseen = (reached & several) - alive.keys()
        used = {file for file in self.generated if file.endswith(LINKER_SCRIPTS)}
        if not living and not unseen and not used and not self.everything:
            return Excluded(self.change.name, len(reached), self._why_not(reached))
        for path in (*(thing.path for thing in living), *unseen):
            for digest in self.builds.digests:
                if path in digest.objects:
                    used |= self.generated & digest.objects[path].generated
        lacking = sorted(self.builds.one_sided.intersection(thing.path for thing in living))
        return NotExcluded(
            unit=self.change.name,
            objects=len(reached),
            alive=tuple(living),
            generated=tuple(sorted(used)),
            unseen=tuple(sorted(unseen)),
            undecided=(*self.everything, *(f"{path} comes or goes" for path in lacking)),
        )

    def _why_not(self, reached: frozenset[str]) -> str:
        if reached:
            return NOT_EXECUTED
        return NOTHING_BUILT if self.files or not self.change.files else HARMLESS

# SPDX-License-Identifier: GPL-2.0-or-later
"""The distribution's packages through apt: what there is, and downloads that apt verifies."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import localtime, sleep, strftime

import msgspec

from kdelta.host.command import Result, Talk, run
from kdelta.host.dirs import cache_dir
from kdelta.host.files import remove
from kdelta.host.lock import locked
from kdelta.host.target import host_target
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity

SYSTEM_LISTS = Path("/var/lib/apt/lists")
_SETTINGS = (Path("/etc/apt"), Path("/etc/apt/sources.list.d"), Path("/etc/apt/preferences.d"))
_UPDATE_SECONDS = 300.0
_PAUSES_SECONDS = (5.0, 15.0, 40.0)
_DEPENDENCY = re.compile(r"\s*([a-z0-9][a-z0-9+.-]+)(?::\w+)?\s*(?:\(\s*=\s*(\S+?)\s*\))?")
_RENEWED = re.compile(r"File has unexpected size|Hash Sum mismatch|/by-hash/\S+ +404 ")
"""What apt says of a mirror whose files are not those of its signed index (apt 2.6)."""


class Dependency(msgspec.Struct, frozen=True):
    """The first alternative of one dependency, with its version if exactly one will do."""

    package: str
    version: str | None


class Offer(msgspec.Struct, frozen=True):
    """The version of a package that apt would install: what it depends on, and its file's hash."""

    package: str
    version: str
    dependencies: tuple[Dependency, ...]
    sha256: str


class OutdatedListsError(Exception):
    """apt knows the package, and the mirror has it no more."""


class Apt:
    """apt with the system's package lists, or with kdelta's own, which need no root to update.

    For another architecture than the host's (`foreign`, by Debian's name) only its packages are
    seen, none is installed, and all of apt's state is kdelta's own.
    """

    def __init__(self, own_lists: Path | None = None, foreign: str | None = None) -> None:
        self._own = own_lists
        # As root apt drops to a user that cannot write into the caller's cache.
        settings = ["APT::Sandbox::User=root", "Acquire::Retries=3"]
        if own_lists is not None:
            settings += [f"Dir::State::Lists={own_lists}/lists", f"Dir::Cache={own_lists}/cache"]
        if own_lists is not None and foreign is not None:
            # An empty name adds to a list of settings.
            settings += [f"APT::Architecture={foreign}", f"APT::Architectures::={foreign}"]
            settings.append("Dir::State::status=/dev/null")
        self._options = ["-q", *(word for one in settings for word in ("-o", one))]

    @classmethod
    def best(cls) -> "Apt":
        """With kdelta's own lists if those are newer than the system's."""
        own = cls.with_own_lists()
        return own if own.updated() > cls().updated() else cls()

    @classmethod
    def with_own_lists(cls) -> "Apt":
        """With the lists that kdelta keeps in its cache; they may be empty."""
        return cls(cache_dir("apt"))

    @classmethod
    def of(cls, architecture: str, *, own_lists: bool = False) -> "Apt":
        """For the packages of an architecture, by Debian's name. own_lists: not the system's, so
        that they can be updated; those of another architecture never are the system's.
        """
        host = host_target()
        if host is None or host.dpkg != architecture:
            return cls(cache_dir(f"apt-{architecture}"), architecture)
        return cls.with_own_lists() if own_lists else cls.best()

    def updated(self) -> float:
        """When all lists were last loaded, in seconds since the epoch; 0 for never."""
        stamp = SYSTEM_LISTS if self._own is None else self._own / "updated"
        return stamp.stat().st_mtime if stamp.exists() else 0.0

    def state(self) -> str:
        """Changes whenever apt could give another answer: its lists, sources and preferences."""
        folders = [SYSTEM_LISTS if self._own is None else self._own / "lists", *_SETTINGS]
        stamps = [
            (path.name, path.stat().st_mtime_ns)
            for folder in folders
            for path in (folder, *sorted(folder.glob("*")))
            if path.exists()
        ]
        return identity({"own": self._own is not None, "stamps": stamps})

    def usable(self, start: str) -> bool:
        """Whether all lists were loaded once, and name packages that start so."""
        return self.updated() > 0 and bool(self.names(start))

    def check_complete(self, wanted: str) -> None:
        """LabError if a package may be unknown only because some lists were never loaded."""
        if not self.updated():
            raise LabError(
                f"{wanted} is not in the package lists, of which some could not be loaded",
                "run this again later; it loads them again",
            )

    def update(self, talk: Talk, start: str) -> None:
        """Loads kdelta's own lists again. apt keeps the older ones of those that the mirror does
        not deliver, and `talk` gets that. LabError if no package then has a name that starts so.
        """
        assert self._own is not None
        with locked(f"{self._own.name}-lists", "loading package lists", talk):
            self._load(self._own, talk, start)

    def _load(self, own: Path, talk: Talk, start: str) -> None:
        for folder in ("lists/partial", "cache/archives/partial"):
            (own / folder).mkdir(parents=True, exist_ok=True)
        talk("loading the distribution's package lists (apt-get update, into kdelta's cache)")
        argv = ["apt-get", *self._options, "update"]
        result = run_apt_get(argv, talk, seconds=_UPDATE_SECONDS)
        # apt-get update ends with 0 when a mirror could not be reached, and warns.
        if result.ok and "Failed to fetch" not in result.stderr:
            (own / "updated").touch()
            return
        why = _first_complaint(result)
        if not self.names(start):
            raise LabError(
                f"the package lists could not be loaded: {why}",
                "check the network, and that `apt-get update` works",
            )
        day = strftime("%Y-%m-%d", localtime(self.updated()))
        used = f"using those of {day}" if self.updated() else "going on without them"
        talk(f"some package lists could not be loaded ({why}); {used}")

    def names(self, start: str) -> list[str]:
        """The packages whose name starts so."""
        return sorted(self._run("apt-cache", "pkgnames", start).stdout.split())

    def versions(self, package: str) -> list[str]:
        """The versions that are available, in apt's order: newest first."""
        lines = self._run("apt-cache", "madison", package).stdout.splitlines()
        found = (line.split("|") for line in lines if "Packages" in line)
        return list(dict.fromkeys(fields[1].strip() for fields in found if len(fields) == 3))

    def candidate(self, package: str) -> str | None:
        """The version that apt would install; None when there is none."""
        said = self._run("apt-cache", "policy", package).stdout
        match = re.search(r"^ *Candidate: (\S+)$", said, re.MULTILINE)
        return None if match is None or match.group(1) == "(none)" else match.group(1)

    def dependencies(self, package: str, version: str) -> list[Dependency]:
        """What a package depends on."""
        said = self._run("apt-cache", "show", f"{package}={version}").stdout
        match = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
        return parse_dependencies(match.group(1)) if match else []

    def offers(self, packages: Iterable[str]) -> dict[str, Offer]:
        """What apt would install of each; those that it cannot are left out. One question for all,
        since each can take a second.
        """
        words = sorted(set(packages))
        said = self._run("apt-cache", "show", "--no-all-versions", *words).stdout if words else ""
        found = (_offer(stanza) for stanza in re.split(r"\n\s*\n", said))
        return {offer.package: offer for offer in found if offer and offer.package in words}

    def download(self, package: str, version: str, folder: Path, talk: Talk) -> Path:
        """Downloads a package into an empty folder; apt verifies it against the signed lists.

        OutdatedListsError when the mirror no longer has it; LabError for any other failure.
        """
        argv = ["apt-get", *self._options, "download", f"{package}={version}"]
        result = run_apt_get(argv, talk, cwd=folder)
        for refused in folder.glob("*.FAILED"):
            remove(refused)
        files = list(folder.glob("*.deb"))
        if result.ok and len(files) == 1:
            return files[0]
        if re.search(r"\b404\b", result.stderr):
            raise OutdatedListsError(_first_complaint(result))
        raise LabError(f"{package}={version} could not be downloaded: {_first_complaint(result)}")

    def _run(self, program: str, *words: str) -> Result:
        return run([program, *self._options, *words])


def run_apt_get(
    argv: Sequence[str],
    talk: Talk,
    *,
    cwd: Path | None = None,
    seconds: float | None = None,
) -> Result:
    """Runs apt-get, and again after a pause while the mirror's files do not match its index, which
    passes when the mirror has been renewed. `seconds` is the limit of each run.

    apt itself repeats what fails in the network (Acquire::Retries), but not such a mismatch.
    """
    result = run(argv, cwd=cwd, seconds=seconds)
    for number, pause in enumerate(_PAUSES_SECONDS):
        if not _RENEWED.search(result.stderr):
            break
        if number == 0:
            talk(
                f"the mirror's files do not match its index ({_first_complaint(result)});"
                f" trying again for {sum(_PAUSES_SECONDS):g} seconds"
            )
        sleep(pause)
        result = run(argv, cwd=cwd, seconds=seconds)
    return result


def _offer(stanza: str) -> Offer | None:
    """Reads a package's paragraph (Debian policy 5.3) as far as it is needed."""
    names = r"Package|Version|Pre-Depends|Depends|SHA256"
    fields = dict(re.findall(rf"^({names}): (.*)$", stanza, re.MULTILINE))
    if not {"Package", "Version", "SHA256"} <= fields.keys():
        return None
    needed = ",".join(fields.get(name, "") for name in ("Pre-Depends", "Depends"))
    dependencies = tuple(parse_dependencies(needed))
    return Offer(fields["Package"], fields["Version"], dependencies, fields["SHA256"])


def parse_dependencies(field: str) -> list[Dependency]:
    """Reads a Depends field (Debian policy 7.1)."""
    firsts = (group.split("|")[0] for group in field.split(","))
    return [Dependency(*match.groups()) for one in firsts if (match := _DEPENDENCY.match(one))]


def _first_complaint(result: Result) -> str:
    for line in result.stderr.splitlines():
        if line.startswith(("E: ", "W: Failed to fetch")):
            # The addresses of the mirror say nothing about what to do.
            return re.sub(r"Failed to fetch \S+\s+|\s*\[IP: [^]]*\]", "", line[3:]).strip()
    return result.last_words(1)

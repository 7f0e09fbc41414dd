# SPDX-License-Identifier: GPL-2.0-or-later
"""The distribution's packages through apt: what there is, and downloads that apt verifies."""

import platform
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import localtime, sleep, strftime

import msgspec

from kdelta.host.command import Log, Result, run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.files import remove
from kdelta.host.lock import locked
from kdelta.host.target import host_target
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity

SYSTEM_LISTS = Path("/var/lib/apt/lists")
_SETTINGS = (Path("/etc/apt"), Path("/etc/apt/sources.list.d"), Path("/etc/apt/preferences.d"))
SOURCES = "sources.list"
_KEYRINGS = Path("/usr/share/keyrings")
_OTHER_SETTINGS = ("SourceParts", "Preferences", "PreferencesParts")
_LIST = re.compile(r"^'(.+/)dists/([^/]+)/(.+)/binary-[^/]+/Packages", re.MULTILINE)
WITHOUT_UPDATES = ("sid", "unstable", "experimental")
LISTS_SECONDS = 300.0
"""How long apt may load lists."""

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


class NoReleaseError(UserError):
    """The archive that apt is set up for has no release of that name, or has it no more."""


class Apt:
    """apt with the system's package lists, or with kdelta's own, which need no root to update.

    For another architecture than the host's (`foreign`, by Debian's name) or another release
    (`suite`) only its packages are seen, none is installed, and all of apt's state is kdelta's own.
    """

    def __init__(
        self, own_lists: Path | None = None, foreign: str | None = None, suite: str | None = None
    ) -> None:
        self._own = own_lists
        self._suite = suite
        # As root apt drops to a user that cannot write into the caller's cache.
        settings = ["APT::Sandbox::User=root", "Acquire::Retries=3"]
        if own_lists is not None:
            settings += [f"Dir::State::Lists={own_lists}/lists", f"Dir::Cache={own_lists}/cache"]
        if own_lists is not None and foreign is not None:
            # An empty name adds to a list of settings.
            settings += [f"APT::Architecture={foreign}", f"APT::Architectures::={foreign}"]
        if own_lists is not None and suite is not None:
            settings += [f"Dir::Etc::{name}=/dev/null" for name in _OTHER_SETTINGS]
            settings.append(f"Dir::Etc::SourceList={own_lists}/{SOURCES}")
        if foreign is not None or suite is not None:
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
    def of(
        cls, architecture: str | None, suite: str | None = None, *, own_lists: bool = False
    ) -> "Apt":
        """For the packages of an architecture, by Debian's name, and of a release; None: this
        host's. own_lists: not the system's, so that they can be updated; those of another
        architecture or release never are the system's. LabError on a host without apt.
        """
        if shutil.which("apt-cache") is None:
            raise LabError(
                "cannot fetch packages of Debian: this host has no apt",
                "name a kernel that needs none: PATH, git:PATH@REV, image:PATH, rpm:FILE, pkg:FILE",
            )
        host = host_target()
        foreign = None if host is not None and host.dpkg == architecture else architecture
        other = None if suite == host_suite() else suite
        if foreign is None and other is None:
            return cls.with_own_lists() if own_lists else cls.best()
        name = "-".join(filter(None, ("apt", foreign, other)))
        return cls(cache_dir(name), foreign, other)

    def updated(self) -> float:
        """When all lists were last loaded, in seconds since the epoch; 0 for never."""
        stamp = SYSTEM_LISTS if self._own is None else self._own / "updated"
        return stamp.stat().st_mtime if stamp.exists() else 0.0

    def state(self) -> str:
        """Changes whenever apt could give another answer: its lists, sources and preferences."""
        stamps = [
            (path.name, path.stat().st_mtime_ns)
            for folder in [SYSTEM_LISTS if self._own is None else self._own / "lists", *_SETTINGS]
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

    def update(self, log: Log, start: str) -> None:
        """Loads kdelta's own lists again. apt keeps the older ones of those that the mirror does
        not deliver, and `log` gets that. LabError if no package then has a name that starts so.
        """
        assert self._own is not None
        with locked(f"{self._own.name}-lists", "loading package lists", log):
            self._load(self._own, log, start)

    def _load(self, own: Path, log: Log, start: str) -> None:
        for folder in ("lists/partial", "cache/archives/partial"):
            (own / folder).mkdir(parents=True, exist_ok=True)
        if self._suite is not None:
            (own / SOURCES).write_text(sources_of(self._suite))
        log("loading the distribution's package lists (apt-get update, into kdelta's cache)")
        result = self._get("update", log=log, seconds=LISTS_SECONDS)
        # apt-get update ends with 0 when a mirror could not be reached, and warns.
        if result.ok and "Failed to fetch" not in result.stderr:
            (own / "updated").touch()
            return
        why = first_complaint(result)
        if self._suite and re.search(rf" {self._suite} Release' does not have", result.stderr):
            raise NoReleaseError(
                f"the archive that apt is set up for has no release {self._suite}",
                "name a release as it does: bookworm, trixie, sid",
            )
        if not self.names(start):
            raise LabError(
                f"the package lists could not be loaded: {why}",
                "check the network, and that `apt-get update` works",
            )
        day = strftime("%Y-%m-%d", localtime(self.updated()))
        used = f"using those of {day}" if self.updated() else "going on without them"
        log(f"some package lists could not be loaded ({why}); {used}")

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

    def download(self, package: str, version: str, folder: Path, log: Log) -> Path:
        """Downloads a package into an empty folder; apt verifies it against the signed lists.

        OutdatedListsError when the mirror no longer has it; LabError for any other failure.
        """
        result = self._get("download", f"{package}={version}", log=log, cwd=folder)
        for refused in folder.glob("*.FAILED"):
            remove(refused)
        files = list(folder.glob("*.deb"))
        if result.ok and len(files) == 1:
            return files[0]
        if re.search(r"\b404\b", result.stderr):
            raise OutdatedListsError(first_complaint(result))
        raise LabError(f"{package}={version} could not be downloaded: {first_complaint(result)}")

    def _get(
        self, *words: str, log: Log, cwd: Path | None = None, seconds: float | None = None
    ) -> Result:
        return run_apt_get(["apt-get", *self._options, *words], log, cwd=cwd, seconds=seconds)

    def _run(self, program: str, *words: str) -> Result:
        return run_program([program, *self._options, *words])


def host_suite() -> str | None:
    """The release that this host is of, such as bookworm; None if it names none."""
    return _os_release().get("VERSION_CODENAME")


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def is_debian() -> bool:
    """Return whether this host is Debian itself, not a distribution that is made of it."""
    return _os_release().get("ID") == "debian"


def keyrings(name: str = "keyring") -> list[Path]:
    """Return the keys that the distribution signs its releases with; those that it signed earlier
    ones with are "removed-keys".
    """
    start = f"{_os_release().get('ID', '')}-archive-{name}"
    files = sorted(_KEYRINGS.glob(f"{start}.*"))
    return [file for file in files if file.suffix in (".gpg", ".pgp")]


def sources_of(suite: str) -> str:
    """Return apt's sources (sources.list) for another release, from where the system has its own.

    LabError when the system's sources name no distribution's archive.
    """
    own = {host_suite(), "stable", "oldstable", "testing", "unstable", "sid"}
    said = run_program(["apt-get", "--print-uris", "update"]).stdout
    signed = f" [signed-by={','.join(map(str, keys))}]" if (keys := keyrings()) else ""
    lines: dict[str, None] = {}
    for where, release, component in _LIST.findall(said):
        base, dash, rest = release.partition("-")
        if base in own and not (dash and suite in WITHOUT_UPDATES):
            lines[f"deb{signed} {where} {suite}{dash}{rest} {component}\n"] = None
    if not lines:
        raise LabError(
            f"the sources of apt name no archive that could have {suite}",
            "add your distribution's to /etc/apt/sources.list.d",
        )
    return "".join(lines)


def run_apt_get(
    argv: Sequence[str],
    log: Log,
    *,
    cwd: Path | None = None,
    seconds: float | None = None,
) -> Result:
    """Runs apt-get, and again after a pause while the mirror's files do not match its index, which
    passes when the mirror has been renewed. `seconds` is the limit of each run.

    apt itself repeats what fails in the network (Acquire::Retries), but not such a mismatch.
    """
    result = run_program(argv, cwd=cwd, seconds=seconds)
    for number, pause in enumerate(_PAUSES_SECONDS):
        if not _RENEWED.search(result.stderr):
            break
        if number == 0:
            log(
                f"the mirror's files do not match its index ({first_complaint(result)});"
                f" trying again for {sum(_PAUSES_SECONDS):g} seconds"
            )
        sleep(pause)
        result = run_program(argv, cwd=cwd, seconds=seconds)
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


def first_complaint(result: Result) -> str:
    """Return the first error that apt reported, without addresses."""
    for line in result.stderr.splitlines():
        if line.startswith(("E: ", "W: Failed to fetch")):
            # The addresses of the mirror say nothing about what to do.
            return re.sub(r"Failed to fetch \S+\s+|\s*\[IP: [^]]*\]", "", line[3:]).strip()
    return result.last_words(1)

# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest runs: the command with its files, as the archive that the agent reads."""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from kdelta.guests.cpio import archive, file
from kdelta.guests.host_file import HostFile, read_same
from kdelta.host.files import sha256_file, user_errors
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.limits import GUEST_FILES_BYTES as MAX_BYTES
from kdelta.spec.run import Mode, Perturbation, perturbation

# native/agent/job.h has the same limits.
MAX_MODULES = 64
MAX_WORDS = 4096
MAX_REGION_BYTES = 255
PIECE_BYTES = 4096 - 64 - 4
"""What the plugin hands over at a time; kdelta_handover.h has it, too."""

_LARGEST_NAMED = 3

GUEST_DATE_SECONDS = 1767225600
"""2026-01-01, when guests are switched on. One with newer files is at a later date, so that none is
of the future.
"""

WARM_UP = "KDELTA_WARM_UP"
"""The variable that tells a workload for how many per cent of its usual time to warm up."""


class JobFile(msgspec.Struct, frozen=True):
    """A file of the host and the absolute path that it has in the guest.

    modified_ns  when it was last modified, and has to have been when it is carried; 0: at any time
    """

    host: Path
    guest: str
    mode: int = 0o644
    modified_ns: int = 0


class Job(msgspec.Struct, frozen=True):
    """One command for a guest. `argv[0]` is the program's absolute path in the guest. A region's
    name makes the whole command a region. `modules` are loaded in order, and then
    `optional_modules`, of which one that the kernel refuses is only warned of. After `seconds` of
    the guest's time the command is killed. In a `mode` that is not user the command, and all that
    it starts, runs in the kernel's mode; how it calls the kernel is told in `env`. `later` are
    words that the program asks for when it is ready; None of one that does not ask. `found`: files
    of the host that have the same path in the guest, with their times.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "/"
    region: str | None = None
    modules: tuple[JobFile, ...] = ()
    optional_modules: tuple[JobFile, ...] = ()
    seconds: int = 600
    files: tuple[JobFile, ...] = ()
    mode: Mode = "user"
    later: tuple[str, ...] | None = None
    found: tuple[HostFile, ...] = ()
    perturbation: Perturbation = perturbation(0)


def job_identity(job: Job) -> str:
    """Return the hash of what is to be run: the same under every perturbation, and wherever the
    files lie on the host.
    """
    return identity(
        {
            "argv": job.argv,
            "env": job.env,
            "cwd": job.cwd,
            "region": job.region,
            "modules": _module_hashes(job.modules),
            "optional_modules": _module_hashes(job.optional_modules),
            "seconds": job.seconds,
            "files": [(f.guest, f.mode, sha256_file(f.host)) for f in _sorted_files(job.files)],
            # Left out where it is as ever: what was kept before there were modes stays known.
            **({} if job.mode == "user" else {"mode": job.mode}),
            **({"later": job.later} if job.later is not None else {}),
            **({"found": [one.facts() for one in job.found]} if job.found else {}),
            # Runs of before did not notice that a file without content was read.
            **({"holes": holes} if (holes := _holes(job)) else {}),
        }
    )


def _holes(job: Job) -> int:
    return sum(one.is_hole for one in job.found)


def _module_hashes(modules: tuple[JobFile, ...]) -> list[tuple[str, str]]:
    return [(module.guest, sha256_file(module.host)) for module in modules]


def job_archive(job: Job) -> bytes:
    """Return the cpio archive that the agent unpacks, with /job in it: the same bytes for a job.

    UserError for a file that cannot be carried or a command that cannot be passed.
    """
    entries = [file("job", job_text(job).encode())]
    check_size(one.host for one in (*job.files, *job.modules, *job.optional_modules))
    for carried in _sorted_files((*job.files, *job.modules, *job.optional_modules)):
        with user_errors(carried.host), carried.host.open("rb") as source:
            when = carried.modified_ns
            content = read_same(source, str(carried.host), when) if when else source.read()
        name = carried.guest.lstrip("/")
        entries.append(file(name, content, executable=bool(carried.mode & 0o111)))
    return archive([*entries, *(one.entry() for one in job.found)])


def check_size(files: Iterable[Path]) -> None:
    """UserError, with the largest of them, for files that are more than a guest can be given."""
    sizes: dict[Path, int] = {}
    for path in files:
        with user_errors(path):
            sizes[path] = path.stat().st_size
    if sum(sizes.values()) <= MAX_BYTES:
        return
    most = sorted(sizes, key=lambda path: -sizes[path])[:_LARGEST_NAMED]
    named = ", ".join(f"{path} ({sizes[path] / (1 << 20):.0f} MiB)" for path in most)
    raise UserError(
        f"the files for the guest have {sum(sizes.values()) >> 20} MiB, and a guest takes "
        f"{MAX_BYTES >> 20} MiB at most; the largest: {named}",
        "name single files by --file FILE, not the folder",
    )


def handed_over(job: Job) -> bytes:
    """What the plugin hands over from the snapshot of a quiet guest on: the archive, and then the
    words for later, which begin a piece of their own.
    """
    content = job_archive(job)
    if job.later is None:
        return content
    return content + b"\0" * (-len(content) % PIECE_BYTES) + later_words(job)


def later_words(job: Job) -> bytes:
    """What is handed over to a program that is ready: a word a line."""
    return "".join(f"{word}\n" for word in job.later or ()).encode()


def job_text(job: Job) -> str:
    """The text of /job: one directive a line."""
    _check(job)
    return "".join(f"{word} {_encoded(value)}\n" for word, value in _directives(job))


def _directives(job: Job) -> Iterator[tuple[str, str]]:
    yield from (("module", module.guest) for module in job.modules)
    yield from (("optional-module", module.guest) for module in job.optional_modules)
    shaken = job.perturbation
    values = {"seed": shaken.seed, "pages": shaken.pages, "phase-ns": shaken.phase_ns}
    yield from ((name, str(value)) for name, value in values.items() if value)
    newest = max((one.modified_ns for one in job.found), default=0) // 1_000_000_000
    if newest >= GUEST_DATE_SECONDS:
        yield "date", str(newest + 1)
    if holes := _holes(job):
        yield "holes", str(holes)
    yield "seconds", str(job.seconds)
    if job.region is not None:
        yield "region", job.region
    yield "cwd", job.cwd
    if job.mode != "user":
        yield "mode", job.mode
    for name, value in (*job.env, (WARM_UP, str(shaken.warm_up_percent))):
        yield "env", f"{name}={value}"
    yield from (("arg", word) for word in job.argv)


def _encoded(value: str) -> str:
    return value.replace("%", "%25").replace("\n", "%0A")


def _check(job: Job) -> None:
    words = [*job.argv, *(f"{name}={value}" for name, value in job.env), job.cwd, job.region or ""]
    if any("\0" in word for word in words):
        raise UserError("a command's words cannot have NUL bytes")
    if not job.argv or not job.argv[0].startswith("/"):
        raise UserError("a job needs the absolute path of a program")
    if len(job.argv) > MAX_WORDS or len(job.env) > MAX_WORDS:
        raise UserError(f"more than {MAX_WORDS} words in a command or its environment")
    if len(job.modules) + len(job.optional_modules) > MAX_MODULES:
        raise UserError(f"more than {MAX_MODULES} modules to load")
    if job.region is not None and not 1 <= len(job.region.encode()) <= MAX_REGION_BYTES:
        raise UserError(f"the name of a region has 1 to {MAX_REGION_BYTES} bytes: {job.region!r}")


def _sorted_files(files: tuple[JobFile, ...]) -> list[JobFile]:
    """The files by guest path, each once; UserError where two claim the same path."""
    by_guest: dict[str, JobFile] = {}
    for carried in files:
        check_guest_path(carried.guest)
        other = by_guest.setdefault(carried.guest, carried)
        if other.host != carried.host and sha256_file(other.host) != sha256_file(carried.host):
            raise UserError(
                f"two files for {carried.guest} in the guest: {other.host} and {carried.host}"
            )
    for path in by_guest:
        if above := next((p for p in PurePosixPath(path).parents if str(p) in by_guest), None):
            raise UserError(f"{above} cannot be a file and a folder, for {path}, in the guest")
    return [by_guest[path] for path in sorted(by_guest)]


def check_guest_path(path: str) -> None:
    """UserError unless a file can be put there in the guest."""
    pure = PurePosixPath(path)
    if not path.startswith("/") or str(pure) != path or ".." in pure.parts or "\0" in path:
        raise UserError(
            f"not a path for a file in the guest: {path!r}", "it must be absolute and without .."
        )
    if path in ("/", "/init", "/job") or any(
        pure.is_relative_to(folder) for folder in ("/dev", "/proc", "/sys")
    ):
        raise UserError(f"{path} belongs to the guest's system", "choose another path: HOST:GUEST")

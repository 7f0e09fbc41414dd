# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU that runs guests: how it is started, its version, and which plugins it takes."""

import difflib
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Log, Result, find_program, log_once, quiet, run_program
from kdelta.host.files import FileState, sha256_state
from kdelta.host.gcc import Compiler
from kdelta.host.loading import library_folders, loading
from kdelta.host.native import build_part
from kdelta.host.pin import (
    Pin,
    binutils_part,
    gcc_part,
    obtain_part,
    pinned,
    qemu_part,
    read_archive,
)
from kdelta.host.target import Target
from kdelta.host.wrapped import what_runs
from kdelta.spec.errors import KdeltaError, LabError, UserError

OLDEST_API, NEWEST_API = 1, 7
"""The versions of QEMU's plugin interface that native/plugin/qemu_api.h knows."""

KNOWN = "kdelta knows the plugin interfaces of QEMU 7.2 to 11"
ANOTHER = "install QEMU 7.2 to 11, or name one: --qemu pin, or --qemu PATH"

HOST, PIN = "host", "pin"

_SECONDS = 30.0

# Where a folder has QEMU's program; and where Debian's packages have firmware.
_PROGRAMS = ("", "bin", "usr/bin", "usr/local/bin")
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")


class HostQemu(msgspec.Struct, frozen=True):
    """A QEMU for one architecture.

    argv      how its command line begins
    emulates  the architecture, as QEMU calls it
    program   its program
    parts     files that make it another QEMU than one of the same version; none: it is not asked
    pin       that it is of
    """

    argv: tuple[str, ...]
    emulates: str
    program: FileState
    parts: tuple[FileState, ...] = ()
    pin: Pin | None = None

    @property
    def version(self) -> str:
        """Its version, with its packager's. LabError when it reports none."""
        return _version(self)

    @property
    def identity(self) -> str:
        """Return what keys and reports call it: its version, and a digest of its parts, and of what
        runs in the end if it starts another program; or of its pin.
        """
        if self.pin:
            return self.pin.title
        more = _wrapped(self)
        if not self.parts and not more:
            return self.version
        digests = "".join([*map(sha256_state, self.parts), *more])
        return f"{self.version}, SHA-256 {hashlib.sha256(digests.encode()).hexdigest()[:12]}"

    @property
    def plugin_apis(self) -> tuple[int, int]:
        """The oldest and the newest version of the plugin interface that it takes. LabError if
        kdelta does not know the newest, or if it takes no plugins.
        """
        return _plugin_apis(self)

    def must_have_cpu(self, model: str) -> None:
        """Raise UserError for a model of a CPU that it does not have; features may follow. One that
        lists none does not start either, and the first boot reports why.
        """
        name, known = model.partition(",")[0], _cpus(self)
        if name and known and name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            raise UserError(
                f"QEMU {self.version} has no CPU called {name!r} for {self.emulates}",
                f"there is: {', '.join(near)}" if near else "see: qemu-system-ARCH -cpu help",
                (name, near[0]) if near else None,
            )

    def preloading(self, library: Path) -> tuple[str, ...]:
        """Return how its command line begins where it loads that library before its own ones.
        LabError for a path that a loader would take for several.
        """
        if set(" :").intersection(str(library)):
            raise LabError(
                f"QEMU cannot load {library} first: there is a space or a colon in its path",
                "KDELTA_CACHE_DIR names a folder without them",
            )
        names = [Path(word).name for word in self.argv]
        loader = next((i for i, name in enumerate(names) if name.startswith("ld-linux")), None)
        if loader is None:
            return ("env", f"LD_PRELOAD={library}", *self.argv)
        return (*self.argv[: loader + 1], "--preload", str(library), *self.argv[loader + 1 :])

    def run(self, *words: str, seconds: float = _SECONDS) -> Result:
        """Run it to its end with these words. LabError, which names it, if it takes longer."""
        name = f"QEMU {self.program.path}"
        return run_program([*self.argv, *words], seconds=seconds, name=name, tied=True)

    def plugin(self, log: Log = quiet) -> Path:
        """The path of kdelta's plugin for it, compiled unless the cache has it."""
        return _built("plugin", self, self.plugin_apis[1], log)


def find_qemu(of: Target, path: str = "", log: Log = quiet) -> HostQemu:
    """The QEMU for that architecture that --qemu names: "host", the one on the PATH; "pin", or an
    archive of it, which are fetched if need be; a program; or a folder, which QEMU was built in or
    its packages were unpacked into. Nothing: the pin; and the host's where that cannot be fetched,
    with a line that says so.

    LabError if there is none, UserError if there is none at `path`.
    """
    if not path:
        return _usual(of, log)
    if path == HOST:
        return _host_qemu(of)
    if path == PIN:
        return _in_pin(of, pinned(), log)
    place = Path(path).absolute()
    if not place.exists():
        raise _cannot(path, "there is no such file or folder")
    if place.is_file() and (pin := _archived(FileState.of(place))):
        return _in_pin(of, pin, log, place)
    return _at(of, place, path)


def find_compiler(
    of: Target, qemu: str = "", log: Log = quiet, parts: Sequence[str] = ()
) -> Compiler:
    """Return the compiler of guests' programs that goes with that --qemu: the pin's, or that of the
    pin in an archive, so that they are the same on every host; and the host's where no pin can be
    fetched, or one that has these other `parts`, too.
    """
    place = Path(qemu).absolute() if qemu not in ("", HOST, PIN) else None
    archived = _archived(FileState.of(place)) if place and place.is_file() else None
    pin = archived or pinned()
    for part in (gcc_part(of.name), *parts):
        if why := why_lacking(pin, part, log, place if archived else None):
            if qemu == PIN or archived:
                raise why
            log_once(f"{why.message}: using this host's programs for the guest", log)
            return Compiler(of.name)
    return Compiler(of.name, pin)


def binutils_command(of: Target, name: str, log: Log = quiet) -> list[str]:
    """Return how the command line of a program of binutils begins, such as objdump, that reads that
    architecture's files: the host's for its own; for others the pin's, or, where that cannot be
    fetched, the host's.
    """
    part = binutils_part(of.name)
    if of.is_host or why_lacking(pinned(), part, log):
        return [of.tool(name)]
    tree = obtain_part(pinned(), part, log)
    return [*loading(tree), str(tree / "usr/bin" / of.tool(name))]


def _host_qemu(of: Target) -> HostQemu:
    name = of.find_emulator()
    return HostQemu((name,), _emulates(of), FileState.of(Path(find_program(name))))


def _emulates(of: Target) -> str:
    return of.emulator.removeprefix("qemu-system-")


def _at(of: Target, place: Path, path: str) -> HostQemu:
    """The QEMU in a folder, or that program."""
    programs = [place] if place.is_file() else [place / one / of.emulator for one in _PROGRAMS]
    program = next((one for one in programs if one.is_file() and os.access(one, os.X_OK)), None)
    if program is None:
        wanted = "it is no program" if place.is_file() else f"no program {of.emulator} is in it"
        raise _cannot(path, wanted)
    firmware = [place / one for one in _FIRMWARE if (place / one).is_dir()]
    parts = [program, *(file for folder in firmware for file in sorted(folder.glob("*.bin")))]
    return HostQemu(
        argv=(*_loading(place), str(program), *_options("-L", firmware)),
        emulates=_emulates(of),
        program=FileState.of(program),
        parts=tuple(FileState.of(file) for file in parts if file.is_file()),
    )


def _in_pin(of: Target, pin: Pin, log: Log, archive: Path | None = None) -> HostQemu:
    found = _at(of, obtain_part(pin, qemu_part(of.name), log, archive), PIN)
    return msgspec.structs.replace(found, parts=(), pin=pin)


@functools.cache
def _archived(file: FileState) -> Pin | None:
    return read_archive(file.path)


def _usual(of: Target, log: Log) -> HostQemu:
    """The QEMU where --qemu is not given."""
    why = why_lacking(pinned(), qemu_part(of.name), log)
    if why is None:
        return _in_pin(of, pinned(), log)
    try:
        host = _host_qemu(of)
        _ = host.plugin_apis
    except LabError as error:
        hint = f"{why.hint}; or {error.hint}"
        raise LabError(f"{why.message}; and {error.message}", hint) from why
    log_once(f"{why.message}: using this host's QEMU {host.version}", log)
    return host


@functools.cache
def why_lacking(pin: Pin, part: str, log: Log, archive: Path | None = None) -> KdeltaError | None:
    """Return why that part of the pin cannot be used, tried once; None when it is there."""
    try:
        obtain_part(pin, part, log, archive)
    except KdeltaError as error:
        return error
    return None


def _options(name: str, values: Iterable[Path]) -> Iterator[str]:
    for value in values:
        yield from (name, str(value))


def _loading(folder: Path) -> Iterator[str]:
    """What starts a program of unpacked packages; and with their modules, since QEMU else loads the
    host's. Nothing where there are no packages.
    """
    if words := list(loading(folder)):
        modules = (one / "qemu" for one in library_folders(folder) if (one / "qemu").is_dir())
        yield from ("env", f"QEMU_MODULE_DIR={next(modules, folder)}", *words)


def _cannot(path: str, why: str) -> UserError:
    return UserError(
        f"cannot use --qemu {path}: {why}",
        "name QEMU's program, the folder that its packages were unpacked into, `pin`, or a file"
        " that `kdelta pin pack` wrote",
    )


@functools.cache
def _cpus(qemu: HostQemu) -> frozenset[str]:
    """The first words of lines before its list of flags, its models of CPUs among them; none where
    it fails.
    """
    machine = () if qemu.emulates in ("i386", "x86_64") else ("-machine", "virt")
    result = _asked(qemu, *machine, "-cpu", "help")
    listed = result.stdout.partition("\nRecognized ")[0] if result.ok else ""
    return frozenset(re.findall(r"^ *(?:x86 )?([\w.+-]+)", listed, re.MULTILINE))


@functools.cache
def _version(qemu: HostQemu) -> str:
    result = _asked(qemu, "--version")
    match = re.search(r"^QEMU emulator version (.+)", result.stdout, re.MULTILINE)
    if match is None:
        said = result.last_words(1)
        raise LabError(f"cannot use {qemu.program.path} as QEMU: --version says {said}", ANOTHER)
    return match[1].strip()


@functools.cache
def _probed_once(qemu: HostQemu) -> Result:
    """What it said to a probe that it can load, if there is one."""
    result = _probed(qemu, OLDEST_API)
    if (least := _number("minimum version of", result)) and least <= NEWEST_API:
        result = _probed(qemu, least)
    return result


@functools.cache
def _wrapped(qemu: HostQemu) -> tuple[str, ...]:
    result = _probed_once(qemu)
    return what_runs(result.stdout, result.argv, qemu.program)


@functools.cache
def _plugin_apis(qemu: HostQemu) -> tuple[int, int]:
    result = _probed_once(qemu)
    match = re.search(r"^plugin-api (\S+) (\d+) (\d+)$", result.stdout, re.MULTILINE)
    if match is None:
        raise _refused(qemu, result)
    emulates, oldest, newest = match[1], int(match[2]), int(match[3])
    if emulates != qemu.emulates:
        raise UserError(
            f"{qemu.program.path} emulates {emulates}, and the kernel is for {qemu.emulates}",
            "name the folder that has QEMU's programs for both by --qemu",
        )
    # Version 3 changed a function, and plugins of version 2 were still taken.
    if newest > NEWEST_API:
        raise _too_new(qemu, newest)
    return oldest, newest


def _built(name: str, qemu: HostQemu, api: int, log: Log = quiet) -> Path:
    """A plugin for it. The host's C library may be newer than that which a pin is run with."""
    by = Compiler("x86_64", qemu.pin) if qemu.pin else Compiler()
    return build_part(name, log, by=by, plugin_api=api)


def _probed(qemu: HostQemu, api: int) -> Result:
    probe = _built("probe", qemu, api)
    return _asked(
        qemu, "-machine", "none", "-display", "none", "-nodefaults", "-plugin", str(probe)
    )


def _asked(qemu: HostQemu, *words: str) -> Result:
    try:
        return qemu.run(*words)
    except LabError as error:
        raise LabError(
            f"cannot use {qemu.program.path} as QEMU: {error.message}", ANOTHER
        ) from error


def _number(words: str, result: Result) -> int | None:
    match = re.search(rf"{words} (\d+)", result.stderr)
    return int(match[1]) if match else None


def _refused(qemu: HostQemu, result: Result) -> LabError:
    """Why it did not load the probe."""
    said = result.last_words(1)
    if least := _number("minimum version of", result):
        return _too_new(qemu, least)
    if _number("only up to version", result) is not None:
        return LabError(f"QEMU {qemu.version} is too old: {KNOWN}", ANOTHER)
    if "invalid option" in said or "not enabled in this build" in said:
        return LabError(
            f"QEMU {qemu.version} was built without plugins: {said}",
            f"{ANOTHER}, built with --enable-plugins, as Debian's is",
        )
    if "plugin" in said:
        return LabError(f"QEMU {qemu.version} cannot load a plugin of kdelta's: {said}", ANOTHER)
    return LabError(f"QEMU {qemu.version} does not start: {said}", ANOTHER)


def _too_new(qemu: HostQemu, api: int) -> LabError:
    return LabError(
        f"QEMU {qemu.version} is too new: its plugin interface is version {api}, and {KNOWN}"
        f" (versions {OLDEST_API} to {NEWEST_API})",
        ANOTHER,
    )

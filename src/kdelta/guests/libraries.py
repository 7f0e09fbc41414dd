# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of the host with all it needs to start in a guest: interpreter and shared libraries."""

import contextlib
import os
import re
import shutil
from pathlib import Path

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from kdelta.guests.job import JobFile, check_guest_path
from kdelta.host.command import run_program
from kdelta.host.files import expanded, user_errors
from kdelta.host.target import Target, target, targets
from kdelta.spec.errors import UserError
from kdelta.spec.limits import SCRIPT_STEPS

LOADER_PATH = "LD_LIBRARY_PATH"
"""Where a loader looks first, which the user may have set for a program."""

_HWCAPS = re.compile(r"/glibc-hwcaps/[^/]+")
_COMPILED = (".c", ".cc", ".cpp", ".cxx")


class Carried(msgspec.Struct, frozen=True):
    """What a command needs in the guest: its words with the program's path, files, environment."""

    argv: tuple[str, ...]
    files: tuple[JobFile, ...]
    env: tuple[tuple[str, str], ...]


def carry(argv: list[str], files: list[JobFile], arch: str = "x86_64") -> Carried:
    """Finds the program of a command on the host, and all that it and the executables among
    `files` need to start in a guest of that architecture. UserError for a program that is missing
    or cannot run in the guest.
    """
    of = target(arch)
    program = path_of_command(argv[0])
    needed = dict.fromkeys(program_files(program, of))
    for carried in files:
        if carried.mode & 0o111 and (interpreter := _interpreter(carried.host, of)):
            needed |= dict.fromkeys(_loaded(carried.host, interpreter, of))
    # Where loaders look by default: no /etc/ld.so.cache is carried.
    trusted = re.compile(rf"/(usr/)?lib(64)?(/{of.triple})?")
    named = {carried.guest for carried in files}
    found = [JobFile(path, str(path), 0o755) for path in needed if str(path) not in named]
    folders = dict.fromkeys(str(path.parent) for path in needed if ".so" in path.name)
    others = [folder for folder in folders if not trusted.fullmatch(folder)]
    env = ((LOADER_PATH, ":".join(others)),) if others else ()
    return Carried((str(program), *argv[1:]), (*files, *found), env)


def path_of_command(word: str) -> Path:
    """Return the absolute path of what a shell would start; UserError if it would start nothing."""
    if "/" not in word:
        if found := shutil.which(word):
            return Path(found).absolute()
        if Path(word).is_file():
            hint = f"for the file of this folder write ./{word}"
            raise UserError(f"no program {word} on this host's PATH", hint, (word, f"./{word}"))
        raise UserError(
            f"no program {word} on this host's PATH", "install it, or write the path of yours"
        )
    path = Path(os.path.normpath(Path(word).absolute()))
    if not path.exists():
        raise UserError(
            f"no such program: {word}", f"see: ls {path.parent}; without a /, the PATH is searched"
        )
    if not path.is_file():
        why = "it is a folder" if path.is_dir() else "it is no file"
        raise UserError(f"not a program: {word}: {why}", f"name a file: ls {word}")
    if not os.access(path, os.X_OK):
        if path.suffix in _COMPILED:
            hint = (
                f"it is a source file; compile it first: gcc -O2 {word} -o {path.with_suffix('')}"
            )
            raise UserError(f"{word} is not executable", hint, (word, f"./{path.stem}"))
        raise UserError(f"{word} is not executable", f"if it is a program: chmod +x {word}")
    return path


def asked_interpreter(elf: ELFFile) -> str:
    """The loader that an ELF file asks for, "" if it asks for none."""
    segments = elf.iter_segments(type="PT_INTERP")
    found = (str(one.get_interp_name()) for one in segments if isinstance(one, InterpSegment))
    return next(found, "")


def is_static(program: Path) -> bool:
    """Whether a file is an ELF program that starts without a loader, which could preload."""
    try:
        with program.open("rb") as file:
            return file.read(4) == b"\x7fELF" and not asked_interpreter(ELFFile(file))
    except (OSError, ELFError) as error:
        raise UserError(f"{program} cannot be read: {error}") from error


def target_of(program: Path) -> Target:
    """Return what an ELF file can run on, this host where that is unknown, and for a script."""
    with contextlib.suppress(OSError, ELFError), program.open("rb") as file:
        if file.read(4) == b"\x7fELF":
            return _target_of_elf(ELFFile(file)) or target(os.uname().machine)
    return target(os.uname().machine)


def _target_of_elf(elf: ELFFile) -> Target | None:
    found = str(elf.header["e_machine"]), elf.elfclass
    return next((of for of in targets().values() if (of.elf_machine, of.bits) == found), None)


def program_files(program: Path, of: Target) -> list[Path]:
    """Return the program and what it needs to start, by the paths that they have on the host."""
    files: list[Path] = []
    current = program
    for _ in range(SCRIPT_STEPS):
        files.append(current)
        if (interpreter := _interpreter(current, of)) is not None:
            return files + (_loaded(current, interpreter, of) if interpreter else [])
        current, *after_env = _script_interpreter(current, of)
        if current.name == "env" and after_env:
            files += program_files(current, of)
            (current,) = after_env
    raise UserError(f"{program} is a script whose interpreter is a script, and so on")


def _script_interpreter(path: Path, of: Target) -> list[Path]:
    """The programs of a script's first line."""
    with user_errors(path), path.open("rb") as file:
        line = file.readline(256)
    if not line:
        raise UserError(f"{path} is empty: no program", f"build it or copy it again: ls -l {path}")
    words = line[2:].decode("utf-8", "replace").split()
    by_shell = (str(path), "sh", str(path))
    if not line.startswith(b"#!") or not words:
        raise UserError(
            f"{path} is neither a program for {of.name} nor a script with a #! line",
            "name its interpreter before it, such as sh",
            by_shell,
        )
    if line.endswith(b"\r\n"):
        raise UserError(f"{path}: its #! line ends with a carriage return", f"dos2unix {path}")
    try:
        programs = [path_of_command(words[0])]
        if programs[0].name == "env":
            # env -S and assignments may stand before the program.
            names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
            programs += map(path_of_command, names[:1])
    except UserError as error:
        raise UserError(
            f"{path} is a script whose interpreter is missing: {error.message}",
            "install that, or name another one before the script",
            by_shell,
        ) from error
    return programs


def _interpreter(path: Path, of: Target) -> str | None:
    """The loader that an ELF file asks for, "" if it asks for none; None for what is no ELF file.
    UserError if it is for another machine.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
            elf = ELFFile(file)
            machine = str(elf.header["e_machine"])
            if machine != of.elf_machine or elf.elfclass != of.bits:
                its = _target_of_elf(elf)
                kernel = f", or name a kernel for it: deb:PACKAGE:{its.dpkg}" if its else ""
                raise UserError(
                    f"{path} is a program for another machine "
                    f"({machine.removeprefix('EM_')}, {elf.elfclass} bit)",
                    f"the guest runs programs for {of.name}: {of.triple}-gcc makes them{kernel}",
                )
            return asked_interpreter(elf)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ELFError, UnicodeDecodeError, ValueError) as error:
        raise UserError(
            f"{path} is a damaged ELF file ({error})", f"build it or copy it again: file {path}"
        ) from error


def _loaded(program: Path, interpreter: str, of: Target) -> list[Path]:
    """The dynamic loader of a program and the libraries that the loader would map."""
    if not of.is_host:
        raise UserError(
            f"{program} needs a loader and libraries of {of.name}, which this host cannot list",
            f"link it statically: {of.triple}-gcc -static",
        )
    # It is run, to list the libraries; so only well-known ones are.
    if Path(interpreter).name not in of.loaders:
        raise UserError(f"{program} wants an unknown loader: {interpreter}")
    if not Path(interpreter).is_file():
        raise UserError(f"{program} wants a loader that this host does not have: {interpreter}")
    named = {name: os.environ[name] for name in (LOADER_PATH,) if name in os.environ}
    result = run_program([interpreter, "--list", program], env=named)
    missing = re.findall(r"^\s*(\S+) => not found", result.stdout, re.MULTILINE)
    missing += re.findall(r"shared libraries: (\S+): cannot open", result.stderr)
    if missing:
        raise UserError(
            f"{program} needs libraries that this host does not have: {', '.join(missing)}",
            f"set {LOADER_PATH} if they are somewhere else",
        )
    result.or_raise(f"{interpreter} cannot list {program}'s libraries")
    return parse_loader_list(result.stdout, interpreter)


def parse_loader_list(said: str, interpreter: str) -> list[Path]:
    """The paths in what a loader says to --list, with the loader itself."""
    paths = [Path(interpreter)]
    for line in said.splitlines():
        if match := re.fullmatch(r"\s*(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)", line):
            # A variant for newer CPUs, of which the guest's loader knows nothing.
            plain = Path(_HWCAPS.sub("", match.group(1)))
            paths.append(plain if plain.is_file() else Path(match.group(1)))
    return list(dict.fromkeys(Path(os.path.normpath(path)) for path in paths))


def parse_file_option(text: str) -> list[JobFile]:
    """Reads HOST[:GUEST] of --file: a file, or a folder with all that is in it."""
    host_text, colon, guest = text, "", ""
    if not Path(text).exists() and ":/" in text:
        host_text, colon, guest = text.rpartition(":/")
    host = Path(os.path.normpath(expanded(host_text).absolute()))
    guest = os.path.normpath(f"/{guest}") if colon else str(host)
    if not host.exists():
        raise UserError(f"no such file: {host_text}", "write --file HOST or --file HOST:/GUEST")
    if host.is_file():
        found = {guest: host}
    elif host.is_dir():
        found = {
            f"{guest.rstrip('/')}/{path.relative_to(host).as_posix()}": path
            for path in sorted(host.rglob("*"))
            if path.is_file()
        }
    else:
        raise UserError(f"{host_text} is neither a file nor a folder")
    for path in found:
        check_guest_path(path)
    return [
        JobFile(path, place, 0o755 if os.access(path, os.X_OK) else 0o644, path.stat().st_mtime_ns)
        for place, path in found.items()
    ]

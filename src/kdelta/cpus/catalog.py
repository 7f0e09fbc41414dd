# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPUs that come with kdelta, and the user's own, in $XDG_CONFIG_HOME/kdelta/cpus/NAME.toml
each. Options may follow a name, for what of a CPU
its buyer chooses: "cortex-a9,l2=256KiB,clock=1GHz" is a cortex-a9 with these.

l1i, l1d, l2=SIZE    of the sizes that the file says it comes in; the ways stay
l2-latency=CYCLES    what a miss of the L1I costs at most that hits the L2; the least moves too
replacement=POLICY   of the L1I, and of the instruction side's TLBs and BTB that have its
                     policy: lru, round-robin, random
clock=FREQUENCY      as 800MHz or 1.4GHz
"""

import difflib
import functools
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import get_args

import msgspec

from kdelta.cpus.cores import HostCPU, cpu_of_machine, read_cpuinfo
from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.like import SUFFIX, shipped
from kdelta.cpus.model import (
    BARE_METAL,
    CPU,
    GUEST,
    Cache,
    MissPrice,
    Replacement,
    is_bare_metal,
)
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import CPU_FILE_BYTES

_SIZE = re.compile(r"(\d+) ?(KiB|MiB|K|M|)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20}
_CLOCK = re.compile(r"(\d+(?:\.\d+)?) ?(MHz|GHz)", re.IGNORECASE)
_FOLLOWING = ("itlb", "itlb_small", "btb")
HOST = "host"
"""What the CPU of the machine that kdelta runs on is called."""
DEFAULT_CPU = "generic-x86-64"


def with_options(cpu: CPU, options: str) -> CPU:
    """The CPU with these options, "NAME=VALUE,...", which are added to its name; itself without.

    UserError for an option that there is not, or a value that the CPU does not come with.
    """
    for option in filter(None, (part.strip() for part in options.split(","))):
        name, has_value, value = option.partition("=")
        setter = _OPTIONS.get(name.strip())
        if setter is None or not has_value:
            raise UserError(
                f"{cpu.name}: {option!r} is no option of a CPU",
                f"there is: {', '.join(f'{known}=...' for known in _OPTIONS)}",
            )
        cpu = setter(cpu, name.strip(), value.strip())
        cpu = msgspec.structs.replace(cpu, name=f"{cpu.name},{name.strip()}={value.strip()}")
    return cpu


def _size(cpu: CPU, field: str, value: str) -> CPU:
    found = _SIZE.fullmatch(value)
    size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    sizes = cpu.sizes.get(field, ())
    if size not in sizes:
        known = ", ".join(f"{one >> 10}KiB" for one in sizes)
        raise UserError(
            f"{cpu.name} has no {field} of {value}",
            f"it comes with {known}" if known else "its size is no matter of choice",
        )
    cache: Cache = getattr(cpu, field)
    sets = size // (cache.ways * cache.line_bytes)
    return _replaced(cpu, field, value, {field: msgspec.structs.replace(cache, sets=sets)})


def _latency(cpu: CPU, name: str, value: str) -> CPU:
    cycles = _number(cpu, name, value)
    price = cpu.misses["l1i"]
    ahead = cpu.frontend == "decoupled"  # then it may be hidden whole
    hidden = 0.0 if ahead else max(0.0, price.hidden + cycles - price.exposed)
    misses = {**cpu.misses, "l1i": MissPrice(hidden, cycles, price.calibrated)}
    return _replaced(cpu, "misses.l1i", f"{value} cycles", {"misses": misses})


def _replacement(cpu: CPU, name: str, value: str) -> CPU:
    known = get_args(Replacement)
    if value not in known:
        raise UserError(
            f"{cpu.name}: no {name} is called {value!r}", f"there is: {', '.join(known)}"
        )
    held: dict[str, Cache | None] = {field: getattr(cpu, field) for field in _FOLLOWING}
    changed: dict[str, object] = {
        field: msgspec.structs.replace(cache, replacement=value)
        for field, cache in {"l1i": cpu.l1i, **held}.items()
        if cache is not None and cache.replacement == cpu.l1i.replacement
    }
    return msgspec.structs.replace(cpu, **changed)


def _clock(cpu: CPU, name: str, value: str) -> CPU:
    found = _CLOCK.fullmatch(value)
    mhz = float(found[1]) * (1000 if found[2].lower() == "ghz" else 1) if found else 0.0
    if not mhz:
        raise UserError(f"{cpu.name}: {value!r} is no {name}", "give it as 800MHz or 1.4GHz")
    return _replaced(cpu, "clock", value, {"clock_mhz": mhz})


def _number(cpu: CPU, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise UserError(f"{cpu.name}: {name}={value} is no number of cycles", "it is positive")
    return number


def _replaced(cpu: CPU, source: str, text: str, fields: dict[str, object]) -> CPU:
    sources = {**cpu.sources, source: f"chosen: {text}"}
    return msgspec.structs.replace(cpu, sources=sources, **fields)


_OPTIONS: dict[str, Callable[[CPU, str, str], CPU]] = {
    "l1i": _size,
    "l1d": _size,
    "l2": _size,
    "l2-latency": _latency,
    "replacement": _replacement,
    "clock": _clock,
}


def user_folder() -> Path:
    """Where the user's CPU files are: KDELTA_CONFIG_DIR/cpus, or as the XDG folders are."""
    if named := os.environ.get("KDELTA_CONFIG_DIR"):
        return Path(named).absolute() / "cpus"
    # The XDG specification: a relative path there is to be ignored.
    if (named := os.environ.get("XDG_CONFIG_HOME")) and Path(named).is_absolute():
        return Path(named) / "kdelta" / "cpus"
    try:
        return Path.home() / ".config" / "kdelta" / "cpus"
    except RuntimeError as error:
        raise LabError(
            f"no folder for CPU files: {error}", "set HOME, XDG_CONFIG_HOME or KDELTA_CONFIG_DIR"
        ) from error


def user_path(name: str) -> Path:
    """Where the user's CPU of that name is, or would be."""
    return user_folder() / f"{name}{SUFFIX}"


def user_paths() -> Mapping[str, Path]:
    """The user's CPU files by name, in the order of their names; some may be damaged."""
    try:
        files = sorted(user_folder().glob(f"*{SUFFIX}"))
    except OSError:
        return {}
    return {path.stem: path for path in files if path.is_file()}


def load_user_cpu(name: str) -> CPU:
    """A CPU of the user's. UserError for a file that cannot be read, is damaged, or says that it is
    another one.
    """
    path = user_path(name)
    cpu = load_file(path)
    if cpu.name != name:
        raise UserError(
            f"{path} is the file of a CPU called {cpu.name!r}",
            f"rename it to {cpu.name}{SUFFIX}, or give it by its path",
        )
    return cpu


def load_file(path: Path) -> CPU:
    """Return the CPU of a file; UserError, which names the path and what is wrong."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(
                f"{path} is no CPU file but a folder, a pipe or a device", "name a file"
            )
        with path.open("rb") as file:
            text = file.read(CPU_FILE_BYTES + 1)
        if len(text) > CPU_FILE_BYTES:
            raise UserError(f"{path} is no CPU file: it is too large", "docs/cpus.md describes it")
        return decode_cpu(text)
    except OSError as error:
        raise UserError(
            f"the CPU file {path} cannot be read: {error.strerror}",
            "kdelta cpus lists those that are known by name",
        ) from error
    except CPUFileError as error:
        raise UserError(f"{path}: {error}", "docs/cpus.md describes the file") from error


@functools.cache
def list_cpus() -> Mapping[str, CPU]:
    """All CPUs that come with kdelta, by name, in the order of their names."""
    found = {}
    for file in shipped().values():
        try:
            cpu = decode_cpu(file.read_bytes())
        except (OSError, CPUFileError) as error:
            raise LabError(f"kdelta's own {file}: {error}", "install kdelta again") from error
        found[cpu.name] = cpu
    return MappingProxyType(found)


def load_cpu(name_or_path: str) -> CPU:
    """Return the CPU of that name, of those that come with kdelta or the user's own; or of a file:
    what has a slash or ends in .toml. Options may follow, as in "cortex-a9,l2=256KiB,clock=1GHz".
    "host" is kdelta's file of this machine's core. "zen4:guest" is what a guest on that CPU finds.

    UserError if there is no such CPU or file, if the file is not as it must be, if a file of the
    user's has the name of one that comes with kdelta, and for an option that it has not.
    """
    name_or_path, _, options = name_or_path.partition(",")
    plain = name_or_path.removesuffix(GUEST)
    cpu = _load(plain)
    return with_options(as_guest(cpu) if plain != name_or_path else cpu, options)


def _load(name_or_path: str) -> CPU:
    if "/" in name_or_path or name_or_path.endswith(SUFFIX):
        return load_file(Path(name_or_path))
    if name_or_path == HOST:
        return host_cpu().cpu
    known, own = list_cpus(), user_paths()
    if name_or_path in own:
        refuse_shadow(name_or_path)
        return load_user_cpu(name_or_path)
    if name_or_path in known:
        return known[name_or_path]
    names = [*known, *own]
    near = difflib.get_close_matches(name_or_path, names, n=3, cutoff=0.4)
    raise UserError(
        f"no CPU is called {name_or_path!r}",
        f"there is: {', '.join(near or names)}; a file of your own is given by its path",
        (name_or_path, near[0]) if near else None,
    )


def as_guest(cpu: CPU) -> CPU:
    """Return the CPU as a guest of a hypervisor on it finds it. UserError for one whose file does
    not take the paths of bare metal.
    """
    if not is_bare_metal(cpu.qemu.cpu):
        raise UserError(
            f"{cpu.name} has no paths of a guest: its file does not have {BARE_METAL}",
            f"take {cpu.name}",
        )
    model = ",".join(word for word in cpu.qemu.cpu.split(",") if word != BARE_METAL)
    qemu = msgspec.structs.replace(cpu.qemu, cpu=model)
    return msgspec.structs.replace(cpu, name=f"{cpu.name}{GUEST}", qemu=qemu)


def host_cpu() -> HostCPU:
    """Return the CPU that comes with kdelta for this machine's core; UserError if there is none."""
    return cpu_of_machine(list_cpus().values(), read_cpuinfo())


def refuse_shadow(name: str) -> None:
    """UserError for a name of the user's that means a CPU of kdelta's already."""
    if name == HOST:
        raise UserError(
            f"{user_path(name)} is not used: {HOST} is kdelta's file of this machine's core",
            "to use its costs, give it, and the `name` in it, another name",
        )
    if name in list_cpus():
        raise UserError(
            f"{user_path(name)} has the name of a CPU that comes with kdelta",
            "give it, and the `name` in it, another one",
        )

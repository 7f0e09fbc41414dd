# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of workloads: each is a folder with a workload.toml and C sources."""

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import msgspec

from kdelta.host.command import quiet
from kdelta.host.gcc import Compiler
from kdelta.host.native import STATIC_FLAGS, NativeProgram, build_program, native_folder
from kdelta.host.pin import source_part, userland_part
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.phase import PhaseRule, check_rules

IMAGES = ("small", "job")


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a workload measures; its name is that of its region. Where an iteration works
    on so many bytes each time, `bytes_per_iteration` says so, and a report can show costs a byte.
    One that is `on_request` is run if it is named, and not when all are meant.
    """

    name: str
    summary: str
    bytes_per_iteration: int | None = None
    on_request: bool = False


class Parameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole number that a workload can be given, as in NAME:PARAMETER=NUMBER; its program is told
    by that option. is_cpus: its guests need so many CPUs.
    """

    name: str
    summary: str
    option: str
    default: int
    most: int
    is_cpus: bool = False


class UserlandWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Programs of the distribution that a workload starts: the packages to look in, the programs by
    their paths there, and other files by paths with wildcards. What they load comes with them.
    Packages that those depend on are looked in, too, where their names match a pattern of
    `dependencies`: those whose names have a version, which each release of a distribution moves.
    The pin has these packages for the workload's architectures (scripts/make_pin.py).
    """

    packages: tuple[str, ...]
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


class KernelTreeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a kernel's source, made ready for `make OBJECT...` in the guest, at `place` there.

    source: a kernel spec without changes. config: a file of the workload's folder with the options
    that are on, besides which allnoconfig turns all off. compiler: that of the workload's userland.
    make: KEY=VALUE words for make. source_paths: what of the source is needed to make it ready.
    guest_paths: globs (a * matches a /, too) of what make looks at besides what .cmd files name.
    """

    source: str
    config: str
    place: str
    compiler: str
    make: tuple[str, ...]
    source_paths: tuple[str, ...]
    guest_paths: tuple[str, ...]
    objects: tuple[str, ...]


class KernelSide(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a workload has for each kernel: the module native/kmod/MODULE, and `sources` of its own
    folder that are built into it unchanged. `flags_of` is the one of them that is compiled for user
    space as well, by the kernel's own flags, into a program called PROGRAM-kflags.
    """

    module: str
    sources: tuple[str, ...]
    flags_of: str


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of workload.toml. A folder can have more workloads: those in workload-OTHER.toml
    are called FOLDER-OTHER. `like` names a file of the folder whose fields are taken where this one
    has none.

    program           the path of its program in the guest
    sources           the C files of that, by patterns in the file, by their names in a Workload
    image             "small", of which the program is part, or "job", with which it comes
    dynamic           its program is linked with the guest's C library, which its userland has
    modules           a kernel must have or have built in
    modules_if_there  it may lack
    needs             options of the kernel's config that must be y or m, without CONFIG_
    architectures     that it runs on, none: all
    memory_mib        its guests have at least that
    cpus              its operations are executed by so many CPUs at once
    host_seconds      how long a run of it may take here, where the user does not say
    phases            split a region's work
    timeout_seconds   time of the guest
    is_network        what its operations move is published in bits
    own_starts        each operation begins in a guest of its own, in the snapshot's state
    longer            an option of the program which with 1, 2, ... makes it warm up and measure
                      longer each time
    window            an option of the program which with a number of seconds makes it rest before
                      the first iteration, not warm up, and end the region so long after the last
    idle              operations of which nothing is left to others: one that does nothing, and one
                      that takes time
    """

    name: str
    summary: str
    program: str
    sources: tuple[str, ...]
    image: str = "small"
    arguments: tuple[str, ...] = ()
    cflags: tuple[str, ...] = ()
    dynamic: bool = False
    modules: tuple[str, ...] = ()
    modules_if_there: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    kernel: KernelSide | None = None
    userland: UserlandWanted | None = None
    kernel_tree: KernelTreeWanted | None = None
    architectures: tuple[str, ...] = ()
    memory_mib: int = 0
    cpus: int = 1
    host_seconds: int = 0
    phases: tuple[PhaseRule, ...] = msgspec.field(default=(), name="phase")
    timeout_seconds: int = 600
    operations: tuple[Operation, ...] = msgspec.field(default=(), name="operation")
    parameters: tuple[Parameter, ...] = msgspec.field(default=(), name="parameter")
    is_network: bool = False
    own_starts: bool = False
    longer: str = ""
    window: str = ""
    idle: tuple[str, ...] = ()


class Workload(Description, frozen=True, kw_only=True):
    """A workload, and the folder of its sources."""

    folder: Path

    @property
    def file_name(self) -> str:
        return PurePosixPath(self.program).name

    def pinned_parts(self, arch: str) -> tuple[str, ...]:
        """The parts of a pin with what it brings into guests of that architecture, besides its own
        program.
        """
        what = (
            (self.userland, userland_part(self.plain_name, arch)),
            (self.kernel_tree, source_part(self.plain_name)),
        )
        return tuple(part for wanted, part in what if wanted)

    @property
    def plain_name(self) -> str:
        """Its name without parameters."""
        return self.name.partition(":")[0]

    def wanted(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The operations that its program is to run when these are asked for: the same; of none,
        those that are not for request only, or none, which is all, where it has no such.
        """
        usual = tuple(one.name for one in self.operations if not one.on_request)
        return names if names or len(usual) == len(self.operations) else usual

    def operation(self, name: str) -> Operation:
        """The operation of that name; UserError with the nearest if there is none."""
        known = {operation.name: operation for operation in self.operations}
        if name not in known:
            raise _unknown(f"operation of {self.name}", name, list(known))
        return known[name]


@functools.cache
def list_workloads() -> Mapping[str, Workload]:
    """All workloads that come with kdelta, by name."""
    here = Path(__file__).parent
    paths = sorted(here.glob("*/workload*.toml"), key=lambda path: (path.parent, path.stem))
    loaded = [load_workload(path) for path in paths]
    return MappingProxyType({workload.name: workload for workload in loaded})


def find_workload(name: str) -> Workload:
    """Return the workload of that name; UserError with the nearest if there is none. Behind a colon
    it can be given parameters, as in NAME:PARAMETER=NUMBER,..., which are then part of its name.
    """
    known = list_workloads()
    plain, colon, given = name.partition(":")
    if plain not in known:
        raise _unknown("workload", plain, list(known))
    return _with_parameters(known[plain], given) if colon else known[plain]


def _with_parameters(workload: Workload, given: str) -> Workload:
    numbers: dict[str, int] = {}
    by_name = {parameter.name: parameter for parameter in workload.parameters}
    if not by_name:
        named = f"{workload.name}:{given}"
        raise UserError(
            f"{workload.name} takes no parameters: {named!r}",
            f"write -w {workload.name}",
            (named, workload.name),
        )
    for word in given.split(","):
        name, _, number = word.partition("=")
        if name not in by_name:
            raise _unknown(f"parameter of {workload.name}", name, list(by_name))
        if name in numbers:
            raise UserError(f"{workload.name} is given {name} twice", "write it once")
        most = by_name[name].most
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= most):
            raise UserError(
                f"{name} of {workload.name} cannot be {number!r}", f"it is from 1 to {most}"
            )
        numbers[name] = int(number)
    other = [
        one for one in workload.parameters if numbers.get(one.name, one.default) != one.default
    ]
    words = ",".join(f"{one.name}={numbers[one.name]}" for one in other)
    more = [word for one in other for word in (one.option, str(numbers[one.name]))]
    return msgspec.structs.replace(
        workload,
        name=f"{workload.name}:{words}" if words else workload.name,
        arguments=(*workload.arguments, *more),
        cpus=max(workload.cpus, *(numbers[one.name] for one in other if one.is_cpus), 1),
    )


def _unknown(kind: str, name: str, known: list[str]) -> UserError:
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
    listed = ", ".join(near or known[:10]) or "none"
    instead = (name, near[0]) if near else None
    return UserError(f"no {kind} is called {name!r}", f"there is: {listed}", instead)


def load_workload(path: Path) -> Workload:
    """Reads a workload.toml; LabError, with the field that is wrong, if it is not as it must be."""
    try:
        raw = msgspec.convert(_fields(path), type=Description)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise LabError(f"{path}: {error}") from error
    folder = path.parent
    sources = sorted({source for glob in raw.sources for source in folder.glob(glob)})
    for complaint, applies in _wrong(raw, path, sources).items():
        if applies:
            raise LabError(f"{path}: {complaint}")
    try:
        check_rules(raw.phases)
    except UserError as error:
        raise LabError(f"{path}: {error.message}", error.hint) from error
    names = tuple(source.relative_to(folder).as_posix() for source in sources)
    return Workload(folder=folder, **{**msgspec.structs.asdict(raw), "sources": names})


def _wrong(raw: Description, path: Path, sources: Sequence[Path]) -> dict[str, bool]:
    """Return by complaint whether it applies to the description in that file."""
    folder = path.parent
    called = folder.name + path.stem.removeprefix("workload")
    names = [operation.name for operation in raw.operations]
    return {
        "`name` must be that of the folder": raw.name != called,
        "`program` must be an absolute path": not raw.program.startswith("/"),
        "`sources` match no file": not sources,
        "`operation` has a name twice": len(set(names)) != len(names),
        "`bytes_per_iteration` must be positive": any(
            operation.bytes_per_iteration is not None and operation.bytes_per_iteration <= 0
            for operation in raw.operations
        ),
        "`image` must be small or job": raw.image not in IMAGES,
        "`kernel.sources` are not all there": raw.kernel is not None
        and not all((folder / source).is_file() for source in raw.kernel.sources),
        "`kernel.flags_of` is none of its sources": raw.kernel is not None
        and raw.kernel.flags_of not in raw.kernel.sources,
        **_wrong_tree(raw, folder),
    }


def _fields(path: Path) -> dict[str, object]:
    """The fields of a file, with those of the one that it is like."""
    own = msgspec.toml.decode(path.read_bytes(), type=dict[str, object])
    like = own.pop("like", None)
    return own if like is None else _fields(path.parent / str(like)) | own


def _wrong_tree(raw: Description, folder: Path) -> dict[str, bool]:
    tree = raw.kernel_tree
    if tree is None:
        return {}
    programs = raw.userland.programs if raw.userland else ()
    return {
        "`kernel_tree.config` is not there": not (folder / tree.config).is_file(),
        "`kernel_tree.compiler` is no program of the userland": tree.compiler not in programs,
        "`kernel_tree.objects` are none": not tree.objects,
    }


class LinkedIn(msgspec.Struct, frozen=True):
    """What is linked into a workload's program besides its own: sources by their absolute paths,
    and flags for the compiler.
    """

    sources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


NOTHING_MORE = LinkedIn()


def build_workload(
    workload: Workload,
    log: Callable[[str], None] = quiet,
    *,
    by: Compiler,
    strict: bool = False,
    more: LinkedIn = NOTHING_MORE,
) -> Path:
    """The path of the workload's program, static unless it is to be dynamic (then without `more`),
    compiled by that compiler unless the cache has it.
    """
    if workload.dynamic:
        more = NOTHING_MORE
    program = NativeProgram(
        name=workload.file_name,
        folder=workload.folder,
        sources=(*workload.sources, *more.sources),
        flags=(*(() if workload.dynamic else STATIC_FLAGS), *workload.cflags, *more.flags),
        includes=(native_folder() / "include",),
        by=by,
    )
    return build_program(program, log, strict=strict)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs that take no part in a calibration: fetched, compiled, ready for --check.

Nothing of them is kept in the repository. They are sources in crates, which cargo fetches; a crate
of another checksum than the one named here is refused.
"""

import concurrent.futures
import hashlib
import tarfile
from pathlib import Path

import msgspec

from kdelta.host.command import find_program, run
from kdelta.host.files import write_atomic
from kdelta.host.machine import cores
from kdelta.spec.errors import LabError

DRIVERS = Path(__file__).parent / "held_out"
TIMING = Path(__file__).parents[2] / "src/kdelta/workloads/calibration"
MARKS = Path(__file__).parents[2] / "native/include"
FLAGS = ("-O2", "-fno-pie", "-ffunction-sections", "-w")


class Crate(msgspec.Struct, frozen=True):
    """A crate by name, version and the SHA-256 of its file."""

    name: str
    version: str
    sha256: str

    @property
    def stem(self) -> str:
        """Of its file and its folder."""
        return f"{self.name}-{self.version}"


class Program(msgspec.Struct, frozen=True):
    """A real program: which of the crate's files are compiled, and how.

    folder: of the sources, in the crate. sources: patterns in it; without: names that are not
    compiled. flags: of all its files. libs: for the linker.
    """

    name: str
    crate: Crate
    folder: str
    sources: tuple[str, ...]
    without: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    libs: tuple[str, ...] = ()


PROGRAMS = (
    Program(
        "sqlite",
        Crate(
            "libsqlite3-sys",
            "0.30.1",
            "2e99fb7a497b1e3339bc746195567ed8d3e24945ecd636e3619d20b9de9e9149",
        ),
        "sqlite3",
        ("sqlite3.c",),
        flags=(
            "-DSQLITE_THREADSAFE=0",
            "-DSQLITE_OMIT_LOAD_EXTENSION",
            "-DSQLITE_ENABLE_MEMSYS5",
            "-DSQLITE_DEFAULT_MEMSTATUS=0",
        ),
        libs=("-lm",),
    ),
    Program(
        "lua",
        Crate(
            "lua-src",
            "547.0.0",
            "1edaf29e3517b49b8b746701e5648ccb5785cde1c119062cbabbc5d5cd115e42",
        ),
        "lua-5.4.7",
        ("l*.c",),
        # A seed that is an address or the time would make another path of each run.
        flags=("-Dluai_makeseed(L)=42u", "-DLUA_COMPAT_5_3"),
        libs=("-lm",),
    ),
    Program(
        "zlib",
        Crate(
            "libz-sys",
            "1.1.20",
            "d2d16453e800a8cf6dd2fc3eb4bc99b786a9b90c663b8559a5b1a041bf89e472",
        ),
        "src/zlib",
        ("*.c",),
        without=("gzclose.c", "gzlib.c", "gzread.c", "gzwrite.c"),
    ),
    Program(
        "zstd",
        Crate(
            "zstd-sys",
            "2.0.13+zstd.1.5.6",
            "38ff0f21cfee8f97d94cef41359e0c89aa6113028ab0291aa8ca0038995a95aa",
        ),
        "zstd/lib",
        ("common/*.c", "compress/*.c", "decompress/*.c"),
        flags=("-DZSTD_DISABLE_ASM", "-DZSTD_LEGACY_SUPPORT=0"),
    ),
)


def manifest_text(programs: tuple[Program, ...]) -> str:
    """What cargo is told to fetch: each crate, of one version."""
    crates = "".join(f'{one.crate.name} = "={one.crate.version}"\n' for one in programs)
    head = '[package]\nname = "held-out"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n'
    return head + crates


def right_crate(crate: Crate, content: bytes) -> None:
    """LabError unless it is the file that is meant."""
    found = hashlib.sha256(content).hexdigest()
    if found != crate.sha256:
        raise LabError(
            f"{crate.stem}.crate has the checksum {found}", f"it should be {crate.sha256}"
        )


def fetched(program: Program, folder: Path) -> Path:
    """The folder of its sources, which cargo fetches into `folder` if they are not there."""
    sources = folder / "sources" / program.crate.stem
    if not sources.is_dir():
        (folder / "src").mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "src/lib.rs", b"")
        write_atomic(folder / "Cargo.toml", manifest_text((program,)).encode())
        done = run(
            [find_program("cargo"), "fetch", "--quiet"],
            cwd=folder,
            env={"CARGO_HOME": str(folder / "cargo")},
        )
        if not done.ok:
            raise LabError(f"{program.crate.stem} cannot be fetched: {done.last_words(1)}")
        (file,) = (folder / "cargo").glob(f"registry/cache/*/{program.crate.stem}.crate")
        right_crate(program.crate, file.read_bytes())
        with tarfile.open(file) as archive:
            archive.extractall(sources.parent, filter="data")
    return sources / program.folder


def source_files(program: Program, folder: Path) -> list[Path]:
    """What is compiled of it, in an order that does not depend on the folder's."""
    found = (file for pattern in program.sources for file in folder.glob(pattern))
    return sorted(file for file in found if file.name not in program.without)


def built(program: Program, folder: Path) -> Path:
    """The TOML file of --check for this program, next to its objects."""
    sources = fetched(program, folder)
    objects = folder / program.name
    objects.mkdir(parents=True, exist_ok=True)
    works = [(file, objects / f"{file.stem}.o") for file in source_files(program, sources)]
    works.append((DRIVERS / f"{program.name}.c", objects / "driver.o"))
    works.append((DRIVERS / "main.c", objects / "main.o"))
    flags = (*FLAGS, *program.flags, f"-I{sources}", f"-I{DRIVERS}", f"-I{TIMING}", f"-I{MARKS}")
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        for failed in pool.map(lambda work: _compiled(work[0], work[1], flags), works):
            if failed:
                raise LabError(f"{program.name} cannot be compiled: {failed}")
    names = sorted(output.name for _, output in works)
    write_atomic(objects / "program.toml", program_text(program, names).encode())
    return objects / "program.toml"


def program_text(program: Program, objects: list[str]) -> str:
    """The file as `kdelta calibrate --check` reads it: TOML's lists of text are JSON's."""
    lists = {"objects": objects, "libs": list(program.libs)}
    lines = [f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in lists.items()]
    return f'name = "{program.name}"\n' + "".join(lines)


def _compiled(file: Path, output: Path, flags: tuple[str, ...]) -> str:
    if output.is_file() and output.stat().st_mtime > file.stat().st_mtime:
        return ""
    done = run([find_program("gcc"), *flags, "-c", file, "-o", output])
    return "" if done.ok else done.last_words(1)

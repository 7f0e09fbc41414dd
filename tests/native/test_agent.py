# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent's parsers, fed on the host, and the agent itself where it must not run."""

import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kdelta.guests import cpio

pytestmark = pytest.mark.long

FILE, FOLDER, LINK, DEVICE = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFCHR
Entry = tuple[str, int, bytes]
CONTENT = bytes(range(256)) * 40

GOOD: list[Entry] = [
    (".", FOLDER | 0o700, b""),
    ("job", FILE | 0o644, b"arg /bin/true\n"),
    ("bin", FOLDER | 0o750, b""),
    ("bin/prog", FILE | 0o4755, CONTENT),
    ("deep/er/empty", FILE | 0o600, b""),
    ("/abs//./odd", FILE | 0o640, b"123"),
    ("lib", LINK | 0o777, b"bin"),
]


def header(mode: int, size: int, name_size: int) -> bytes:
    fields = (1, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0)
    return b"070701" + b"".join(b"%08x" % field for field in fields)


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def archive(entries: Iterable[Entry]) -> bytes:
    """The format's own rules, apart from the writer that kdelta uses."""
    parts = []
    for name, mode, data in [*entries, ("TRAILER!!!", 0, b"")]:
        raw = name.encode() + b"\0"
        parts.append(pad(header(mode, len(data), len(raw)) + raw) + pad(data))
    return b"".join(parts)


def unpack(parsers: Path, folder: Path, data: bytes, chunk: int = 4096) -> str:
    """What was wrong, or nothing. Sanitizers end the program with another code."""
    argv = [str(parsers), "unpack", str(folder), str(chunk)]
    done = subprocess.run(argv, input=data, capture_output=True, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
    assert bool(done.stdout) == bool(done.returncode)
    return done.stdout.decode("utf-8", "replace")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("chunk", [1, 7, 4096, 65536])
def test_unpacks_files_folders_and_links(parsers: Path, root: Path, chunk: int) -> None:
    assert unpack(parsers, root, archive(GOOD) + bytes(512), chunk) == ""
    assert (root / "job").read_bytes() == b"arg /bin/true\n"
    assert (root / "lib/prog").read_bytes() == CONTENT
    assert (root / "deep/er/empty").read_bytes() == b""
    assert (root / "abs/odd").read_bytes() == b"123"
    modes = {
        name: stat.S_IMODE((root / name).stat().st_mode)
        for name in ("bin/prog", "deep/er/empty", "abs/odd")
    }
    assert modes == {"bin/prog": 0o4755, "deep/er/empty": 0o600, "abs/odd": 0o640}


def test_times_and_sizes_without_content_are_those_of_the_archive(
    parsers: Path, root: Path
) -> None:
    seconds, nanoseconds = 1_600_000_000, 123_456_789
    time_ns = seconds * 1_000_000_000 + nanoseconds
    size = (1 << 32) + 7
    entries = [
        cpio.Entry("d", FOLDER | 0o750, modified_ns=time_ns),
        cpio.Entry("d/sparse", FILE | 0o600, modified_ns=time_ns, hole_bytes=size),
        cpio.Entry("d/l", LINK | 0o777, b"sparse", modified_ns=time_ns),
        cpio.Entry("d/new", FILE | 0o600, b"1"),
    ]
    assert unpack(parsers, root, cpio.archive(entries)) == ""
    states = {name: (root / name).lstat() for name in ("d", "d/sparse", "d/l", "d/new")}
    assert [states[name].st_mtime_ns for name in ("d", "d/sparse", "d/l")] == [time_ns] * 3
    assert states["d/new"].st_mtime > seconds
    # By which the agent knows that nothing read it.
    assert states["d/sparse"].st_atime_ns == time_ns - 1
    assert states["d/l"].st_atime_ns == time_ns
    assert stat.S_IMODE(states["d"].st_mode) == 0o750
    assert (states["d/sparse"].st_size, states["d/sparse"].st_blocks) == (size, 0)


@pytest.mark.slow
def test_every_cut_is_noticed(parsers: Path, root: Path) -> None:
    data = archive([("a", FILE | 0o644, b"12345"), ("l", LINK, b"a"), ("d", FOLDER | 0o755, b"")])
    last = data.index(b"TRAILER!!!") + len("TRAILER!!!\0")
    for size in range(last):
        assert unpack(parsers, root, data[:size]) != "", size
    assert unpack(parsers, root, data) == ""


@pytest.mark.parametrize("name", ["../out", "a/../../out", "..", "/../out", "a/.."])
def test_paths_that_lead_out_are_refused(parsers: Path, root: Path, name: str) -> None:
    assert "unsafe path" in unpack(parsers, root, archive([(name, FILE | 0o644, b"x")]))
    assert [path.name for path in root.parent.iterdir()] == ["root"]


def test_a_link_is_replaced_and_not_followed(parsers: Path, root: Path) -> None:
    outside = root.parent / "outside"
    outside.write_text("old")
    entries = [("l", LINK | 0o777, b"../outside"), ("l", FILE | 0o644, b"new")]
    assert unpack(parsers, root, archive(entries)) == ""
    assert outside.read_text() == "old"
    assert (root / "l").read_text() == "new"


GOOD_HEADER = header(FILE | 0o644, 0, 2)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "without a trailer"),
        (b"070702" + GOOD_HEADER[6:] + b"a\0", "not a cpio archive"),
        (b"\x1f\x8b" + bytes(200), "not a cpio archive"),
        (GOOD_HEADER.replace(b"000081a4", b"0000g1a4") + b"a\0", "hexadecimal"),
        (header(FILE, 0, 0) + bytes(8), "a name of 0 bytes"),
        (header(FILE, 0, 0xFFFFFFFF) + bytes(8), "a name of 4294967295 bytes"),
        (header(FILE, 0, 2) + b"ab" + bytes(8), "does not end where"),
        (header(FILE, 0, 4) + b"a\0b\0" + bytes(8), "does not end where"),
        (archive([("", FILE | 0o644, b"x")]), "not a path of a file"),
        (archive([(".", FILE | 0o644, b"x")]), "not a path of a file"),
        (archive([("null", DEVICE | 0o666, b"")]), "neither file, folder nor link"),
        (archive([("l", LINK, b"")]), "a link of 0 bytes"),
        (archive([("l", LINK, b"x" * 5000)]), "a link of 5000 bytes"),
        (archive([("f", FILE | 0o644, b""), ("f/x", FILE | 0o644, b"")]), "f/x: Not a directory"),
        (archive([("x" * 300, FILE | 0o644, b"")]), "File name too long"),
    ],
)
def test_what_is_wrong_is_reported(parsers: Path, root: Path, data: bytes, complaint: str) -> None:
    assert complaint in unpack(parsers, root, data)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 5000), value=st.integers(0, 255), chunk=st.sampled_from([1, 64, 4096]))
def test_a_damaged_archive_stays_in_its_folder(
    parsers: Path, root: Path, at: int, value: int, chunk: int
) -> None:
    data = bytearray(archive([*GOOD[1:3], ("bin/p", FILE | 0o755, CONTENT[:700]), *GOOD[4:]]))
    data[at % len(data)] = value
    unpack(parsers, root, bytes(data), chunk)
    assert [path.name for path in root.parent.iterdir()] == ["root"]


@pytest.mark.parametrize(
    ("name", "clean"),
    [("a", "a"), ("/a/b/", "a/b"), ("./a/./b", "a/b"), ("//", ""), ("", ""), ("...", "..."),
     ("a/..b", "a/..b"), ("x" * 1023, "x" * 1022), ("x" * 1022, "x" * 1022)],
)  # fmt: skip
def test_clean_paths(parsers: Path, name: str, clean: str) -> None:
    done = subprocess.run([parsers, "clean", name], capture_output=True, text=True, check=False)
    if len(name) > 1022:
        assert done.returncode == 1
    else:
        assert (done.returncode, done.stdout) == (0, clean)


def job(parsers: Path, text: str) -> tuple[int, list[str]]:
    # What is not well encoded is told as it is, whatever its bytes are.
    done = subprocess.run(
        [parsers, "job"],
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, [line for line in done.stdout.replace("\0", "\n").split("\n") if line]


def test_a_whole_job(parsers: Path) -> None:
    text = (
        "module /lib/a.ko\noptional-module /lib/b.ko\n"
        "seed 00ffA7\npages 12\nphase-ns 345\ndate 1767225601\nseconds 6\n"
        "region a name\ncwd /tmp/x y\nmode kernel-direct\n"
        "env A=1=2\nenv EMPTY=\narg /bin/echo\narg \narg  a  b \n"
    )
    assert job(parsers, text) == (
        0,
        [
            "module /lib/a.ko", "optional-module /lib/b.ko",
            "seed 00ffa7", "pages 12", "phase-ns 345", "date 1767225601",
            "seconds 6", "region a name", "cwd /tmp/x y", "mode kernel-direct", "env A=1=2",
            "env EMPTY=", "arg /bin/echo", "arg ", "arg  a  b ",
        ],
    )  # fmt: skip


def test_defaults(parsers: Path) -> None:
    assert job(parsers, "arg x") == (
        0,
        ["pages 0", "phase-ns 0", "date 0", "seconds 0", "region -", "cwd /", "arg x"],
    )


def test_values_are_percent_encoded(parsers: Path) -> None:
    code, lines = job(parsers, "arg /x\narg a%0ab%25c%2525\n")
    assert code == 0
    assert lines[-2:] == ["arg a", "b%c%25"]


def test_unknown_directives_are_told_and_skipped(parsers: Path) -> None:
    code, lines = job(parsers, "frob 1\n\nalone\narg x\n")
    assert code == 0
    assert lines[:2] == ["unknown frob", "unknown alone"]


@pytest.mark.parametrize(
    "line",
    [
        "seed", "seed 0", "seed 0g", "seed " + "00" * 65, "pages -1", "pages x", "pages ",
        "pages 99999999999999999999999", "date ", "date 1.5", "phase-ns 1e9",
        "seconds 99999999999", "region ",
        "region " + "x" * 256, "mode user", "mode ", "env NOVALUE", "arg %", "arg %0", "arg %zz",
        "arg %00",
    ],
)  # fmt: skip
def test_bad_values_are_named(parsers: Path, line: str) -> None:
    code, lines = job(parsers, f"{line}\narg x\n")
    if " " in line:
        assert code == 1
        assert lines[0].startswith("wrong ")
        assert line.split(" ", maxsplit=1)[0] in lines[0]
    else:
        assert lines[0] == f"unknown {line}"


def test_too_many_words_and_modules(parsers: Path) -> None:
    assert job(parsers, "arg x\n" * 4096)[0] == 0
    assert job(parsers, "arg x\n" * 4097)[0] == 1
    assert job(parsers, "module /m\n" * 64 + "arg x\n")[0] == 0
    assert job(parsers, "module /m\n" * 65 + "arg x\n")[0] == 1
    assert job(parsers, "module /m\n" * 64 + "optional-module /m\narg x\n")[0] == 1


def test_a_job_without_program(parsers: Path) -> None:
    code, lines = job(parsers, "cwd /\n")
    assert code == 1
    assert "no program" in lines[0]


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="argsedphionm %0a\n/", max_size=200))
@example(text=" %a0%")
def test_any_text_is_parsed_or_refused(parsers: Path, text: str) -> None:
    job(parsers, text)


def test_the_agent_runs_nowhere_but_as_init(agent: Path) -> None:
    done = subprocess.run([agent], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "init of kdelta's guests" in done.stderr


def test_the_agent_needs_no_library(agent: Path) -> None:
    said = subprocess.run(["readelf", "-lW", agent], capture_output=True, text=True, check=True)
    assert "INTERP" not in said.stdout
    assert "DYNAMIC" not in said.stdout
